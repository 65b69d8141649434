#include "analysis/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "support/errors.h"
#include "support/sample_files.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using test::samples::scaled;
using Files = test::SampleFiles;
using ::testing::HasSubstr;

store::Result two_changes(double factor = 1) {
  return scaled(test::samples::sweep({"micro_batch_size=2", "overlap_grad_reduce=false"}, {1, 1, 0.9, 1.1}), factor);
}

void set(store::Result& result, const std::string& variable, const std::string& value, bool everywhere = true) {
  const auto at = std::find(result.variables.begin(), result.variables.end(), variable) - result.variables.begin();
  for (store::ResultCase& row : result.cases) {
    if (everywhere || row.variable.empty()) row.settings[static_cast<std::size_t>(at)] = value;
  }
}

const CaseComparison& find(const Comparison& comparison, const std::string& name) {
  for (const auto& row : comparison.cases) {
    if (row.name == name) return row;
  }
  throw std::logic_error("no " + name);
}

// Compares one file with another.
Comparison compared(const ComparedFile& a, const ComparedFile& b) {
  return compare_sides(std::span(&a, 1), std::span(&b, 1));
}
Comparison compared(const store::Result& first, const store::Result& second) {
  Files files;
  const ComparedFile a = files.add("a", first), b = files.add("b", second);
  return compared(a, b);
}

TEST(Comparison, AFileAgainstItselfMovesNothing) {
  Files files;
  for (const store::Result& result : {two_changes(), test::samples::everything(), test::samples::nothing_moved()}) {
    const ComparedFile a = files.add("a", result);
    const Comparison c = compared(a, a);
    EXPECT_TRUE(c.same_run);
    EXPECT_TRUE(c.not_aligned.empty());
    ASSERT_EQ(c.cases.size(), result.cases.size());
    for (const auto& row : c.cases) {
      if (row.first.run_seconds.empty()) continue;
      EXPECT_EQ(row.ratio, 1) << row.name;
      EXPECT_TRUE(row.judgement.verdict == Verdict::same || row.judgement.verdict == Verdict::unresolved) << row.name;
      EXPECT_LE(row.low, 1);
      EXPECT_GE(row.high, 1);
    }
    EXPECT_FALSE(fails_gate(parse_gate("slower:0"), c));
    EXPECT_TRUE(find_differences(std::vector{a, a}).empty());
  }
}

TEST(Comparison, OneRunASideComparesBlocksAndDoesNotEstimateRuns) {
  const Comparison c = compared(two_changes(), two_changes(1.2));
  EXPECT_FALSE(c.between_runs);
  EXPECT_FALSE(c.same_run);
  EXPECT_EQ(c.comparisons, 4);
  for (const auto& row : c.cases) {
    EXPECT_NEAR(row.ratio, 1.2, 1e-6) << row.name;
    EXPECT_EQ(row.judgement.verdict, Verdict::slower);
    EXPECT_EQ(row.first.block_seconds.size(), 12u);
    EXPECT_EQ(row.first.run_seconds.size(), 1u);
  }
}

TEST(Gate, FailsOnWhatIsSlower) {
  for (const double factor : {0.9, 1.0, 1.2, 2.0}) {
    const Comparison c = compared(two_changes(), two_changes(factor));
    for (const char* text : {"slower", "slower:5", "slower:25"}) {
      const Gate gate = parse_gate(text);
      EXPECT_EQ(fails_gate(gate, c), factor > 1 + gate.share.value_or(c.smallest_effect)) << text << ' ' << factor;
    }
  }
}

TEST(Comparison, ThreeRunsASideUseTheSpreadOfRuns) {
  Files files;
  std::vector<ComparedFile> first, second;
  for (const double factor : {1.00, 1.02, 0.98})
    first.push_back(files.add(fmt::format("a{}", factor), two_changes(factor)));
  for (const double factor : {1.03, 1.05, 1.01})
    second.push_back(files.add(fmt::format("b{}", factor), two_changes(factor)));
  const Comparison c = compare_sides(first, second);
  EXPECT_TRUE(c.between_runs);
  const auto& row = find(c, "baseline");
  EXPECT_NEAR(row.ratio, 1.03, 0.001);
  // The means differ by 3 %, runs scatter by 2 %: three runs cannot resolve it, however many blocks each has.
  EXPECT_EQ(row.judgement.verdict, Verdict::unresolved);
  EXPECT_LT(row.low, 1);
  EXPECT_EQ(row.first.run_seconds.size(), 3u);
  // As one run each, these files give "slower": the scatter within runs is smaller than that between runs.
  const Comparison within = compare_sides(std::span(first).first(2), std::span(second).first(2));
  EXPECT_FALSE(within.between_runs);
  EXPECT_LT(find(within, "baseline").high - find(within, "baseline").low, row.high - row.low);
}

TEST(Comparison, ARunCountsOnceOnASide) {
  Files files;
  const ComparedFile a = files.add("a", two_changes());
  const std::vector<ComparedFile> twice{a, a, a};
  const std::string said = test::error_of([&] { compare_sides(twice, std::span(&a, 1)); });
  EXPECT_THAT(said, HasSubstr("the same run"));
}

TEST(Comparison, CasesAlignBySettingsAndNotByName) {
  store::Result tuned = two_changes();
  set(tuned, "precision", "bf16");
  const Comparison c = compared(two_changes(), tuned);
  EXPECT_TRUE(c.cases.empty());  // every case differs in its precision
  ASSERT_FALSE(c.not_aligned.empty());
  EXPECT_THAT(c.not_aligned[0], HasSubstr("precision is fp32 and bf16"));
}

TEST(Comparison, AnAdoptedChangeMeetsTheNewBaseline) {
  // micro_batch_size 2 was proven in a; b has it in its baseline and sweeps 1.
  store::Result adopted = test::samples::sweep({"micro_batch_size=1"}, {1, 1, 1.1});
  set(adopted, "micro_batch_size", "2", false);
  const Comparison c = compared(two_changes(), adopted);
  std::vector<std::string> names;
  for (const auto& row : c.cases) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"baseline = micro_batch_size=1", "micro_batch_size=2 = baseline"}));
}

TEST(Comparison, BaselinesWithOtherSettingsAreComparedIfAsked) {
  Files files;
  store::Result slower = scaled(test::samples::sweep({}, {1, 1}), 1.2);
  set(slower, "precision", "bf16");
  const std::vector<ComparedFile> a{files.add("a", test::samples::sweep({}, {1, 1})),
                                    files.add("a2", test::samples::sweep({}, {1, 1}))},
      b{files.add("b", slower), files.add("b2", slower)};
  EXPECT_TRUE(compare_sides(a, b).cases.empty());
  const Comparison anyway = compare_sides(a, b, true);
  ASSERT_EQ(anyway.cases.size(), 2u);
  EXPECT_NEAR(find(anyway, "baseline").ratio, 1.2, 0.01);
  EXPECT_EQ(find(anyway, "baseline").second.run_seconds.size(), 2u);
  EXPECT_EQ(anyway.baselines_differ, "precision is fp32 and bf16");
  // A file compared with itself keeps its cases, and no difference is reported.
  EXPECT_EQ(compare_sides(a, a, true).baselines_differ, "");
  EXPECT_EQ(compare_sides(a, a, true).cases.size(), 2u);
}

TEST(Comparison, AVariableThatOneFileDoesNotKnowDoesNotKeepCasesApart) {
  Files files;
  store::Result newer = two_changes();
  newer.variables.emplace_back("cuda_graph");
  for (auto& row : newer.cases) row.settings.emplace_back("true");
  const ComparedFile a = files.add("a", two_changes()), b = files.add("b", newer);
  EXPECT_EQ(compared(a, b).cases.size(), 4u);
  const auto differences = find_differences(std::vector{a, b});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, "cuda_graph");
}

TEST(Comparison, OtherBatchesAreComparedPerToken) {
  store::Result larger = scaled(two_changes(), 2);
  for (auto& row : larger.cases) row.tokens_per_step *= 2;
  const auto c = compared(two_changes(), larger);
  EXPECT_TRUE(c.cases[0].per_token);
  EXPECT_NEAR(c.cases[0].ratio, 1, 1e-6);
}

TEST(Differences, AreFoundWhereverTheyHide) {
  Files files;
  store::Result other = two_changes();
  other.tool_version = "0.2.0";
  other.identity = {{"onednn", "3.1"}, {"nccl", "2.28"}};
  other.environment = {{"NCCL_DEBUG", "INFO"}};
  other.seed = 2;
  other.peak_source = "hardware file";
  other.rank_table = {{0, 0, 0, "node7", "NVIDIA H200", 8, 2, 1e9}};
  other.gpu = {{.ranks = 1,
                .together = {.mean_sm_clock_hz = 1.5e9, .max_possible_sm_clock_hz = 1.98e9},
                .throttling = "power cap"}};
  other.config_text = "# a comment\nmeasure: {rounds: 12}\n";
  store::Result here = two_changes();
  here.identity = {{"onednn", "2.6"}};
  here.rank_table = {{0, 0, 0, "node1", "NVIDIA H100", 8, 2, 1e9}};
  here.config_text = "measure: {rounds: 12, seed: 1}\nsweep: {threads: [1, 2]}\n";
  const auto differences = find_differences(std::vector{files.add("a", here), files.add("b", other)});
  const auto values = [&](const std::string& name) {
    for (const auto& row : differences) {
      if (row.name == name) return row.values;
    }
    return std::vector<std::string>{};
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(values("onednn"), (Values{"2.6", "3.1"}));
  EXPECT_EQ(values("nccl"), (Values{"absent", "2.28"}));
  EXPECT_EQ(values("NCCL_DEBUG"), (Values{"absent", "INFO"}));
  EXPECT_EQ(values("harness"), (Values{"0.1.0", "0.2.0"}));
  EXPECT_EQ(values("devices"), (Values{"1 x NVIDIA H100", "1 x NVIDIA H200"}));
  EXPECT_EQ(values("hosts"), (Values{"node1", "node7"}));
  EXPECT_EQ(values("SM clock"), (Values{"unknown", "1500 MHz"}));
  EXPECT_EQ(values("throttling"), (Values{"none seen", "power cap"}));
  EXPECT_EQ(values("peak source").size(), 2u);
  EXPECT_EQ(values("measure.seed"), (Values{"1", "2"}));
  EXPECT_EQ(values("sweep.threads"), (Values{"[1, 2]", "absent"}));
  EXPECT_TRUE(values("ranks").empty());
}

// Changes by --set are part of the configuration; a text that cannot be parsed still counts as different.
TEST(Differences, ConfigurationsAreComparedKeyByKey) {
  Files files;
  store::Result plain = two_changes(), other = two_changes(), broken = two_changes();
  plain.config_text = other.config_text = "baseline: {threads: 1}\nmodel: {layers: 4}\n";
  other.overrides = {"model.layers=8"};
  broken.config_text = "model: [";
  const auto differences = [&](const store::Result& result) {
    return find_differences(std::vector{files.add("a", plain), files.add("b", result)});
  };
  EXPECT_TRUE(differences(plain).empty());
  ASSERT_EQ(differences(other).size(), 1u);
  EXPECT_EQ(differences(other)[0].name, "model.layers");
  EXPECT_EQ(differences(other)[0].values, (std::vector<std::string>{"4", "8"}));
  EXPECT_EQ(differences(broken).size(), 3u);
}

TEST(Differences, UnlikeModelsBackendsAndRankCountsCannotBeCompared) {
  Files files;
  store::Result other = two_changes();
  other.ranks = 8;
  const ComparedFile a = files.add("a", two_changes());
  EXPECT_EQ(why_incomparable(std::vector{a, files.add("b", other)}).size(), 1u);
  EXPECT_TRUE(why_incomparable(std::vector{a, files.add("c", other)}, false).empty());
  other.model.hidden = 256;
  other.backend = "cuda";
  EXPECT_EQ(why_incomparable(std::vector{a, files.add("d", other)}).size(), 3u);
  EXPECT_TRUE(why_incomparable(std::vector{a, a}).empty());
}

TEST(Differences, AMovedControlAndAPartialFileAreUnreliable) {
  Files files;
  const auto reasons =
      why_unreliable(std::vector{files.add("good", two_changes()), files.add("moved", test::samples::unreliable()),
                                 files.add("part", test::samples::partial())});
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons[0].substr(0, 5), "moved");
  EXPECT_EQ(reasons[1].substr(0, 4), "part");
}

}  // namespace
}  // namespace harness::analysis
