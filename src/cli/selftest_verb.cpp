#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <random>
#include <thread>

#include "backend/load.h"
#include "base/error.h"
#include "base/units.h"
#include "base/version.h"
#include "cli/selftest_report.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "report/table.h"
#include "selftest/operation_check.h"
#include "selftest/performance.h"
#include "selftest/reference.h"
#include "selftest/step_checks.h"

namespace harness::cli {
namespace {

constexpr int nothing_ran = 3;  // the exit code of exit_code(lines) for it too

config::Precision parse_precision(const std::string& text) {
  if (text == "fp32") return config::Precision::fp32;
  if (text == "tf32") return config::Precision::tf32;
  if (text == "bf16") return config::Precision::bf16;
  fail("--precision: found {}; allowed: fp32, tf32, bf16", text);
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

class Check {
 public:
  Check(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
        std::ostream& err)
      : options_(options), subject_(subject), oracle_(oracle), err_(err) {
    threads_ =
        options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    seed_ = options.seed;
    if (seed_ == 0) seed_ = 1 + std::random_device{}() % 1'000'000;  // fresh numbers each time, and short to repeat
  }

  std::uint64_t seed() const { return seed_; }
  int threads() const { return threads_; }

  void run() {
    if (wanted("operations")) operations();
    if (wanted("reference")) reference();
    if (wanted("equality")) add(selftest::check_equality(subject_, {threads_, 1}), "equality");
    if (wanted("performance")) performance();
  }

  std::vector<selftest::CheckLine> lines;
  std::vector<selftest::Performance> performances;

 private:
  bool wanted(const std::string& suite) const {
    const auto has = [&](const std::string& s) {
      return std::ranges::find(options_.suites, s) != options_.suites.end();
    };
    return options_.suites.empty() || has("all") || has(suite);
  }

  void add(const std::vector<selftest::CheckLine>& more, const char* suite) {
    lines.insert(lines.end(), more.begin(), more.end());
    err_ << "selftest: " << suite << " done\n";
  }
  void not_run(const std::string& check, const std::string& why) {
    selftest::CheckLine line;
    line.check = check;
    line.outcome = selftest::Outcome::not_run;
    line.notes = {why};
    lines.push_back(std::move(line));
  }

  void operations() {
    selftest::OperationCheckOptions o;
    o.only = options_.only;
    o.large = !options_.fast;
    o.seed = seed_;
    o.threads = threads_;
    if (options_.verbose) o.progress = [&](const std::string& name) { err_ << "selftest: " << name << std::endl; };
    auto found = selftest::check_operations(selftest::operation_cases(subject_.kind() == config::BackendKind::cuda),
                                            subject_, oracle_, o);
    if (found.empty())
      not_run("operations", fmt::format("no operation case has {} in its name", fmt::join(options_.only, " or ")));
    add(found, "operations");
  }

  void reference() {
    std::string directory = options_.reference;
    if (directory.empty()) directory = selftest::find_reference(own_path());
    if (directory.empty()) {
      return not_run("reference",
                     "no reference found beside this program (share/reference or tests/reference); name its "
                     "folder with --reference");
    }
    add(selftest::check_reference(subject_, directory, {threads_, 1}), "reference");
  }

  // As said, else of the hardware file that names this device; an unknown device has no MFU.
  double peak_flops(config::Precision precision) const {
    if (!options_.peak_flops.empty()) return parse_flops(options_.peak_flops);
    const std::string hardware = selftest::find_beside(own_path(), {"configs/hardware", "share/configs/hardware"});
    if (hardware.empty()) return 0;
    for (const auto& [name, value] : subject_.identity({})) {
      if (name != "device") continue;
      const auto found =
          config::find_hardware_for_device(value, std::filesystem::path(hardware).parent_path() / "any.yaml");
      if (found) return found->peak_flops(precision);
    }
    return 0;
  }

  void performance() {
    selftest::PerformanceOptions o;
    const auto model = config::model_preset(options_.model);
    if (!model) fail("--model: found {}; allowed: {}", options_.model, fmt::join(config::model_preset_names(), ", "));
    o.model = *model;
    o.precision = parse_precision(options_.precision);
    o.micro_batch = options_.micro_batch;
    o.warmup_steps = options_.warmup_steps;
    o.steps = options_.steps;
    o.peak_flops = peak_flops(o.precision);
    o.seed = seed_;
    o.threads = threads_;
    try {
      performances.push_back(selftest::measure_performance(subject_, o));
      lines.push_back(selftest::judge_performance(performances.back()));
    } catch (const std::exception& e) {
      selftest::CheckLine line;
      line.check = "performance: " + options_.model;
      line.outcome = selftest::Outcome::failed;
      line.failures = {e.what()};
      lines.push_back(std::move(line));
    }
  }

  const SelftestOptions& options_;
  const backend::Backend& subject_;
  const backend::Backend& oracle_;
  std::ostream& err_;
  int threads_ = 1;
  std::uint64_t seed_ = 1;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) fail("cannot write {}: check that its directory exists and that the disk has space", path);
}

}  // namespace

int selftest(const SelftestOptions& options, const backend::Backend& subject, const backend::Backend& oracle,
             std::ostream& out, std::ostream& err) {
  std::vector<std::pair<std::string, std::string>> identity;
  try {
    identity = subject.identity({});
  } catch (const Error& e) {
    err << "selftest: nothing can be run: " << report::one_line(e.what()) << "\n";
    return nothing_ran;
  }
  Check it(options, subject, oracle, err);
  it.run();
  std::string text = tool_version() + "\n";
  for (const auto& [name, value] : identity) text += fmt::format("{}: {}\n", name, value);
  text += fmt::format("backend {} against {}, seed {}\n\n", config::name_of(subject.kind()),
                      config::name_of(oracle.kind()), it.seed());
  for (const selftest::Performance& p : it.performances) text += performance_text(p) + "\n";
  text += check_table(it.lines);
  const auto failed = std::ranges::count(it.lines, selftest::Outcome::failed, &selftest::CheckLine::outcome);
  const auto passed = std::ranges::count(it.lines, selftest::Outcome::passed, &selftest::CheckLine::outcome);
  text += fmt::format("\n{} checks passed, {} failed, {} not run\n", passed, failed,
                      static_cast<std::int64_t>(it.lines.size()) - passed - failed);
  out << text;
  if (!options.output.empty()) {
    write_file(options.output, text);
    write_file(options.output + ".jsonl", check_json_lines(it.lines, it.performances));
  }
  return selftest::exit_code(it.lines);
}

int selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err) {
  const backend::Backend *subject = nullptr, *oracle = nullptr;
  const config::BackendKind subject_kind = config::parse_backend(options.backend),
                            oracle_kind = config::parse_backend(options.oracle);
  try {
    subject = &backend::backend(subject_kind);
    oracle = &backend::backend(oracle_kind);
  } catch (const backend::NotLoaded& e) {  // says nothing of the device: not `nothing_ran`
    err << "selftest: " << report::one_line(e.what()) << "\n";
    return e.exit_code();
  } catch (const Error& e) {
    err << "selftest: nothing can be run: " << report::one_line(e.what()) << "\n";
    return nothing_ran;
  }
  return selftest(options, *subject, *oracle, out, err);
}

}  // namespace harness::cli
