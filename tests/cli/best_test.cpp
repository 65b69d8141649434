#include "cli/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "said.h"
#include "support/errors.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* three_variables = R"(name: three
backend: sim
calibration: harness
hardware: h100-sxm
model: {layers: 2, hidden: 768, heads: 12, vocab: 50304, sequence: 2048}
baseline: {precision: bf16, micro_batch_size: 1, global_batch_size: 64, layout: {tensor_parallel: 1, pipeline_parallel: 1}}
sweep:
  micro_batch_size: [2, 4]
  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]
  overlap_grad_reduce: [false]
)";

std::string without_calibration() {
  std::string text = three_variables;
  const std::string line = "calibration: harness\n";
  return text.erase(text.find(line), line.size());
}

class BestTest : public ::testing::Test {
 protected:
  static constexpr int ranks = 16;

  plan::Plan planned(const std::vector<std::string>& overrides = {}) const {
    const config::Experiment e = config::load_experiment(config_, overrides);
    return plan::prepare(e, ranks, {}, plan::Processes::as_needed, planned_topology(e, ranks, 0));
  }
  // The step of a baseline that has these settings: `plan` itself, once for each.
  double seconds_with(const std::vector<std::string>& overrides) const {
    const config::Experiment e = config::load_experiment(config_, overrides);
    const plan::Plan p =
        plan::prepare(e, ranks, {"baseline"}, plan::Processes::as_needed, planned_topology(e, ranks, 0));
    return predict_cases(p)[0].step->step_s;
  }
  std::string said(const std::vector<std::string>& more) const {
    return unwrapped(say({"plan", config_, "--ranks", "16"}, more).all());
  }

  test::TemporaryFolder folder_;
  std::string config_ = folder_.write("three.yaml", three_variables);
};

std::vector<std::string> overrides_of(const RankedCombination& combination) {
  std::vector<std::string> overrides;
  for (const auto& [variable, value] : combination.settings)
    overrides.push_back(fmt::format("baseline.{}={}", variable, value));
  return overrides;
}

// A calibration that was chosen for the baseline is not what the first alone would get.
TEST_F(BestTest, NamesTheCalibrationThatTheOverridesNeed) {
  config_ = folder_.write("two.yaml", without_calibration());
  const std::string text = said({"--best", "1", "--set", "baseline.layout={pipeline_parallel: 2}", "--set",
                                 "sweep={layout: [{pipeline_parallel: 1}]}"});
  EXPECT_NE(text.find("calibration megatron-2025 is chosen for pipeline_parallel 2"), std::string::npos) << text;
  EXPECT_NE(text.find("--set 'calibration=megatron-2025'"), std::string::npos) << text;
}

// Against `plan` of each of the 18, one after another.
TEST_F(BestTest, NamesTheFastestOfAllCombinations) {
  std::vector<double> seconds;
  for (const char* layout : {"{tensor_parallel: 1, pipeline_parallel: 1}", "{tensor_parallel: 2, pipeline_parallel: 1}",
                             "{tensor_parallel: 1, pipeline_parallel: 2}"}) {
    for (const char* micro_batch : {"1", "2", "4"}) {
      for (const char* overlap : {"true", "false"}) {
        seconds.push_back(seconds_with({std::string("baseline.layout=") + layout,
                                        std::string("baseline.micro_batch_size=") + micro_batch,
                                        std::string("baseline.overlap_grad_reduce=") + overlap}));
      }
    }
  }
  std::ranges::sort(seconds);
  const plan::Plan p = planned();
  const Best best = find_best(p, 18);
  EXPECT_EQ(best.combinations, 18);
  EXPECT_EQ(best.predicted, 18);
  ASSERT_EQ(best.fastest.size(), 18);
  for (std::size_t i = 0; i < best.fastest.size(); ++i) {
    const RankedCombination& c = best.fastest[i];
    EXPECT_EQ(c.predicted.step->step_s, seconds[i]);
    EXPECT_EQ(c.predicted.step->step_s, seconds_with(overrides_of(c)));
    EXPECT_NEAR(c.distance, c.predicted.step->step_s / seconds[0] - 1, 1e-12);
    EXPECT_EQ(c.is_told_apart, std::log1p(c.distance) >= std::log1p(sim::smallest_effect(p.experiment)));
    EXPECT_GT(c.planned.survey.peak_bytes, 0);
    EXPECT_TRUE(c.predicted.mfu);
  }
  ASSERT_TRUE(best.baseline);
  EXPECT_TRUE(best.baseline->settings.empty());
}

TEST_F(BestTest, WhatIsRefusedIsCountedByReason) {
  const std::vector<std::string> overrides{
      "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 8}], micro_batch_size: [256, 128], rank_order: "
      "[dp-tp-pp]}",
      "baseline.micro_batch_size=64", "baseline.global_batch_size=4096", "baseline.memory_cap=90 %"};
  const Best best = find_best(planned(overrides), 20);
  EXPECT_EQ(best.combinations, 18);
  std::size_t refused = 0, memory = 0;
  for (const auto& [reason, number] : best.refused) {
    refused += number;
    if (reason.starts_with("needs more memory than a rank has")) memory += number;
  }
  EXPECT_GT(memory, 0);
  EXPECT_EQ(refused - memory, 6);  // tensor_parallel 8 does not divide the heads
  EXPECT_EQ(best.alike, 3);        // rank_order with one axis alone
  EXPECT_EQ(best.predicted + refused + best.alike, 18);
}

// NCCL has no tree for an all-gather, whatever the layout makes of the group.
TEST_F(BestTest, WhatNcclRefusesInGroupsOfAnySizeIsOneReason) {
  const std::vector<std::string> overrides{
      "baseline.sharding=optimizer", "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 4}], nccl_algo: [Tree]}"};
  const Best best = find_best(planned(overrides), 20);
  std::map<std::string, std::size_t> by_nccl;
  for (const auto& [reason, number] : best.refused) {
    if (reason.starts_with("NCCL ends with an error")) by_nccl[reason] = number;
  }
  ASSERT_EQ(by_nccl.size(), 1u);
  EXPECT_THAT(by_nccl.begin()->first, HasSubstr("nccl_algo Tree and nccl_proto default leave it nothing for an "));
  EXPECT_EQ(by_nccl.begin()->second, 3u);
}

TEST_F(BestTest, TextAndJsonHaveTheSame) {
  const std::string text = said({"--best", "3"});
  EXPECT_THAT(text, AllOf(HasSubstr("predicted, not measured: "), HasSubstr("18 combinations of the values of"),
                          HasSubstr("predicted: 18"), HasSubstr("not told apart from the first: "),
                          HasSubstr("the first, as overrides:"), HasSubstr("expected error: ")));
  const auto json = say({"plan", config_, "--ranks", "16", "--best", "3", "--format", "json"}).json();
  EXPECT_EQ(json["schema"], "harness-plan-best");
  EXPECT_EQ(json["combinations"], 18);
  ASSERT_EQ(json["fastest"].size(), 3);
  EXPECT_EQ(json["fastest"][0]["distance"], 0);
  EXPECT_THAT(text, HasSubstr(fmt::format("not told apart from the first: {} of the 17 others",
                                          json["not_told_apart"].get<int>())));
  EXPECT_LE(json["fastest"][1]["predicted_step_seconds"], json["fastest"][2]["predicted_step_seconds"]);
}

TEST_F(BestTest, RefusesWhatHasNoPredictionAndTooMany) {
  EXPECT_THAT(test::error_of([&] { find_best(planned(), 1, 17); }),
              HasSubstr("have 18 combinations, more than the 17 that are predicted"));
  EXPECT_THAT(said({"--best", "3", "--backend", "cuda"}),
              HasSubstr("--best ranks predictions, and backend cuda has none"));
  EXPECT_THAT(said({"--best", "0"}), HasSubstr("--best"));
  const std::string operation =
      folder_.write("gemm.yaml",
                    "name: g\nbackend: sim\nhardware: h100-sxm\nworkload: gemm\nbaseline: {precision: bf16}\n"
                    "sweep: {gemm: [{m: 512, n: 512, k: 512}]}\n");
  EXPECT_THAT(say({"plan", operation, "--best", "2"}).err,
              HasSubstr("--best ranks training steps; workload gemm repeats one operation"));
}

}  // namespace
}  // namespace harness::cli
