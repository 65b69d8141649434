#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <thread>
#include <utility>

#include "analysis/cases.h"
#include "analysis/comparison.h"
#include "analysis/findings.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "explain/explain.h"
#include "report/export.h"
#include "report/page/page.h"
#include "report/sections.h"
#include "report/words.h"
#include "store/lock.h"
#include "store/result_file.h"
#include "traces/answer.h"

namespace harness::cli {
namespace {

// nullopt unless the command line or the file's configuration gives a price and a number of tokens.
std::optional<analysis::CostEstimate> cost_estimate(const CostOptions& options, const store::Result& result,
                                                    const analysis::Summary& summary) {
  auto cost = config::cost_of_text(result.config_text, result.overrides);
  if (!cost && !options.any()) return std::nullopt;
  if (!cost && (options.per_gpu_hour.empty() || options.run_tokens.empty())) {
    fail("--cost and --run-tokens need each other: --cost 2.50 --run-tokens 300e9");
  }
  if (!cost) cost.emplace();
  const auto take = [](const char* option, const std::string& text, auto parse, auto& into) {
    if (!text.empty()) into = option_value(option, text, parse);
  };
  take("--cost", options.per_gpu_hour, config::parse_price, cost->per_gpu_hour);
  take("--run-tokens", options.run_tokens, config::parse_tokens, cost->run_tokens);
  take("--currency", options.currency, config::parse_currency, cost->currency);
  return analysis::estimate_cost(result, summary, *cost);
}

int show_once(const ShowOptions& options, std::ostream& out) {
  if (options.breakdown && options.format != "text" && options.format != "md" && options.format != "json") {
    fail("--breakdown prints text, md or json, not {}; the file itself holds the numbers (docs/file-format.md)",
         options.format);
  }
  if (options.format == "csv" && options.cost.any())
    fail("--cost, --run-tokens and --currency are for text, md and json: csv holds the cases alone");
  const store::Result result = store::read_result(options.files.at(0), {.timeline = options.breakdown});
  analysis::Findings findings;
  if (options.breakdown) {
    findings = analysis::find_all(result);
    findings.explanation = explain::explain(result);
  } else {
    findings.summary = analysis::summarise(result);
  }
  const analysis::Summary& summary = findings.summary;
  findings.cost = cost_estimate(options.cost, result, summary);
  const report::Detail detail = options.verbose ? report::Detail::full : report::Detail::brief;
  if (options.format == "csv") {
    out << report::show_csv(result, summary);
  } else if (options.format == "json") {
    out << report::show_json(result, summary, findings.cost, findings.explanation);
  } else {
    report::Document document = options.breakdown
                                    ? report::breakdown_document(result, findings, {options.cases, detail})
                                    : report::show_document(result, summary, findings.cost, detail);
    if (options.cost.any() && !findings.cost) document.notices.push_back({report::no_price});
    print(std::move(document), options.format, options.view, out);
  }
  return analysis::exit_code(summary);
}

const TerminalText clear_screen{"\x1b[H\x1b[2J"};

const char* state_word(const store::Result& result, store::Process writer) {
  if (result.state == store::RunState::complete) return "Complete";
  if (result.state == store::RunState::partial) return "Stopped";
  if (writer == store::Process::runs) return "Running";
  return writer == store::Process::gone ? "Killed" : "Unfinished";
}

std::string progress_line(const store::Result& result, const analysis::HowFar& far, store::Process writer) {
  std::string line = fmt::format("{}: {} of {} rounds, {} of {} blocks", state_word(result, writer), far.rounds_done,
                                 far.rounds, far.blocks_done, far.blocks);
  if (result.state == store::RunState::running && writer != store::Process::gone && far.remaining_s) {
    line += fmt::format("; about {} left", show_seconds(*far.remaining_s));
  }
  return line + ".";
}

void say_standing(const store::Standing& standing, std::ostream& err) {
  if (standing.writer == store::Process::runs) err << standing.text << "\n" << std::flush;
  if (standing.writer != store::Process::gone) return;
  err << standing.text << "; `harness sweep --resume` continues the file. Ctrl-C ends this.\n" << std::flush;
}

// The file's path with another ending: results/x.h5 becomes results/x.html, rank0.json.gz rank0.html.
std::string default_output(const ReportOptions& options) {
  std::filesystem::path path(options.files.front());
  if (path.extension() == ".gz") path.replace_extension();
  path.replace_extension(options.format);
  return path.string();
}

// Reports an occupied path before the work, not after it. `path`: "-" for the terminal.
void check_target(const std::string& path, const std::vector<std::string>& files, bool force) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, file, ignored))
      fail("this would overwrite {} itself: name another file with -o", quote(file));
  }
  if (path != "-") check_output(path, force);
}

// Returns whether the text went to a file, not to the terminal.
bool put_text(const std::string& text, const std::string& path, bool force, std::ostream& out) {
  if (path != "-") {
    write_output(path, text, force);
    return true;
  }
  out << text;
  return false;
}

store::Result result_of(const std::string& path) {
  try {
    return store::read_result(path);
  } catch (const Error& error) {
    std::error_code ignored;
    if (path.ends_with(".h5") || !std::filesystem::is_regular_file(path, ignored)) throw;
    fail(
        "{}; `report` also takes traces of the PyTorch profiler (JSON) and of Nsight Systems (`nsys export --type "
        "sqlite`)",
        error.what());
  }
}

report::Document report_on_result(const ReportOptions& options) {
  if (options.files.size() > 1)
    fail(
        "report writes a page on one result file, or on the traces of one job; {} is no trace; `harness compare` "
        "takes several results",
        quote(options.files.front()));
  const store::Result result = result_of(options.files.front());
  analysis::Findings findings = analysis::find_all(result);
  findings.cost = cost_estimate(options.cost, result, findings.summary);
  findings.explanation = explain::explain(result);
  report::Document document = page::make_report(result, findings);
  if (options.cost.any() && !findings.cost) document.notices.push_back({report::no_price});
  return document;
}

report::Export planned_case(const std::string& path, const std::string& case_name) {
  const config::Experiment experiment = config::load_experiment(path, {});
  std::vector<std::string> names{"baseline"};
  for (const config::Change& change : experiment.changes) names.push_back(config::case_name(change));
  const std::size_t at = case_name.empty() ? 0 : report::find_name(names, case_name);
  const config::Settings& settings = at == 0 ? experiment.baseline : experiment.changes[at - 1].settings;
  return report::all_settings(settings, config::name_of(experiment.backend),
                              config::name_of(config::stands_for(experiment)),
                              settings.workload == "gpt" ? std::optional(experiment.model) : std::nullopt,
                              {fmt::format("All settings of {} in {}: planned, not measured.", names[at], path)});
}

constexpr int slower_code = 2, incomparable_code = 3, unreliable_code = 4;

// Result files and their summaries; ComparedFile points to them. A label is the name of the file if all are unique,
// else its path.
class LoadedFiles {
 public:
  explicit LoadedFiles(const std::vector<std::string>& paths) {
    const auto name_of = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
    const std::set<std::string> unique_paths(paths.begin(), paths.end());
    std::set<std::string> unique_names;
    for (const std::string& path : paths) unique_names.insert(name_of(path));
    const bool by_name = unique_names.size() == unique_paths.size();
    for (const std::string& path : paths) {
      const store::Result& result =
          results_.emplace_back(store::read_result(path, {.rank_seconds = false, .timeline = false}));
      const std::string label = escaped(by_name ? name_of(path) : path);
      files.push_back({label, &result, &summaries_.emplace_back(analysis::summarise(result))});
    }
  }
  std::vector<analysis::ComparedFile> files;

 private:
  std::deque<store::Result> results_;
  std::deque<analysis::Summary> summaries_;
};

void print(const report::CompareReport& report, const CompareOptions& options, std::ostream& out) {
  if (options.format == "json") {
    out << report::compare_json(report);
  } else {
    print(report::compare_document(report, options.verbose || options.format == "md"), options.format, options.view,
          out);
  }
}

// Compares two sides (times, or effects with --reproduce), or pools runs of one configuration.
int compare_files(const CompareOptions& options, const std::optional<analysis::Gate>& gate, std::ostream& out) {
  std::vector<std::string> paths = options.files;
  paths.insert(paths.end(), options.with.begin(), options.with.end());
  const bool two_sides = !options.with.empty() || options.files.size() == 2;
  const LoadedFiles loaded(paths);
  const std::span<const analysis::ComparedFile> all(loaded.files);
  const std::size_t of_first = options.with.empty() ? 1 : options.files.size();
  report::CompareReport report;
  report.files = loaded.files;
  report.anyway = options.anyway;
  report.differences = analysis::find_differences(all);
  report.unreliable = analysis::why_unreliable(all);
  int code = report.unreliable.empty() ? 0 : unreliable_code;
  if (!two_sides) {
    const auto& pool = report.answer.emplace<analysis::Pool>(analysis::pool_runs(all));
    if (pool.unreliable) code = unreliable_code;
  } else if (report.incomparable = analysis::why_incomparable(all, !options.reproduce);
             !report.incomparable.empty() && !options.anyway) {
    code = incomparable_code;
  } else if (options.reproduce) {
    report.answer = analysis::reproduce(all.front(), all.back());
  } else {
    const auto& comparison = report.answer.emplace<analysis::Comparison>(
        analysis::compare_sides(all.first(of_first), all.subspan(of_first), options.anyway));
    if (gate && code == 0 && comparison.comparisons > 0 && analysis::fails_gate(*gate, comparison)) code = slower_code;
  }
  print(report, options, out);
  if (report.nothing_in_common()) return incomparable_code;
  // The times of the other cases count, so what they show comes first.
  const bool any_failed = std::ranges::any_of(
      all, [](const analysis::ComparedFile& file) { return analysis::exit_code(*file.summary) != 0; });
  return code == 0 && any_failed ? unreliable_code : code;
}

int history(const CompareOptions& options, const std::optional<analysis::Gate>& gate, std::ostream& out) {
  const LoadedFiles loaded(options.files);
  report::CompareReport report;
  std::vector<analysis::ComparedFile> counting;  // one unreliable run in the series must not keep the alarm on
  for (const analysis::ComparedFile& file : loaded.files) {
    const auto reasons = analysis::why_unreliable(std::span(&file, 1));
    if (reasons.empty()) counting.push_back(file);
    for (const std::string& reason : reasons) report.unreliable.push_back("Left out: " + reason);
  }
  if (counting.empty()) throw Error("no file counts: " + join(report.unreliable, " "), unreliable_code);
  const auto incomparable = analysis::why_incomparable(counting);
  if (!incomparable.empty() && !options.anyway) {
    throw Error("these files are not a series (--anyway takes them as one): " + join(incomparable, "; "),
                incomparable_code);
  }
  analysis::History history = analysis::find_history(counting);
  const analysis::CaseHistory* clearest = history.clearest();
  if (clearest != nullptr) {
    report.files = {history.files[clearest->largest->before], history.files[clearest->largest->run]};
    report.differences = analysis::find_differences(report.files);
  }
  const bool fails = gate && std::ranges::any_of(history.cases, [&](const analysis::CaseHistory& row) {
                       // A proven change below the smallest effect may exceed the gate's share.
                       const bool proven = analysis::moved(row.verdict) || row.verdict == analysis::Verdict::same;
                       return proven && row.largest->ratio > 1 + gate->share.value_or(history.smallest_effect);
                     });
  report.answer = std::move(history);
  print(report, options, out);
  return fails ? slower_code : 0;
}

}  // namespace

int show(const ShowOptions& options, std::ostream& out, std::ostream& err) {
  if (options.files.size() > 1)
    fail(
        "show takes one result file, but {} were given; `harness compare` says what differs between two, and what "
        "three or more runs of one configuration prove together",
        options.files.size());
  if (!options.follow) return show_once(options, out);
  if (options.format != "text") fail("--follow prints text, not {}", options.format);
  constexpr std::chrono::seconds between_looks{2};
  return follow(
      options, out, err, [&] { std::this_thread::sleep_for(between_looks); }, is_terminal(out));
}

int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw) {
  std::optional<std::filesystem::file_time_type> known;
  int rounds_shown = -1;
  store::Process writer = store::Process::unknown;
  for (;; wait()) {
    const store::Standing standing = store::standing_of(options.files.at(0));
    const bool other_writer = std::exchange(writer, standing.writer) != standing.writer;
    if (other_writer) say_standing(standing, err);
    std::error_code not_known;
    const auto now = std::filesystem::last_write_time(options.files.at(0), not_known);
    if (!not_known && known == now && !other_writer) continue;
    known = now;
    const store::Result result = store::read_result(options.files.at(0), {.timeline = false});
    const analysis::HowFar far = analysis::how_far(result);
    // A stopped sweep that is resumed holds the lock for a while before it writes.
    const bool resumes = result.state == store::RunState::partial && writer == store::Process::runs;
    const bool running = result.state == store::RunState::running || resumes;
    if (running && far.rounds_done == rounds_shown) continue;
    if (redraw) {
      out << clear_screen;
    } else if (rounds_shown >= 0) {
      out << "\n";
    }
    rounds_shown = far.rounds_done;
    out << progress_line(result, far, writer) << "\n";
    const int code = show_once(options, out);
    out << std::flush;
    if (!running || !out) return code;
  }
}

int report(const ReportOptions& options, std::ostream& out) {
  const std::string path = options.output.empty() ? default_output(options) : options.output;
  check_target(path, options.files, options.force);
  const bool traces = std::ranges::any_of(options.files, traces::is_trace_file);
  if (traces && options.cost.any())
    fail("--cost, --run-tokens and --currency are for a result file: traces say nothing of what a change is worth");
  const report::Document document =
      traces ? traces::make_report(traces::read_traces(options.files)) : report_on_result(options);
  const std::string text = options.format == "md" ? report::write_markdown(document) : page::page(document);
  if (put_text(text, path, options.force, out)) out << "report: " << escaped(path) << "\n";
  return 0;
}

int trace(const TraceOptions& options, std::ostream& out, std::ostream& err) {
  const std::string beside = std::filesystem::path(options.file).replace_extension(".trace.json").string();
  const std::string path = options.output.empty() ? beside : options.output;
  check_target(path, {options.file}, options.force);
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = true});
  if (put_text(report::trace_json(result, options.case_name), path, options.force, out))
    err << fmt::format("wrote {}: open it in ui.perfetto.dev or chrome://tracing\n", quote(path));
  return 0;
}

int export_settings(const ExportOptions& options, std::ostream& out) {
  static const std::map<std::string, report::ExportFormat> formats{{"env", std::nullopt},
                                                                   {"megatron", config::Framework::megatron},
                                                                   {"deepspeed", config::Framework::deepspeed},
                                                                   {"torchtitan", config::Framework::torchtitan}};
  const bool is_next = options.format == "harness";
  const auto text_of_settings = [&](const report::Export& settings) {
    return report::export_text(settings, formats.at(options.format));
  };
  if (options.file.ends_with(".yaml") || options.file.ends_with(".yml")) {
    if (is_next)
      fail("{} is a configuration already; --format says for which framework its settings are", options.file);
    out << text_of_settings(planned_case(options.file, options.case_name));
    return 0;
  }
  const store::Result result = store::read_result(options.file, {.rank_seconds = false, .timeline = false});
  const analysis::Summary summary = analysis::summarise(result);
  const std::string name = std::filesystem::path(options.file).filename().string();
  if (!is_next && !options.case_name.empty()) {
    out << text_of_settings(report::planned_case(result, summary, options.case_name, name));
    return 0;
  }
  const report::Export proven = report::find_proven(result, summary, options.case_name, name);
  out << (is_next ? report::next_configuration(result, summary, proven, name) : text_of_settings(proven));
  return 0;
}

int compare(const CompareOptions& options, std::ostream& out) {
  std::optional<analysis::Gate> gate;
  if (!options.fail_on.empty()) gate = analysis::parse_gate(options.fail_on);  // before any file is read
  if (options.history) {
    if (!options.with.empty() || options.reproduce)
      fail("--history takes all files as one series: leave out --with and --reproduce");
    return history(options, gate, out);
  }
  if (options.files.size() + options.with.size() < 2)
    fail("compare needs at least two result files, such as: compare monday.h5 friday.h5");
  if (options.reproduce && gate)
    fail("--fail-on judges times, but --reproduce compares effects: give only one of them");
  const bool one_side = options.with.empty() && options.files.size() > 2;
  if (one_side && (gate || options.reproduce || options.anyway))
    fail(
        "--fail-on, --reproduce and --anyway are about two sides, but these {} files are taken as runs of one "
        "configuration: give two files, or the runs of the other side after --with",
        options.files.size());
  if (options.reproduce && options.files.size() + options.with.size() > 2)
    fail("--reproduce compares the effects of two files: compare --reproduce A B");
  return compare_files(options, gate, out);
}

}  // namespace harness::cli
