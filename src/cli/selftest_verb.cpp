#include <algorithm>
#include <filesystem>
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

constexpr std::size_t max_shown_failures = 8;  // per check; further ones are counted

bool is_wanted(const SelftestOptions& options, const std::string& suite) {
  const std::set<std::string> named(options.suites.begin(), options.suites.end());
  return named.empty() || named.contains("all") || named.contains(suite);
}

// Prints the outcome of a check: "operations: gelu fp32: passed (6 cases, worst error 1.2e-05 of 1e-04)". Prints each
// note once, even if several checks have it.
void print(const CheckLine& line, std::set<std::string>& notes, std::ostream& out) {
  out << fmt::format("{}: {}", line.check, selftest::name_of(line.outcome));
  if (line.outcome != Outcome::not_run && line.tolerance > 0)
    out << fmt::format(" ({} cases, worst error {:.1e} of {:.0e})", line.cases, line.error, line.tolerance);
  out << "\n";
  for (std::size_t i = 0; i < std::min(line.failures.size(), max_shown_failures); ++i)
    out << fmt::format("  FAILED {}\n", report::one_line(line.failures[i]));
  if (line.failures.size() > max_shown_failures)
    out << fmt::format("  FAILED and {} more\n", line.failures.size() - max_shown_failures);
  for (const std::string& note : line.notes) {
    if (notes.insert(note).second) out << fmt::format("  note: {}\n", note);
  }
  out << std::flush;  // survives a crash of later checks
}

std::string reference_folder(const SelftestOptions& options) {
  if (!options.reference.empty()) return options.reference;
  return selftest::find_reference(std::filesystem::read_symlink("/proc/self/exe").string());
}

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
  // Fresh numbers each time, and short to repeat.
  const std::uint64_t seed = options.seed > 0 ? options.seed : 1 + std::random_device{}() % 1'000'000;
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  out << tool_version() << "\n";
  for (const auto& [name, value] : identity) out << fmt::format("{}: {}\n", name, value);
  out << fmt::format("backend {} against {}, seed {}\n\n", config::name_of(subject.kind()),
                     config::name_of(oracle.kind()), seed);
  std::vector<CheckLine> lines;
  std::set<std::string> notes;
  const auto finished = [&](const CheckLine& line) {
    lines.push_back(line);
    print(line, notes, out);
  };
  const auto not_run = [&](const std::string& check, const std::string& why) {
    finished({.check = check, .outcome = Outcome::not_run, .notes = {why}});
  };
  if (is_wanted(options, "operations")) {
    selftest::OperationCheckOptions o{.only = options.only, .large = !options.fast, .seed = seed, .threads = threads};
    if (options.verbose) o.progress = [&](const std::string& name) { err << "selftest: " << name << std::endl; };
    o.finished = finished;
    constexpr double ada = 8.9, blackwell = 10;
    const std::string capability = value_of(identity, "compute_capability");  // of a GPU; a CPU emulates what any has
    const double has = capability.empty() ? blackwell : number_in<double>(capability).value_or(0);
    const auto cases =
        selftest::operation_cases(config::traits_of(subject.kind()).has_tf32, has >= ada, has >= blackwell);
    if (selftest::check_operations(cases, subject, oracle, o).empty())
      not_run("operations", fmt::format("no operation case has {} in its name", fmt::join(options.only, " or ")));
  }
  if (is_wanted(options, "reference")) {
    if (const std::string folder = reference_folder(options); !folder.empty()) {
      selftest::check_reference(subject, folder, threads, finished);
    } else {
      not_run("reference",
              "no reference found beside this program (share/harness/reference or tests/reference); name its folder "
              "with --reference");
    }
  }
  const auto failed = std::ranges::count(lines, Outcome::failed, &CheckLine::outcome);
  const auto passed = std::ranges::count(lines, Outcome::passed, &CheckLine::outcome);
  out << fmt::format("\n{} checks passed, {} failed, {} not run\n", passed, failed,
                     std::ssize(lines) - passed - failed);
  return selftest::exit_code(lines);
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
