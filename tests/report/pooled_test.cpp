#include "report/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.h"
#include "report/document.h"
#include "support/sample_files.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Runs : test::SampleFiles {
  CompareReport report;

  void add(store::Result result) {
    result.created = fmt::format("2026-01-0{}T03:00:00Z", results.size() + 1);
    const std::string label = fmt::format("{}.h5", static_cast<char>('a' + results.size()));
    report.files.push_back(SampleFiles::add(label, std::move(result)));
  }
  void pool() {
    report.answer = analysis::pool_runs(report.files);
    report.differences = analysis::find_differences(report.files);
    report.unreliable = analysis::why_unreliable(report.files);
  }
};

// A change that is faster in all runs, one whose runs disagree, one that failed once, and one that the last run left
// out.
Runs three_runs() {
  Runs runs;
  for (int run = 0; run < 3; ++run) {
    const double faster = 0.9 + 0.002 * run, restless = 0.95 + 0.05 * run;
    std::vector<std::string> changes{"micro_batch_size=2", "overlap_grad_reduce=false", "precision=bf16"};
    if (run < 2) changes.emplace_back("layout={tensor_parallel: 2}");
    store::Result result = test::samples::sweep(changes, {1, 1.0005, faster, restless, 1.3, 1.5});
    result.identity = {{"driver", run == 2 ? "580" : "570"}};
    result.seed = static_cast<std::uint64_t>(run + 1);
    if (run == 1) {
      result.cases[4].status = store::CaseStatus::failed;
      result.cases[4].reason = "rank 2 on node7: worker killed by signal 9";
    }
    runs.add(std::move(result));
  }
  runs.pool();
  return runs;
}

const Json& case_of(const Json& json, const std::string& name) {
  for (const Json& row : json["pool"]["cases"]) {
    if (row["name"] == name) return row;
  }
  throw std::logic_error("no " + name);
}

TEST(Pooled, Golden) {
  const Runs runs = three_runs();
  test::expect_golden("pooled.txt", show(runs.report, Format::text));
  test::expect_golden("pooled.md", show(runs.report, Format::md));
  test::expect_golden("pooled.json", show(runs.report, Format::json));
}

TEST(Pooled, AMovedControlComesFirst) {
  Runs runs;
  for (int run = 0; run < 3; ++run) runs.add(test::samples::sweep({"precision=bf16"}, {1, 1.06 + 0.001 * run, 0.9}));
  runs.pool();
  const std::string text = show(runs.report, Format::text);
  EXPECT_THAT(text, HasSubstr("3 runs of one configuration, which agree. Unreliable: over the runs the control "
                              "baseline_again took 6.1 % more "
                              "time\n  ["));
  EXPECT_LT(text.find("! b.h5 is unreliable: its control"), text.find("tokens/s"));
  EXPECT_EQ(Json::parse(show(runs.report, Format::json))["pool"]["control_moved"], true);
}

TEST(Pooled, NumbersAreMediansOverTheRuns) {
  Runs runs;
  for (const double factor : {1.0, 3.0, 2.0}) {
    store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 0.9});
    for (auto& steps : result.step_seconds) {
      for (float& step : steps) step = static_cast<float>(step * factor);
    }
    runs.add(std::move(result));
  }
  runs.pool();
  const Json json = Json::parse(show(runs.report, Format::json));
  const analysis::CaseSummary& middle = runs.summaries[2].cases[0];
  EXPECT_EQ(case_of(json, "baseline")["measured"]["step_seconds"], middle.step_seconds);
  EXPECT_EQ(case_of(json, "baseline")["measured"]["mfu"], *middle.mfu);
  EXPECT_EQ(case_of(json, "baseline")["ratio"], nullptr);
  EXPECT_EQ(case_of(json, "precision=bf16")["runs"].size(), 3u);
  EXPECT_EQ(case_of(json, "precision=bf16")["runs"][1]["step_seconds"], runs.summaries[1].cases[2].step_seconds);
}

TEST(Pooled, FitsTheTerminal) {
  Document document = compare_document(three_runs().report, true);
  arrange(document, {80, {}, "order"});
  const std::string text = write_text(document);
  const std::string table =
      text.substr(text.find("\ncase ") + 1, text.find("\n\n", text.find("\ncase ")) - text.find("\ncase "));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(text, HasSubstr("Left out to fit: "));
  arrange(document = compare_document(three_runs().report, true), {30, {}, "order"});
  EXPECT_THAT(write_text(document, 400, true),
              AllOf(HasSubstr(", MFU, runs, step, 95 % interval (--columns"), HasSubstr("\x1b[32mfaster\x1b[0m\n"),
                    HasSubstr("\x1b[33munresolved [1]\x1b[0m\n")));
}

}  // namespace
}  // namespace harness::report
