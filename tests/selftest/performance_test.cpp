#include "selftest/performance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "program/builder.h"

namespace harness::selftest {
namespace {

// Two products of 2 GFLOP, a convert of 6 MB and an all-reduce beside the second product.
program::Program sample_program() {
  program::ProgramBuilder b({"compute", "world"});
  const program::View a = b.buffer("a", program::DType::f32, 1'000'000),
                      half = b.buffer("half", program::DType::bf16, 1'000'000);
  const program::View c = b.buffer("c", program::DType::f32, 1'000'000);
  b.begin_step();
  program::Matmul product;
  product.a = product.b = a;
  product.out = c;
  product.m = product.n = product.k = 1000;
  b.emit(0, product, {});
  b.emit(0, program::Convert{a, half}, {});
  b.emit(0, product, {});
  b.emit(1, program::AllReduce{0, half}, {});
  return b.take();
}

const std::vector<backend::Interval> intervals{{0, 0, 0.0, 0.4}, {1, 0, 0.4, 0.5}, {2, 0, 0.6, 1.0}, {3, 1, 0.9, 2.0}};

TEST(Split, AddsUpByKindAndKnowsIdleTime) {
  const Split s = split_by_kind(sample_program(), intervals, {});
  EXPECT_DOUBLE_EQ(s.step_seconds, 2.0);
  EXPECT_NEAR(s.idle_seconds, 0.1, 1e-12);  // between 0.5 and 0.6: overlap counts once
  EXPECT_DOUBLE_EQ(s.busy_seconds, 1.9);
  ASSERT_EQ(s.kinds.size(), 3u);
  EXPECT_EQ(s.kinds[0].kind, "all_reduce");  // the longest first
  EXPECT_EQ(s.kinds[1].kind, "matmul");
  EXPECT_EQ(s.kinds[1].operations, 2);
  EXPECT_DOUBLE_EQ(s.kinds[1].seconds, 0.8);
  EXPECT_DOUBLE_EQ(s.kinds[1].share, 0.4);
  EXPECT_DOUBLE_EQ(s.kinds[1].rate, 4e9 / 0.8);
  EXPECT_EQ(s.kinds[1].ratio, 0);  // no roof is known
  EXPECT_EQ(s.kinds[2].kind, "convert");
  EXPECT_NEAR(s.kinds[2].rate, 6e6 / 0.1, 1);
}

TEST(Split, ComparesWithTheRightRoof) {
  const auto ratio = [](const Roofs& roofs, std::size_t kind) {
    return split_by_kind(sample_program(), intervals, roofs).kinds[kind].ratio;
  };
  EXPECT_DOUBLE_EQ(ratio({.matmul_flops = 10e9}, 1), 0.5);
  EXPECT_DOUBLE_EQ(ratio({.matmul_flops = 10e9, .product_seconds = 0.6}, 1), 0.75);  // its own shapes know better
  EXPECT_NEAR(ratio({.copy_bytes_per_s = 120e6}, 2), 0.5, 1e-9);
  EXPECT_EQ(ratio({.matmul_flops = 10e9}, 2), 0);
}

TEST(Performance, OfATinyModelOnTheCpu) {
  PerformanceOptions o;
  o.model = {"tiny", 2, 64, 4, 128, 32};
  o.precision = config::Precision::fp32;
  o.micro_batch = 2;
  o.warmup_steps = 2;
  o.steps = 5;
  o.peak_flops = 1e12;
  o.roof_seconds = 0.05;
  const Performance p = measure_performance(backend::backend(config::BackendKind::cpu), o);
  EXPECT_EQ(p.seconds.size(), 5u);
  EXPECT_LE(p.fastest_s, p.median_s);
  EXPECT_LE(p.median_s, p.slowest_s);
  EXPECT_DOUBLE_EQ(p.tokens_per_s, 64 / p.median_s);
  EXPECT_DOUBLE_EQ(p.mfu, p.model_flop / p.median_s / 1e12);
  EXPECT_GT(p.mfu_noncausal, p.mfu);
  EXPECT_NEAR(p.first_loss, std::log(128), 0.3);
  EXPECT_GT(p.roofs.copy_bytes_per_s, 1e8);
  EXPECT_EQ(judge_performance(p).outcome, Outcome::passed);
}

TEST(Performance, PartsThatDoNotAddUpFail) {
  Performance p;
  p.seconds = {1};
  p.split = split_by_kind(sample_program(), {{0, 0, 0, 1}, {1, 0, 1, 2}}, {});
  EXPECT_EQ(judge_performance(p).outcome, Outcome::passed);
  p.split.kinds[0].seconds *= 1.02;
  EXPECT_EQ(judge_performance(p).outcome, Outcome::failed);
  p.split.kinds[0].seconds /= 1.02;
  p.last_loss = NAN;
  EXPECT_EQ(judge_performance(p).outcome, Outcome::failed);
}

}  // namespace
}  // namespace harness::selftest
