#include "cli/verbs.h"

#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "config/backend.h"
#include "doctor/facts.h"
#include "job/mpi/mpi_job.h"
#include "worker/worker.h"

namespace harness::cli {
namespace {

// Prints the exception that is being handled as a message of this program and returns the exit code. Each line is
// written at once, because a launcher may write too.
int say_exception(const std::vector<std::string>& arguments, std::ostream& err) {
  const auto line = [&](std::string_view text) { err << fmt::format("harness: {}\n", escaped_lines(text)); };
  int code = 1;
  try {
    throw;
  } catch (const Error& e) {
    if (*e.what() != '\0') line(e.what());  // empty: another rank reports it
    code = e.exit_code();
  } catch (const std::filesystem::filesystem_error& e) {
    line(fmt::format("{}: {}", escaped(e.path1().string()), e.code().message()));
  } catch (const std::bad_alloc&) {
    line("out of memory: this needs more than the machine has or its limits allow");
  } catch (const std::exception& e) {
    line(e.what());
  }
  constexpr int doctor_could_not_run = 3;  // its codes 1 and 2 stand for findings
  return !arguments.empty() && arguments[0] == "doctor" ? doctor_could_not_run : code;
}

// Converts a size of nccl-tests (8, 64K, 8m, 8G) to that of a configuration: "64 KiB". Returns other text unchanged.
std::string size_of_nccl_tests(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos) return text + " B";
  const auto unit = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  if (digits > 0 && digits + 1 == text.size() && std::string_view("KMGT").find(unit) != std::string_view::npos)
    return fmt::format("{} {}iB", text.substr(0, digits), unit);
  return text;
}

// Adds the shorthands to the --set and --only of a verb. Throws Error for a range of sizes without an end.
void add_shorthands(const Arguments& a, std::vector<std::string>& overrides, std::vector<std::string>& only) {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) overrides.push_back(fmt::format("{}={}", key, value));
  };
  // Validated here, so that errors name the option that was typed.
  if (!a.backend.empty()) option_value("--backend", a.backend, config::parse_backend);
  if (!a.rounds.empty()) option_value("--rounds", a.rounds, parse_integer);
  if (!a.seed.empty()) option_value("--seed", a.seed, parse_integer);
  if (!a.time_budget.empty()) option_value("--time-budget", a.time_budget, parse_seconds);
  add("backend", a.backend);
  add("hardware", a.hardware);
  add("measure.rounds", a.rounds);
  add("measure.time_budget", a.time_budget);
  add("measure.seed", a.seed);
  if (a.min_bytes.empty() && a.max_bytes.empty() && a.step_factor.empty()) return;
  if (a.min_bytes.empty() || a.max_bytes.empty())
    fail("-b and -e go together: the first size and the last, such as -b 8 -e 8G -f 2");
  const std::string factor = a.step_factor.empty() ? "2" : a.step_factor;
  add("sweep.message_size",
      fmt::format("[{}..{} x{}]", size_of_nccl_tests(a.min_bytes), size_of_nccl_tests(a.max_bytes), factor));
  only.push_back("message_size");
}

bool is_for_a_job(const Arguments& a) {
  const DoctorOptions& d = a.doctor;
  const bool looks_at_nodes = a.verb == "doctor" && !d.list && d.against.size() < 2 && d.allreduce.empty();
  return a.verb == "sweep" || a.verb == "calibrate" || looks_at_nodes;
}

int run_alone(Arguments& a, std::ostream& out, std::ostream& err) {
  if (a.verb == "selftest") return selftest(a.selftest, out, err);
  if (a.verb == "read") return read(a.read, out);
  if (a.verb == "report") return report(a.report, out);
  if (a.verb == "compare") return compare(a.compare, out);
  if (a.verb == "export") return export_settings(a.export_settings, out);
  if (a.verb == "trace") return trace(a.trace, out, err);
  if (a.verb == "init") return init(a.init, out);
  if (a.verb == "doctor") return doctor_alone(a.doctor, out);
  if (a.verb == "make-tokens") return make_tokens(a.make_tokens, out);
  if (a.verb == "variables") return variables(a.variables, out);
  if (a.verb == "show") return show(a.show, out, err);
  add_shorthands(a, a.plan.overrides, a.plan.only);
  return plan(a.plan, out, isatty(STDERR_FILENO) != 0 ? &err : nullptr);
}

// Output that could not be written is a failure, whatever the verb's result.
void deliver(std::ostream& out) {
  errno = 0;
  out.flush();
  const int error = errno;
  if (!out) fail("cannot write to the standard output: {}", error != 0 ? std::strerror(error) : "the disk may be full");
}

// Runs on rank 0, which alone prints and decides. Returns the exit code of all ranks.
int lead(job::Job& job, Arguments& a, const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  int code = 1;
  try {
    if (a.verb == "doctor") {
      code = doctor(job, a.doctor, out);
    } else if (a.verb == "calibrate") {
      code = calibrate(job, a.calibrate, out, err);
    } else {
      if (!a.sweep.resume.empty()) a.sweep.rounds = std::exchange(a.rounds, "");
      add_shorthands(a, a.sweep.overrides, a.sweep.only);
      a.sweep.command = "harness " + join(arguments, " ");
      code = sweep(job, a.sweep, out, err);
    }
    deliver(out);
  } catch (const job::PeersLost&) {
    throw;
  } catch (...) {
    code = say_exception(arguments, err);
  }
  err.flush();
  return code;
}

int run_job(Arguments& a, const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  const auto job = mpi::join(doctor::answer);
  try {
    int code = 1;
    if (job->rank() != 0) {
      code = job->follow();
    } else {
      code = lead(*job, a, arguments, out, err);
      job->finish(code);
    }
    job->leave();
    return code;
  } catch (const job::PeersLost&) {
    const int code = say_exception(arguments, err);
    out.flush();
    err.flush();
    job->abandon(code);
    return code;
  }
}

}  // namespace

int run_cli(const std::vector<std::string>& typed, std::ostream& to, std::ostream& err) {
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails with an ordinary error
  try {
    if (!typed.empty() && typed[0] == "worker") return worker::worker_main();
    CleanStream out(to);
    Arguments a;
    std::exception_ptr mistake;
    try {
      a = parse_arguments(typed);
    } catch (const Error&) {
      mistake = std::current_exception();
    }
    if (!mistake && is_for_a_job(a)) return run_job(a, typed, out, err);
    // Under mpirun or srun all other ranks exit, so that the verb runs and prints once.
    if (const auto claim = mpi::launcher_claim(mpi::own_environment); claim && claim->rank != 0) return 0;
    if (mistake) std::rethrow_exception(mistake);
    out << a.help;
    const int code = a.help.empty() ? run_alone(a, out, err) : 0;
    deliver(out);
    return code;
  } catch (...) {
    return say_exception(typed, err);
  }
}

}  // namespace harness::cli
