#include <algorithm>
#include <deque>
#include <optional>
#include <ostream>

#include "analysis/comparison.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/compare.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

constexpr int slower_code = 2, incomparable_code = 3, unreliable_code = 4;

// Result files with what was found in each; ComparedFile points at them.
class LoadedFiles {
 public:
  explicit LoadedFiles(const std::vector<std::string>& paths) {
    const auto labels = labels_of(paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const store::Result& result = results_.emplace_back(
          store::read_result(paths[i], {.rank_seconds = false, .timeline = false}));
      files.push_back({labels[i], &result, &summaries_.emplace_back(analysis::summarise(result))});
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

// Two sides (their times, or with --reproduce their effects), or runs of one configuration: do they agree, and what do
// they prove together?
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
    code = analysis::exit_code(pool, all);
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
  return report.nothing_in_common() ? incomparable_code : code;
}

int history(const CompareOptions& options, const std::optional<analysis::Gate>& gate, std::ostream& out) {
  const LoadedFiles loaded(options.files);
  report::CompareReport report;
  std::vector<analysis::ComparedFile> counting;  // an alarm must not last for as long as one bad night is in the series
  for (const analysis::ComparedFile& file : loaded.files) {
    const auto reasons = analysis::why_unreliable(std::span(&file, 1));
    if (reasons.empty()) counting.push_back(file);
    for (const std::string& reason : reasons) report.unreliable.push_back("Left out: " + reason);
  }
  if (counting.empty()) throw Error("no file counts: " + join(report.unreliable, " "), unreliable_code);
  const auto incomparable = analysis::why_incomparable(counting);
  if (!incomparable.empty() && !options.anyway) {
    throw Error("these files are not a series (--anyway takes them as one): " + join(incomparable, " "),
                incomparable_code);
  }
  analysis::History history = analysis::find_history(counting);
  const analysis::CaseHistory* clearest = history.clearest();
  if (clearest != nullptr) {
    report.files = {history.files[clearest->largest->before], history.files[clearest->largest->run]};
    report.differences = analysis::find_differences(report.files);
  }
  const bool fails = gate && std::ranges::any_of(history.cases, [&](const analysis::CaseHistory& row) {
                       return row.verdict == analysis::Verdict::slower &&
                              row.largest->ratio > 1 + gate->share.value_or(history.smallest_effect);
                     });
  report.answer = std::move(history);
  print(report, options, out);
  return fails ? slower_code : 0;
}

}  // namespace

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
