#include <algorithm>
#include <filesystem>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <thread>

#include "backends/backends.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/document.h"
#include "selftest/checks.h"

namespace harness::cli {
namespace {

using selftest::CheckLine;
using selftest::Outcome;

constexpr std::size_t max_shown_failures = 8;  // of one check; the rest is counted

// Of a GPU, 9.0 as 9; a CPU emulates what tensor cores of any have.
double compute_capability(const backend::Backend& subject) {
  for (const auto& [name, value] : subject.identity({})) {
    if (name == "compute_capability") return number_in<double>(value).value_or(0);
  }
  return std::numeric_limits<double>::infinity();
}

class Check {
 public:
  Check(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
        std::ostream& out, std::ostream& err)
      : options_(options), subject_(subject), oracle_(oracle), out_(out), err_(err) {
    threads_ =
        options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    seed_ = options.seed;
    if (seed_ == 0) seed_ = 1 + std::random_device{}() % 1'000'000;  // fresh numbers each time, and short to repeat
  }

  std::uint64_t seed() const { return seed_; }

  void run() {
    if (wanted("operations")) operations();
    if (wanted("reference")) reference();
  }

  std::vector<CheckLine> lines;

 private:
  bool wanted(const std::string& suite) const {
    const auto has = [&](const std::string& s) {
      return std::ranges::find(options_.suites, s) != options_.suites.end();
    };
    return options_.suites.empty() || has("all") || has(suite);
  }

  // Said when it ends: "operations: gelu fp32: passed (6 cases, worst error 1.2e-05 of 1e-04)". A note is said once,
  // however many checks have it.
  void add(const CheckLine& line) {
    lines.push_back(line);
    out_ << fmt::format("{}: {}", line.check, selftest::name_of(line.outcome));
    if (line.outcome != Outcome::not_run && line.tolerance > 0)
      out_ << fmt::format(" ({} cases, worst error {:.1e} of {:.0e})", line.cases, line.error, line.tolerance);
    out_ << "\n";
    for (std::size_t i = 0; i < std::min(line.failures.size(), max_shown_failures); ++i)
      out_ << fmt::format("  FAILED {}\n", report::one_line(line.failures[i]));
    if (line.failures.size() > max_shown_failures)
      out_ << fmt::format("  FAILED and {} more\n", line.failures.size() - max_shown_failures);
    for (const std::string& note : line.notes) {
      if (notes_.insert(note).second) out_ << fmt::format("  note: {}\n", note);
    }
    out_ << std::flush;  // it is there whatever comes after
  }
  selftest::StepCheckOptions step_options() {
    return {threads_, [this](const CheckLine& line) { add(line); }};
  }
  void not_run(const std::string& check, const std::string& why) {
    CheckLine line;
    line.check = check;
    line.outcome = Outcome::not_run;
    line.notes = {why};
    add(line);
  }

  void operations() {
    selftest::OperationCheckOptions o;
    o.only = options_.only;
    o.large = !options_.fast;
    o.seed = seed_;
    o.threads = threads_;
    if (options_.verbose) o.progress = [&](const std::string& name) { err_ << "selftest: " << name << std::endl; };
    o.finished = [&](const CheckLine& line) { add(line); };
    constexpr double ada = 8.9, blackwell = 10;
    const double has = compute_capability(subject_);
    const auto cases =
        selftest::operation_cases(config::traits_of(subject_.kind()).has_tf32, has >= ada, has >= blackwell);
    if (selftest::check_operations(cases, subject_, oracle_, o).empty())
      not_run("operations", fmt::format("no operation case has {} in its name", fmt::join(options_.only, " or ")));
  }

  void reference() {
    std::string directory = options_.reference;
    if (directory.empty())
      directory = selftest::find_reference(std::filesystem::read_symlink("/proc/self/exe").string());
    if (directory.empty()) {
      return not_run("reference",
                     "no reference found beside this program (share/harness/reference or tests/reference); name "
                     "its folder with --reference");
    }
    selftest::check_reference(subject_, directory, step_options());
  }

  const SelftestOptions& options_;
  const backend::Backend& subject_;
  const backend::Backend& oracle_;
  std::ostream &out_, &err_;
  std::set<std::string> notes_;
  int threads_ = 1;
  std::uint64_t seed_ = 1;
};

int say_nothing_can_be_run(const Error& why, std::ostream& err) {
  constexpr int nothing_ran = 3;  // as of exit_code(lines)
  err << "selftest: nothing can be run: " << report::one_line(why.what()) << "\n";
  return nothing_ran;
}

}  // namespace

int selftest(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
             std::ostream& out, std::ostream& err) {
  NameValues identity;
  try {
    identity = subject.identity({});
  } catch (const Error& e) {
    return say_nothing_can_be_run(e, err);
  }
  Check it(options, subject, oracle, out, err);
  out << tool_version() << "\n";
  for (const auto& [name, value] : identity) out << fmt::format("{}: {}\n", name, value);
  out << fmt::format("backend {} against {}, seed {}\n\n", config::name_of(subject.kind()),
                     config::name_of(oracle.kind()), it.seed());
  it.run();
  const auto failed = std::ranges::count(it.lines, Outcome::failed, &CheckLine::outcome);
  const auto passed = std::ranges::count(it.lines, Outcome::passed, &CheckLine::outcome);
  out << fmt::format("\n{} checks passed, {} failed, {} not run\n", passed, failed,
                     std::ssize(it.lines) - passed - failed);
  return selftest::exit_code(it.lines);
}

int selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err) {
  const config::BackendKind kind = option_value("--backend", options.backend, config::parse_backend);
  const backend::Backend* subject = nullptr;
  try {
    subject = &backends::get(kind);
  } catch (const backends::NotLoaded&) {  // says nothing of the device
    throw;
  } catch (const Error& e) {
    return say_nothing_can_be_run(e, err);
  }
  return selftest(options, *subject, backends::get(config::BackendKind::cpu), out, err);
}

}  // namespace harness::cli
