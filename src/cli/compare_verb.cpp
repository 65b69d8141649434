#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include "analysis/comparison.h"
#include "analysis/reproduction.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/verbs.h"
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

// The files' own names where they tell the files apart, else the paths as they were given.
std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(std::filesystem::path(path).filename().string());
  const std::set<std::string> unique(names.begin(), names.end()), unique_paths(paths.begin(), paths.end());
  return unique.size() == unique_paths.size() ? names : paths;
}

// The share that "slower:5" names; the smallest effect where it names none.
double threshold_of(const std::string& fail_on, double smallest_effect) {
  const std::string word = fail_on.substr(0, fail_on.find(':'));
  if (word != "slower") fail("--fail-on {}: expected slower or slower:PERCENT, such as slower:5", quote(fail_on));
  if (word.size() == fail_on.size()) return smallest_effect;
  std::string number = fail_on.substr(word.size() + 1);
  if (!number.empty() && number.back() == '%') number.pop_back();
  double percent = 0;
  try {
    percent = parse_real(number);
  } catch (const Error& error) {
    fail("--fail-on {}: {}; expected a percentage, such as slower:5", quote(fail_on), error.what());
  }
  if (!std::isfinite(percent) || percent < 0 || percent > 10000) {
    fail("--fail-on {}: allowed: 0 to 10000 percent, such as slower:5", quote(fail_on));
  }
  return percent / 100;
}

report::Format format_of(const std::string& word) {
  static const std::map<std::string, report::Format> formats{
      {"text", report::Format::text}, {"md", report::Format::md}, {"json", report::Format::json}};
  return formats.at(word);
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

bool nothing_in_common(const report::ComparisonReport& report) {
  return std::ranges::all_of(report.comparisons,
                             [](const analysis::Comparison& pair) { return pair.comparisons == 0; }) &&
         std::ranges::all_of(report.reproductions,
                             [](const analysis::Reproduction& pair) { return pair.changes.empty(); });
}

}  // namespace

int compare(const CompareOptions& options, std::ostream& out) {
  std::vector<std::string> paths = options.files;
  paths.insert(paths.end(), options.with.begin(), options.with.end());
  if (paths.size() < 2) fail("compare needs at least two result files, such as: compare monday.h5 friday.h5");
  if (options.reproduce && !options.fail_on.empty())
    fail("--fail-on judges times, but --reproduce compares effects: give only one of them");
  if (!options.fail_on.empty()) threshold_of(options.fail_on, 0);  // a mistake in it shows before any file is read
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
  out << report::show(report, format_of(options.format));
  if (report.comparisons.empty() && report.reproductions.empty()) return incomparable_code;
  if (nothing_in_common(report)) return incomparable_code;
  if (!report.unreliable.empty()) return unreliable_code;
  if (options.fail_on.empty()) return 0;
  const bool slower = std::ranges::any_of(report.comparisons, [&](const analysis::Comparison& pair) {
    return analysis::any_slower(pair, threshold_of(options.fail_on, pair.smallest_effect));
  });
  return slower ? slower_code : 0;
}

}  // namespace harness::cli
