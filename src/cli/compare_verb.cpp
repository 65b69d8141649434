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

namespace harness {
namespace {

constexpr int slower_code = 2, incomparable_code = 3, unreliable_code = 4;

struct Loaded {
  Result result;
  Summary summary;
  std::vector<CaseBreakdown> breakdowns;
};

// The timeline is let go once it is broken down: files of large runs are not all held at once.
Loaded load(const std::string& path) {
  Loaded one;
  one.result = read_result(path, {.rank_seconds = false, .timeline = true});
  one.summary = summarise(one.result);
  one.breakdowns = break_down(one.result);
  one.result.timeline = {};
  one.result.totals = {};
  return one;
}

// By the timeline; by the ranks' splits where a case has none (baseline_again, files without timelines).
PartsOf parts_from(const std::vector<Loaded>& loaded) {
  return [&loaded](const Result& result, int case_index) {
    const auto file = std::ranges::find(loaded, &result, [](const Loaded& one) { return &one.result; });
    const CaseBreakdown* parts = file == loaded.end() ? nullptr : find_breakdown(file->breakdowns, case_index);
    return parts != nullptr ? parts_of_breakdown(*parts) : parts_of_splits(result, case_index);
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
    fail("--fail-on {}: {}; a percentage, such as slower:5", quote(fail_on), error.what());
  }
  if (!std::isfinite(percent) || percent < 0 || percent > 10000) {
    fail("--fail-on {}: allowed: 0 to 10000 percent, such as slower:5", quote(fail_on));
  }
  return percent / 100;
}

Format format_of(const std::string& word) {
  static const std::map<std::string, Format> formats{
      {"text", Format::text}, {"md", Format::md}, {"json", Format::json}};
  return formats.at(word);
}

// Which of the files stand on which side: pairs of (first, count) into the list of all.
std::vector<std::span<const ComparedFile>> sides_of(const CompareOptions& options,
                                                    const std::vector<ComparedFile>& files) {
  const std::span<const ComparedFile> all(files);
  if (!options.with.empty()) return {all.first(options.files.size()), all.subspan(options.files.size())};
  std::vector<std::span<const ComparedFile>> sides;
  for (std::size_t i = 0; i < all.size(); ++i) sides.push_back(all.subspan(i, 1));
  return sides;
}

void compare_all(const CompareOptions& options, const std::vector<std::span<const ComparedFile>>& sides,
                 const PartsOf& parts_of, ComparisonReport& report) {
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (options.reproduce) {
      report.reproductions.push_back(reproduce(sides[0], sides[i]));
    } else {
      report.comparisons.push_back(compare_sides(sides[0], sides[i], {.parts_of = parts_of}));
    }
  }
}

bool nothing_in_common(const ComparisonReport& report) {
  return std::all_of(report.comparisons.begin(), report.comparisons.end(),
                     [](const Comparison& one) { return one.comparisons == 0; }) &&
         std::all_of(report.reproductions.begin(), report.reproductions.end(),
                     [](const Reproduction& one) { return one.changes.empty(); });
}

}  // namespace

int compare(const CompareOptions& options, std::ostream& out) {
  std::vector<std::string> paths = options.files;
  paths.insert(paths.end(), options.with.begin(), options.with.end());
  if (paths.size() < 2) fail("compare needs two result files or more, such as: compare monday.h5 friday.h5");
  if (options.reproduce && !options.fail_on.empty()) fail("--fail-on is about times; --reproduce compares effects");
  if (!options.fail_on.empty()) threshold_of(options.fail_on, 0);  // a slip in it costs no reading
  std::vector<Loaded> loaded;
  loaded.reserve(paths.size());
  for (const auto& path : paths) loaded.push_back(load(path));
  ComparisonReport report;
  const auto labels = labels_of(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    report.files.push_back({labels[i], &loaded[i].result, &loaded[i].summary});
  }
  const auto sides = sides_of(options, report.files);
  report.anyway = options.anyway;
  report.differences = find_differences(report.files);
  report.incomparable = why_incomparable(report.files, {.rank_counts = !options.reproduce});
  report.unreliable = why_unreliable(report.files);
  if (report.incomparable.empty() || options.anyway) compare_all(options, sides, parts_from(loaded), report);
  out << show(report, format_of(options.format));
  if (report.comparisons.empty() && report.reproductions.empty()) return incomparable_code;
  if (nothing_in_common(report)) return incomparable_code;
  if (!report.unreliable.empty()) return unreliable_code;
  if (options.fail_on.empty()) return 0;
  const bool slower = std::any_of(report.comparisons.begin(), report.comparisons.end(), [&](const Comparison& one) {
    return any_slower(one, threshold_of(options.fail_on, one.smallest_effect));
  });
  return slower ? slower_code : 0;
}

}  // namespace harness
