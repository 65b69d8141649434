// Step time, rates, MFU, memory and noise of docs/method.md, recomputed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/cost.h"
#include "analysis/summary.h"
#include "method_page.h"
#include "support/sample_results.h"

namespace harness::method {
namespace {

void expect_share(double value, double page) {
  EXPECT_NEAR(value / page, 1, 1e-12);
}

class MethodPageCases : public testing::Test {
 protected:
  const store::Result& file = example();
  const analysis::Summary summary = analysis::summarise(file);
};

// "A step ends with one all-reduce": the largest of the ranks' times.
TEST_F(MethodPageCases, AStepTakesAsLongAsItsSlowestRank) {
  int steps = 0;
  for (const auto& [block, median] : block_medians(file)) {
    for (std::size_t step = 0; step < file.step_seconds[block].size(); ++step) {
      float longest = 0;
      for (int rank = 0; rank < file.ranks; ++rank) {
        longest = std::fmax(longest, file.rank_seconds[block][step * file.rank_count() + rank]);
      }
      EXPECT_EQ(file.step_seconds[block][step], longest) << "block " << block << " step " << step;
      ++steps;
    }
  }
  EXPECT_GT(steps, 100);
}

TEST_F(MethodPageCases, StepTimeTokensAndFlop) {
  for (const analysis::CaseSummary& row : summary.cases) {
    SCOPED_TRACE(row.name);
    const store::ResultCase& of = file.at(row);
    const double T = step_time(file, row.case_index);
    expect_share(row.step_seconds, T);
    expect_share(row.tokens_per_second, of.tokens_per_step / T);
    expect_share(row.flops_per_rank, of.model_flop_per_step / (T * of.ranks));
    const double possible = T * of.ranks * of.peak_flops_per_rank;
    ASSERT_TRUE(row.mfu && row.mfu_noncausal && row.hfu);
    expect_share(*row.mfu, of.model_flop_per_step / possible);
    expect_share(*row.mfu_noncausal, of.noncausal_flop_per_step / possible);
    expect_share(*row.hfu, of.hardware_flop_per_step / possible);
  }
}

// "For L layers, hidden size h …, the closed forms are".
TEST_F(MethodPageCases, ModelFlopAreTheClosedForms) {
  const auto L = static_cast<double>(file.model.layers), h = static_cast<double>(file.model.hidden),
             s = static_cast<double>(file.model.sequence), V = static_cast<double>(file.model.vocab);
  for (const store::ResultCase& of : file.cases) {
    SCOPED_TRACE(of.name);
    const double B = of.tokens_per_step / s;
    EXPECT_EQ(B, std::stod(std::string(file.setting(of, "global_batch_size"))));
    const double all = 72 * B * s * L * h * h;
    expect_share(of.model_flop_per_step, all * (1 + s / (12 * h) + V / (12 * L * h)));
    expect_share(of.noncausal_flop_per_step, all * (1 + s / (6 * h) + V / (12 * L * h)));
    EXPECT_EQ(of.hardware_flop_per_step, of.model_flop_per_step);  // nothing is computed twice
  }
}

// "`show` prints the resident peak of the largest rank": in any block.
TEST_F(MethodPageCases, MemoryIsTheLargestOfAnyBlock) {
  for (const analysis::CaseSummary& row : summary.cases) {
    double largest = 0;
    for (const store::ResultBlock& block : file.blocks) {
      if (block.case_index == row.case_index) largest = std::max(largest, block.peak_memory_bytes);
    }
    EXPECT_EQ(row.peak_memory_bytes, largest) << row.name;
  }
}

// "Control": the standard deviation of the log ratios of the control.
TEST_F(MethodPageCases, NoiseIsTheScatterOfTheControl) {
  std::vector<double> logs;
  const auto medians = block_medians(file);
  for (const auto& [i, baseline] : medians) {
    for (const auto& [j, again] : medians) {
      const store::ResultBlock &a = file.blocks[i], &b = file.blocks[j];
      const bool pair = file.at(a).name == "baseline" && file.at(b).name == "baseline_again" && a.round == b.round &&
                        a.session == b.session;
      if (pair) logs.push_back(std::log(again / baseline));
    }
  }
  ASSERT_EQ(logs.size(), 8u);
  double mean = 0, squares = 0;
  for (const double d : logs) mean += d / static_cast<double>(logs.size());
  for (const double d : logs) squares += (d - mean) * (d - mean);
  EXPECT_NEAR(summary.noise, std::sqrt(squares / static_cast<double>(logs.size() - 1)), 1e-12);
}

// "One operation on its own": an all-reduce of 4 ranks, 10 in a step.
TEST(MethodPageOperations, BandwidthsAreThoseOfNcclTests) {
  store::Result file = test::samples::sweep({"message_size=1 MiB"}, {1, 1, 0.5});
  const double factor = 2.0 * 3 / 4, limit = 1e9;
  for (std::int32_t c = 0; c < 3; ++c) {
    const double size = c == 2 ? 1 << 20 : 1 << 22;
    file.points.push_back({c, "all_reduce", 10, size, factor, limit, "stated"});
  }
  const analysis::Summary summary = analysis::summarise(file);
  for (const store::ResultPoint& point : file.points) {
    const double time = step_time(file, point.case_index) / 10;
    const analysis::Rates& rates = *summary.at(point).rates;
    expect_share(rates.operation_seconds, time);
    expect_share(rates.algorithm_bytes_per_s, point.bytes / time);
    expect_share(*rates.bus_bytes_per_s, point.bytes / time * factor);
    EXPECT_EQ(rates.impossible, point.bytes / time * factor > 1.05 * limit);
  }
}

// "Cost": an estimate of what one GPU and hour cost, whatever the ranks are.
TEST_F(MethodPageCases, CostFollowsFromTokensPerSecond) {
  config::Cost cost;
  cost.per_gpu_hour = 2.5;
  cost.run_tokens = 3e11;
  const auto estimate = analysis::estimate_cost(file, summary, cost);
  ASSERT_TRUE(estimate);
  const double N = file.cases[0].ranks;
  const double duration = 3e11 / (file.cases[0].tokens_per_step / step_time(file, 0));
  expect_share(estimate->before.duration_s, duration);
  expect_share(estimate->before.price, duration * N * 2.5 / 3600);
  ASSERT_FALSE(estimate->after.empty());
  for (const analysis::CaseSaving& saving : estimate->after) {
    const store::ResultCase* of = file.find_case(saving.after.name);
    ASSERT_NE(of, nullptr);
    const analysis::Effect& effect = *summary.case_at(file.index_of(*of)).effect;
    const double r = effect.ratio, n = of->ranks;
    expect_share(saving.after.duration_s, duration * r);
    expect_share(saving.after.price, estimate->before.price * r * n / N);
    expect_share(saving.gpus_recovered, N * (N / (r * n) - 1));
    expect_share(saving.saved_yearly, N * 8766 * 2.5 * (1 - r * n / N));
    expect_share(saving.gpus_low, N * (N / (effect.high * n) - 1));
    expect_share(saving.gpus_high, N * (N / (effect.low * n) - 1));
  }
}

}  // namespace
}  // namespace harness::method
