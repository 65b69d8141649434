#include "cli/verbs.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "doctor/gather.h"
#include "job/mpi/mpi_job.h"
#include "worker/worker.h"

namespace harness::cli {
namespace {

// Whatever was thrown, as one message; no words of a library. Returns the exit code. A line is written at once: a
// launcher may be writing too.
int say(std::ostream& err, const std::exception_ptr& thrown) {
  const auto line = [&](std::string_view text) { err << fmt::format("harness: {}\n", escaped_lines(text)); };
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    if (*e.what() != '\0') line(e.what());  // empty: another rank says it
    return e.exit_code();
  } catch (const std::filesystem::filesystem_error& e) {
    line(fmt::format("{}: {}", escaped(e.path1().string()), e.code().message()));
  } catch (const std::bad_alloc&) {
    line("out of memory: this needs more than the machine has or its limits allow");
  } catch (const std::exception& e) {
    line(e.what());
  }
  return 1;
}

// A mistake in the command line, or of this program, is no finding of doctor's: its exit codes 1 and 2 are.
int code_of_error(const std::vector<std::string>& arguments, int code) {
  constexpr int doctor_could_not_run = 3;
  return !arguments.empty() && arguments[0] == "doctor" ? doctor_could_not_run : code;
}

// Whether a command is for all ranks of a job.
bool is_for_a_job(const Parser& parser, const DoctorOptions& d) {
  const bool looks_at_nodes = parser.doctor->parsed() && !d.list && d.against.size() < 2 && d.allreduce.empty();
  return parser.sweep->parsed() || parser.calibrate->parsed() || looks_at_nodes;
}

int run_alone(const Parser& parser, Arguments& a, std::ostream& out, std::ostream& err) {
  a.add_sugar(a.plan.overrides, a.plan.only);
  if (parser.selftest->parsed()) return selftest(a.selftest, out, err);
  if (parser.read->parsed()) return read(a.read, out);
  if (parser.report->parsed()) return report(a.report, out);
  if (parser.compare->parsed()) return compare(a.compare, out);
  if (parser.export_settings->parsed()) return export_settings(a.export_settings, out);
  if (parser.trace->parsed()) return trace(a.trace, out, err);
  if (parser.init->parsed()) return init(a.init, out);
  if (parser.doctor->parsed()) return doctor_alone(a.doctor, out);
  if (parser.make_tokens->parsed()) return make_tokens(a.make_tokens, out);
  if (parser.variables->parsed()) return variables(a.variables, out);
  std::ostream* terminal = isatty(STDERR_FILENO) != 0 ? &err : nullptr;
  return parser.plan->parsed() ? plan(a.plan, out, terminal) : show(a.show, out, err);
}

// "help" and "help VERB" as people type them; a verb that does not exist is named before CLI11 misses one.
std::vector<std::string> understood(std::vector<std::string> arguments, const std::vector<std::string>& verbs) {
  if (arguments.empty() || arguments[0].starts_with("-")) return arguments;
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
    return arguments;
  }
  if (std::ranges::find(verbs, arguments[0]) != verbs.end()) return arguments;
  fail("there is no command {}; allowed: {}{}", quote(arguments[0]), join(verbs, ", "),
       did_you_mean(nearest(arguments[0], verbs)));
}

// A result that did not reach its reader is a failure, whatever the verb has found.
void deliver(std::ostream& out) {
  errno = 0;
  out.flush();
  const int error = errno;
  if (!out) fail("cannot write to the standard output: {}", error != 0 ? std::strerror(error) : "the disk may be full");
}

int run_sweep(job::Job& job, Arguments& a, const std::vector<std::string>& arguments, std::ostream& out,
              std::ostream& err) {
  if (!a.sweep.resume.empty()) a.sweep.rounds = std::exchange(a.rounds, "");
  a.add_sugar(a.sweep.overrides, a.sweep.only);
  a.sweep.command = "harness " + join(arguments, " ");
  return sweep(job, a.sweep, out, err);
}

// On rank 0, which alone speaks and decides. Returns the exit code of all ranks.
int lead(job::Job& job, const Parser& parser, Arguments& a, const std::vector<std::string>& arguments,
         std::ostream& out, std::ostream& err) {
  int code = 1;
  try {
    if (parser.doctor->parsed()) {
      code = doctor(job, a.doctor, out);
    } else if (parser.calibrate->parsed()) {
      code = calibrate(job, a.calibrate, out, err);
    } else {
      code = run_sweep(job, a, arguments, out, err);
    }
    deliver(out);
  } catch (const job::PeersLost&) {
    throw;
  } catch (...) {
    code = code_of_error(arguments, say(err, std::current_exception()));
  }
  err.flush();
  return code;
}

// Every rank comes here.
int run_job(const Parser& parser, Arguments& a, const std::vector<std::string>& arguments, std::ostream& out,
            std::ostream& err) {
  const auto job = mpi::join(doctor::answer);
  try {
    int code = 1;
    if (job->rank() != 0) {
      code = job->follow();
    } else {
      code = lead(*job, parser, a, arguments, out, err);
      job->finish(code);
    }
    job->leave();
    return code;
  } catch (const job::PeersLost&) {
    const int code = code_of_error(arguments, say(err, std::current_exception()));
    out.flush();
    err.flush();
    job->abandon(code);
    return code;
  }
}

}  // namespace

int run_cli(const std::vector<std::string>& typed, std::ostream& to, std::ostream& err) {
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like any other, with a message
  try {
    if (!typed.empty() && typed[0] == "worker") return worker::worker_main();
    CleanStream out(to);
    Arguments a;
    Parser parser(a);
    std::string help;
    std::exception_ptr mistake;
    try {
      help = parse(parser, understood(typed, parser.verbs()));
    } catch (const Error&) {
      mistake = std::current_exception();
    }
    if (!mistake && help.empty() && is_for_a_job(parser, a.doctor)) return run_job(parser, a, typed, out, err);
    // Started by mpirun or srun, all others leave it to the first: it works once and prints once.
    if (const auto claim = mpi::launcher_claim(mpi::own_environment); claim && claim->rank != 0) return 0;
    if (mistake) std::rethrow_exception(mistake);
    out << help;
    const int code = help.empty() ? run_alone(parser, a, out, err) : 0;
    deliver(out);
    return code;
  } catch (...) {
    return code_of_error(typed, say(err, std::current_exception()));
  }
}

}  // namespace harness::cli
