#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <ostream>

#include "analysis/comparison.h"
#include "analysis/runs.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "report/show_comparison.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

constexpr int slower_code = 2, incomparable_code = 3, unreliable_code = 4;

struct Loaded {
  store::Result result;
  analysis::Summary summary;
  std::vector<analysis::CaseBreakdown> breakdowns;
};

// The timeline is dropped once it is broken down, so that those of several large runs are never in memory at once.
Loaded load(const std::string& path) {
  Loaded file;
  file.result = store::read_result(path, {.rank_seconds = false, .timeline = true});
  file.summary = analysis::summarise(file.result);
  file.breakdowns = analysis::break_down(file.result);
  file.result.timeline = {};
  file.result.totals = {};
  return file;
}

// By the timeline; by the ranks' splits where a case has none (baseline_again, files without timelines).
analysis::PartsOf parts_from(const std::vector<Loaded>& loaded) {
  return [&loaded](const store::Result& result, int case_index) {
    const auto file = std::ranges::find(loaded, &result, [](const Loaded& candidate) { return &candidate.result; });
    const analysis::CaseBreakdown* parts =
        file == loaded.end() ? nullptr : analysis::find_breakdown(file->breakdowns, case_index);
    return parts != nullptr ? analysis::parts_of_breakdown(*parts) : analysis::parts_of_splits(result, case_index);
  };
}

void print(const report::ComparisonReport& report, const CompareOptions& options, std::ostream& out) {
  const std::string& format = options.format;
  static const std::map<std::string, report::Format> formats{
      {"text", report::Format::text}, {"md", report::Format::md}, {"json", report::Format::json}};
  if (format == "text") {
    out << view(report::comparison_document(report), options.view, out);
  } else {
    out << report::show(report, formats.at(format));
  }
}

// The sides, each a stretch of the list of all files.
std::vector<std::span<const analysis::ComparedFile>> sides_of(const CompareOptions& options,
                                                              const std::vector<analysis::ComparedFile>& files) {
  const std::span<const analysis::ComparedFile> all(files);
  if (!options.with.empty()) return {all.first(options.files.size()), all.subspan(options.files.size())};
  std::vector<std::span<const analysis::ComparedFile>> sides;
  for (std::size_t i = 0; i < all.size(); ++i) sides.push_back(all.subspan(i, 1));
  return sides;
}

void compare_all(const CompareOptions& options, const std::vector<std::span<const analysis::ComparedFile>>& sides,
                 const analysis::PartsOf& parts_of, report::ComparisonReport& report) {
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (options.reproduce) {
      report.reproductions.push_back(analysis::reproduce(sides[0], sides[i]));
    } else {
      report.comparisons.push_back(
          analysis::compare_sides(sides[0], sides[i], {.parts_of = parts_of, .baselines_anyway = options.anyway}));
    }
  }
}

void print(const report::HistoryReport& report, const CompareOptions& options, std::ostream& out) {
  const std::string& format = options.format;
  if (format == "json") {
    out << report::history_json(report);
  } else if (format == "text") {
    out << view(report::history_document(report), options.view, out);
  } else {
    out << report::write(report::history_document(report), report::Format::md);
  }
}

// What does not count in a history: an alarm must not last for as long as one bad night is in it.
std::vector<analysis::ComparedFile> those_that_count(const std::vector<analysis::ComparedFile>& files,
                                                     std::vector<std::string>& left_out) {
  std::vector<analysis::ComparedFile> counting;
  for (const analysis::ComparedFile& file : files) {
    const auto reasons = analysis::why_unreliable(std::span(&file, 1));
    if (reasons.empty()) counting.push_back(file);
    for (const std::string& reason : reasons) left_out.push_back("Left out: " + reason);
  }
  return counting;
}

int history(const CompareOptions& options, const std::optional<analysis::Gate>& gate, std::ostream& out) {
  if (!options.with.empty() || options.reproduce)
    fail("--history takes all files as one series: leave out --with and --reproduce");
  if (gate && gate->fails_on != analysis::Gate::FailsOn::slower)
    fail("--history names proven changes; --fail-on takes slower or slower:PERCENT with it");
  std::deque<store::Result> results;
  std::deque<analysis::Summary> summaries;
  std::vector<analysis::ComparedFile> files;
  const auto labels = labels_of(options.files);
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    results.push_back(store::read_result(options.files[i], {.rank_seconds = false, .timeline = false}));
    summaries.push_back(analysis::summarise(results.back()));
    files.push_back({labels[i], &results.back(), &summaries.back()});
  }
  report::HistoryReport report;
  const auto counting = those_that_count(files, report.left_out);
  if (counting.empty()) throw Error("no file counts: " + join(report.left_out, " "), unreliable_code);
  const auto incomparable = analysis::why_incomparable(counting);
  if (!incomparable.empty() && !options.anyway) {
    throw Error("these files are no series (--anyway takes them as one): " + join(incomparable, " "),
                incomparable_code);
  }
  report.history = analysis::find_history(counting);
  print(report, options, out);
  const bool fails = gate && std::ranges::any_of(report.history.cases, [&](const analysis::CaseHistory& row) {
                       return report::fails(*gate, report.history, row);
                     });
  return fails ? slower_code : 0;
}

}  // namespace

int compare(const CompareOptions& options, std::ostream& out) {
  std::vector<std::string> paths = options.files;
  paths.insert(paths.end(), options.with.begin(), options.with.end());
  std::optional<analysis::Gate> gate;
  if (!options.fail_on.empty()) gate = analysis::parse_gate(options.fail_on);  // before any file is read
  if (options.history) return history(options, gate, out);
  if (paths.size() < 2) fail("compare needs at least two result files, such as: compare monday.h5 friday.h5");
  if (options.reproduce && !options.fail_on.empty())
    fail("--fail-on judges times, but --reproduce compares effects: give only one of them");
  std::vector<Loaded> loaded;
  loaded.reserve(paths.size());
  for (const auto& path : paths) loaded.push_back(load(path));
  report::ComparisonReport report;
  const auto labels = labels_of(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    report.files.push_back({labels[i], &loaded[i].result, &loaded[i].summary});
  }
  const auto sides = sides_of(options, report.files);
  report.anyway = options.anyway;
  report.differences = analysis::find_differences(report.files);
  report.incomparable = analysis::why_incomparable(report.files, {.rank_counts = !options.reproduce});
  report.unreliable = analysis::why_unreliable(report.files);
  if (report.incomparable.empty() || options.anyway) compare_all(options, sides, parts_from(loaded), report);
  print(report, options, out);
  if (report.nothing_in_common()) return incomparable_code;
  if (!report.unreliable.empty()) return unreliable_code;
  if (!gate) return 0;
  switch (analysis::judge_gate(*gate, report.comparisons)) {
    case analysis::GateOutcome::fails:
      return slower_code;
    case analysis::GateOutcome::disturbed:
      return unreliable_code;
    case analysis::GateOutcome::passes:
      break;
  }
  return 0;
}

}  // namespace harness::cli
