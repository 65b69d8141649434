#include <algorithm>
#include <map>

#include "base/random.h"
#include "diagnosed.h"

namespace harness::explain {
namespace {

double sum_of(const analysis::CaseCompared& compared, bool measured) {
  double sum = 0;
  for (const analysis::KindCompared& row : compared.kinds) sum += measured ? row.measured_owns_s : row.predicted_owns_s;
  for (const analysis::PartCompared& row : compared.parts) sum += measured ? row.measured_s : row.predicted_s;
  return sum;
}

analysis::CaseCompared compared(const store::Result& result) {
  const analysis::Explanation found = explain(result);
  EXPECT_EQ(found.cases.size(), 1u) << found.why_none;
  return found.cases.front();
}

TEST(Compare, AddsUpToTheStepOnBothSides) {
  config::Faults faults = slow_gpu(3, 0.7);
  faults.acs_on = true;
  for (const test::Job& job : {test::Job(), test::Job{.layout = "tensor_parallel: 4, pipeline_parallel: 2"},
                               test::Job{.layout = "tensor_parallel: 1", .overlaps = true}}) {
    const analysis::CaseCompared found = compared(test::measured(job, faults));
    EXPECT_GT(found.measured_s, found.predicted_s);
    EXPECT_NEAR(sum_of(found, true), found.measured_s, 1e-6 * found.measured_s) << job.layout;
    EXPECT_NEAR(sum_of(found, false), found.predicted_s, 1e-6 * found.predicted_s) << job.layout;
  }
}

// Waiting for a slow rank is a part of its own: the communication of other ranks does not take longer.
TEST(Compare, TellsCommunicatingFromWaiting) {
  const analysis::CaseCompared found = compared(test::measured({}, slow_gpu(3, 0.5)));
  for (const analysis::KindCompared& row : found.kinds) {
    if (row.group.empty()) continue;
    EXPECT_NEAR(row.measured_takes_s, row.predicted_takes_s, 0.02 * row.predicted_takes_s) << row.group;
  }
  const auto& most = found.parts.front();
  EXPECT_EQ(most.part, Part::waiting);
  EXPECT_GT(most.excess_s(), 0.1 * found.predicted_s);
}

TEST(Compare, TheLargestExcessIsFirst) {
  const analysis::CaseCompared found =
      compared(test::measured({.nodes = 4}, everywhere(&config::Faults::no_gpudirect)));
  EXPECT_EQ(found.kinds.front().kind, "all_reduce");
  EXPECT_EQ(found.kinds.front().group, "data");
  const double times = found.kinds.front().measured_takes_s / found.kinds.front().predicted_takes_s;
  EXPECT_GT(times, 2);
  EXPECT_LT(times, 720.0 / 300);  // the latency of a collective is unchanged
}

TEST(Compare, WhatOnlyOneSideHasCostsNothingOnTheOther) {
  analysis::Breakdown measured, predicted;
  measured.kinds = {{"matmul", "", false, 2, 2}};
  predicted.kinds = {{"attention", "", false, 1, 1}};
  const analysis::CaseCompared found = compare_with_prediction(measured, predicted);
  ASSERT_EQ(found.kinds.size(), 2u);
  EXPECT_EQ(found.kinds[0].predicted_owns_s, 0);
  EXPECT_EQ(found.kinds[1].measured_owns_s, 0);
  EXPECT_EQ(found.kinds[1].excess_s(), -1);
}

// A step whose ranks each compute up to `size` more or less than expected, and wait correspondingly less or more. All
// computations take `slower` times as long.
store::Result noisy(const test::Job& job, std::uint64_t seed, double size, const config::Faults& faults = {},
                    double slower = 1) {
  store::Result result = test::measured(job, faults, slower);
  for (store::ResultSplit& split : result.splits) {
    const double noise = size * (2 * uniform_open(philox(seed, static_cast<std::uint64_t>(split.rank))[0]) - 1);
    const double more_s = std::min(noise * split.compute_s, split.exposed_s);
    split.compute_s += more_s;
    split.exposed_s -= more_s;
    split.communication_s -= more_s;
    split.waiting_s = std::max(0.0, split.waiting_s - more_s);
  }
  return result;
}

TEST(Noise, IsNoCause) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const test::Job& job : {test::Job(), test::Job{.nodes = 4, .layout = "tensor_parallel: 1", .overlaps = true},
                                 test::Job{.layout = "tensor_parallel: 4, pipeline_parallel: 2", .sequences = 8}}) {
      const analysis::Explanation found = explain(noisy(job, seed, 0.05, {}, 1.1));
      ASSERT_TRUE(found.diagnosis) << found.why_none;
      EXPECT_NE(found.diagnosis->measured_s, found.diagnosis->healthy_s);
      EXPECT_TRUE(found.diagnosis->causes.empty()) << found.diagnosis->causes.front().words;
    }
  }
}

TEST(Noise, HidesNoCause) {
  const std::map<std::string, config::Faults> planted{{"slow_gpu", slow_gpu(5, 0.7)},
                                                      {"slow_link", slow_link(1, 0.25)},
                                                      {"no_gpudirect", everywhere(&config::Faults::no_gpudirect)},
                                                      {"socket_fallback", socket(4e9)}};
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const auto& [name, faults] : planted) {
      const analysis::Explanation found = explain(noisy({.nodes = 4}, seed, 0.05, faults));
      ASSERT_TRUE(found.diagnosis && !found.diagnosis->causes.empty()) << name;
      EXPECT_EQ(found.diagnosis->causes.front().fault, name);
    }
  }
}

}  // namespace
}  // namespace harness::explain
