// Top-k and its scatter against sorted lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "rig.h"

namespace harness::test {
namespace {

using Values = std::vector<double>;

struct Kept {
  Values values, indices, residual;
  bool operator==(const Kept&) const = default;
};

Kept top_k(const Values& gradient, const Values& residual, std::int64_t k, int threads = 2) {
  Rig rig(program::DType::f32, threads);
  const program::View g = rig.f32(gradient), r = rig.f32(residual), values = rig.output_f32(k),
                      indices = rig.i32(Values(k, -1));
  rig.run(program::TopK{g, r, values, indices});
  return {rig.get(values), rig.get(indices), rig.get(r)};
}

Kept expected(const Values& gradient, Values residual, std::int64_t k) {
  for (std::size_t i = 0; i < residual.size(); ++i)
    residual[i] = static_cast<double>(static_cast<float>(residual[i]) + static_cast<float>(gradient[i]));
  std::vector<std::size_t> order(residual.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return std::abs(residual[i]); });
  order.resize(k);
  std::ranges::sort(order);
  Kept kept;
  for (const std::size_t i : order) {
    kept.values.push_back(residual[i]);
    kept.indices.push_back(static_cast<double>(i));
    residual[i] = 0;
  }
  kept.residual = residual;
  return kept;
}

TEST(TopK, KeepsTheLargestAndLeavesTheRestInTheResidual) {
  for (const std::int64_t n : {1, 2, 1000, 100003}) {
    const Values gradient = random_values(n, 1), residual = random_values(n, 2, 0.3);
    for (const std::int64_t k : {std::int64_t{1}, n / 100, n / 2, n - 1, n}) {
      if (k < 1) continue;
      EXPECT_TRUE(top_k(gradient, residual, k) == expected(gradient, residual, k)) << k << " of " << n;
    }
  }
}

TEST(TopK, TakesTheLowerIndexOfEqualMagnitudes) {
  const Kept kept = top_k({1, -2, 2, 0, -2, 3}, Values(6, 0), 3);
  EXPECT_EQ(kept.values, (Values{-2, 2, 3}));
  EXPECT_EQ(kept.indices, (Values{1, 2, 5}));
  EXPECT_EQ(kept.residual, (Values{1, 0, 0, 0, -2, 0}));
  EXPECT_EQ(top_k(Values(5, 0), Values(5, 0), 2).indices, (Values{0, 1}));
  // Ties in the ranges of all threads: as many as there are, and one of each two.
  const Values same(100003, 0.5), none(100003, 0);
  Values alternating = same;
  for (std::size_t i = 0; i < alternating.size(); i += 2) alternating[i] = -1;
  for (const std::int64_t k : {1, 40000, 60000, 100003}) {
    for (const int threads : {1, 2, 5}) {
      EXPECT_TRUE(top_k(same, none, k, threads) == expected(same, none, k)) << k << " with " << threads;
      EXPECT_TRUE(top_k(alternating, none, k, threads) == expected(alternating, none, k)) << k << " with " << threads;
    }
  }
}

// A gradient that is lost would hide a training that has failed.
TEST(TopK, KeepsNaNFirst) {
  const Kept kept = top_k({1, 1e38, NAN, -INFINITY}, Values(4, 0), 2);
  EXPECT_TRUE(std::isnan(kept.values[0]));
  EXPECT_EQ(kept.values[1], -INFINITY);
}

TEST(ScatterAdd, AddsInTheOrderOfTheList) {
  for (const int threads : {1, 3}) {
    constexpr std::int64_t n = 100003, members = 3, k = 5000;
    Values values, indices, want(n, 0);
    for (int member = 0; member < members; ++member) {
      const Kept kept = top_k(random_values(n, 7 + member), Values(n, 0), k);
      values.insert(values.end(), kept.values.begin(), kept.values.end());
      indices.insert(indices.end(), kept.indices.begin(), kept.indices.end());
    }
    for (std::size_t j = 0; j < values.size(); ++j) {
      double& sum = want[static_cast<std::size_t>(indices[j])];
      sum = static_cast<double>(static_cast<float>(sum) + static_cast<float>(values[j]));
    }
    Rig rig(program::DType::f32, threads);
    const program::View v = rig.f32(values), i = rig.i32(indices), out = rig.output_f32(n);
    rig.run(program::ScatterAdd{v, i, out});
    EXPECT_TRUE(rig.get(out) == want);
  }
}

// Of a constant gradient g, K steps have applied K g but for the residual, which stays bounded: an element waits until
// it has grown to the largest.
TEST(TopK, AppliesWhatItHeldBackInLaterSteps) {
  constexpr std::int64_t n = 200, k = 10;
  constexpr int steps = 400;
  const Values gradient = random_values(n, 3);
  const double largest = std::abs(*std::ranges::max_element(gradient, {}, [](double g) { return std::abs(g); }));
  Values residual(n, 0), applied(n, 0);
  for (int step = 0; step < steps; ++step) {
    const Kept kept = top_k(gradient, residual, k);
    residual = kept.residual;
    for (std::int64_t j = 0; j < k; ++j) applied[static_cast<std::size_t>(kept.indices[j])] += kept.values[j];
  }
  for (std::int64_t i = 0; i < n; ++i) {
    EXPECT_NEAR(applied[i] + residual[i], steps * gradient[i], 1e-4 * steps * largest) << i;
    EXPECT_LT(std::abs(residual[i]), (n / k + 1) * largest) << i;
  }
}

}  // namespace
}  // namespace harness::test
