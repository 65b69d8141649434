#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <thread>

#include "backends/backends.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/document.h"
#include "selftest/checks.h"

namespace harness::cli {
namespace {

constexpr std::size_t max_shown_failures = 8;  // of one line; the rest is counted

using Json = nlohmann::ordered_json;

// The table, then one sentence for each failure and note.
std::string check_table(const std::vector<selftest::CheckLine>& lines) {
  constexpr std::size_t width = 118;  // columns
  report::Table table;
  table.columns = {{"check", true}, {"cases"}, {"worst error"}, {"allowed"}, {"verdict", true}};
  struct Note {  // said once, however many lines have it
    std::string text, check;
    int others;
  };
  std::vector<Note> notes;
  report::List below{{}, report::List::Mark::none};
  for (const selftest::CheckLine& l : lines) {
    const bool measured = l.tolerance > 0 && l.cases > 0 && l.outcome != selftest::Outcome::not_run;
    table.rows.push_back({l.check, l.cases > 0 ? std::to_string(l.cases) : "",
                          measured ? fmt::format("{:.1e}", l.error) : "",
                          measured ? fmt::format("{:.0e}", l.tolerance) : "", selftest::name_of(l.outcome)});
    for (std::size_t i = 0; i < std::min(l.failures.size(), max_shown_failures); ++i)
      below.items.push_back(fmt::format("FAILED {}: {}", l.check, l.failures[i]));
    if (l.failures.size() > max_shown_failures)
      below.items.push_back(fmt::format("FAILED {}: and {} more", l.check, l.failures.size() - max_shown_failures));
    for (const std::string& note : l.notes) {
      const auto it = std::ranges::find(notes, note, &Note::text);
      if (it == notes.end()) {
        notes.push_back({note, l.check, 0});
      } else {
        ++it->others;
      }
    }
  }
  for (const Note& n : notes) {
    const std::string others = n.others > 0 ? fmt::format(" and {} more", n.others) : "";
    below.items.push_back(fmt::format("note: {} ({}{})", n.text, n.check, others));
  }
  report::Document document;
  report::Section& section = document.sections.emplace_back();
  section.add(report::Numbers{"", std::move(table)});
  section.add(std::move(below));
  return report::write_text(document, width);
}

// One check as it ends: "operations: gelu fp32: passed (6 cases, worst error 1.2e-05 of 1e-04)".
std::string check_sentence(const selftest::CheckLine& l) {
  std::string text = fmt::format("{}: {}", l.check, selftest::name_of(l.outcome));
  if (l.outcome != selftest::Outcome::not_run && l.tolerance > 0) {
    text += fmt::format(" ({} cases, worst error {:.1e} of {:.0e})", l.cases, l.error, l.tolerance);
  }
  if (!l.failures.empty()) text += ": " + report::one_line(l.failures.front());
  return text + "\n";
}

// One JSON object per line, for other programs.
std::string check_json_lines(const std::vector<selftest::CheckLine>& lines) {
  std::string text;
  for (const selftest::CheckLine& l : lines) {
    const Json line{{"check", l.check},
                    {"cases", l.cases},
                    {"error", std::isfinite(l.error) ? Json(l.error) : Json(nullptr)},
                    {"tolerance", l.tolerance},
                    {"verdict", selftest::name_of(l.outcome)},
                    {"failures", l.failures},
                    {"notes", l.notes}};
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

constexpr int nothing_ran = 3;  // the exit code of exit_code(lines) for it too

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

void write_file(const std::string& path, const std::string& text) {
  // Under another name first: whatever ends this program, the file is whole.
  const std::string unfinished = path + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << text;
  std::error_code failed;
  if (file.flush()) std::filesystem::rename(unfinished, path, failed);
  if (!file || failed) fail("cannot write {}: check that its directory exists and that the disk has space", path);
}

// Writes to the terminal and to the file of -o: each part at once, so that it is there whatever comes after.
class Transcript {
 public:
  Transcript(std::ostream& out, const std::string& path) : out_(out), path_(path) {
    if (path_.empty()) return;
    file_.open(path_, std::ios::binary | std::ios::trunc);
    if (!file_) fail("cannot write {}: check that its directory exists and that the disk has space", path_);
  }
  void say(const std::string& text) {
    out_ << text << std::flush;
    if (path_.empty()) return;
    file_ << text;
    if (!file_.flush()) fail("cannot write {}: check that the disk has space", path_);
  }

 private:
  std::ostream& out_;
  const std::string path_;
  std::ofstream file_;
};

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
        Transcript& transcript, std::ostream& err)
      : options_(options), subject_(subject), oracle_(oracle), transcript_(transcript), err_(err) {
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
  }

  std::vector<selftest::CheckLine> lines;

 private:
  bool wanted(const std::string& suite) const {
    const auto has = [&](const std::string& s) {
      return std::ranges::find(options_.suites, s) != options_.suites.end();
    };
    return options_.suites.empty() || has("all") || has(suite);
  }

  void add(const selftest::CheckLine& line) {
    lines.push_back(line);
    transcript_.say(check_sentence(line));
    store();
  }
  void done(const char* suite) { err_ << "selftest: " << suite << " done\n"; }
  selftest::StepCheckOptions step_options() {
    return {threads_, [this](const selftest::CheckLine& line) { add(line); }};
  }
  void not_run(const std::string& check, const std::string& why) {
    selftest::CheckLine line;
    line.check = check;
    line.outcome = selftest::Outcome::not_run;
    line.notes = {why};
    add(line);
  }
  // All that is known by now.
  void store() const {
    if (!options_.output.empty()) write_file(options_.output + ".jsonl", check_json_lines(lines));
  }

  void operations() {
    selftest::OperationCheckOptions o;
    o.only = options_.only;
    o.large = !options_.fast;
    o.seed = seed_;
    o.threads = threads_;
    if (options_.verbose) o.progress = [&](const std::string& name) { err_ << "selftest: " << name << std::endl; };
    o.finished = [&](const selftest::CheckLine& line) { add(line); };
    constexpr double ada = 8.9, blackwell = 10;
    const double has = compute_capability(subject_);
    const auto cases =
        selftest::operation_cases(config::traits_of(subject_.kind()).has_tf32, has >= ada, has >= blackwell);
    const auto found = selftest::check_operations(cases, subject_, oracle_, o);
    if (found.empty())
      not_run("operations", fmt::format("no operation case has {} in its name", fmt::join(options_.only, " or ")));
    done("operations");
  }

  void reference() {
    std::string directory = options_.reference;
    if (directory.empty()) directory = selftest::find_reference(own_path());
    if (directory.empty()) {
      return not_run("reference",
                     "no reference found beside this program (share/harness/reference or tests/reference); name "
                     "its folder with --reference");
    }
    selftest::check_reference(subject_, directory, step_options());
    done("reference");
  }

  const SelftestOptions& options_;
  const backend::Backend& subject_;
  const backend::Backend& oracle_;
  Transcript& transcript_;
  std::ostream& err_;
  int threads_ = 1;
  std::uint64_t seed_ = 1;
};

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
  Transcript transcript(out, options.output);
  Check it(options, subject, oracle, transcript, err);
  std::string head = tool_version() + "\n";
  for (const auto& [name, value] : identity) head += fmt::format("{}: {}\n", name, value);
  transcript.say(head + fmt::format("backend {} against {}, seed {}\n\n", config::name_of(subject.kind()),
                                    config::name_of(oracle.kind()), it.seed()));
  it.run();
  const auto failed = std::ranges::count(it.lines, selftest::Outcome::failed, &selftest::CheckLine::outcome);
  const auto passed = std::ranges::count(it.lines, selftest::Outcome::passed, &selftest::CheckLine::outcome);
  transcript.say("\n" + check_table(it.lines) +
                 fmt::format("\n{} checks passed, {} failed, {} not run\n", passed, failed,
                             static_cast<std::int64_t>(it.lines.size()) - passed - failed));
  return selftest::exit_code(it.lines);
}

int selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err) {
  const backend::Backend *subject = nullptr, *oracle = nullptr;
  const config::BackendKind subject_kind = option_value("--backend", options.backend, config::parse_backend),
                            oracle_kind = option_value("--oracle", options.oracle, config::parse_backend);
  try {
    subject = &backends::get(subject_kind);
    oracle = &backends::get(oracle_kind);
  } catch (const backends::NotLoaded& e) {  // says nothing of the device: not `nothing_ran`
    err << "selftest: " << report::one_line(e.what()) << "\n";
    return e.exit_code();
  } catch (const Error& e) {
    err << "selftest: nothing can be run: " << report::one_line(e.what()) << "\n";
    return nothing_ran;
  }
  return selftest(options, *subject, *oracle, out, err);
}

}  // namespace harness::cli
