#include "selftest/performance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "backends/backends.h"
#include "cli/cli.h"
#include "cli/selftest_report.h"
#include "program/builder.h"
#include "support/temporary_folder.h"
#include "wrong_backend.h"

namespace harness::selftest {
namespace {

using ::testing::HasSubstr;

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
  b.emit(0, product, {.what = "qkv"});
  b.emit(0, program::Convert{a, half}, {});
  b.emit(0, product, {.what = "qkv", .phase = program::Phase::backward});
  b.emit(1, program::AllReduce{0, half}, {.what = "grad_reduce", .phase = program::Phase::gradient_sync});
  return b.take();
}

const std::vector<program::Interval> intervals{{0, 0, 0.0, 0.4}, {1, 0, 0.4, 0.5}, {2, 0, 0.6, 1.0}, {3, 1, 0.9, 2.0}};

TEST(Split, AddsUpByKindAndKnowsIdleTime) {
  const Split s = split_by_kind(sample_program(), intervals, {});
  EXPECT_DOUBLE_EQ(s.step_seconds, 2.0);
  EXPECT_NEAR(s.idle_seconds, 0.1, 1e-12);  // between 0.5 and 0.6: overlap counts once
  EXPECT_DOUBLE_EQ(s.busy_seconds, 1.9);
  EXPECT_NEAR(s.overlap_seconds, 0.1, 1e-12);  // between 0.9 and 1.0
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
  // Its own shapes know better.
  EXPECT_DOUBLE_EQ(ratio({.matmul_flops = 10e9, .alone = {{0, 0.2, "plain"}, {2, 0.4, "plain"}}}, 1), 0.75);
  EXPECT_NEAR(ratio({.copy_bytes_per_s = 120e6}, 2), 0.5, 1e-9);
  EXPECT_EQ(ratio({.matmul_flops = 10e9}, 2), 0);
}

PerformanceOptions tiny_options() {
  PerformanceOptions o;
  o.model = {"tiny", 2, 64, 4, 128, 32};
  o.precision = config::Precision::fp32;
  o.micro_batch = 2;
  o.warmup_steps = 2;
  o.steps = 5;
  o.peak_flops = 1e12;
  o.roof_seconds = 0.05;
  return o;
}

TEST(Performance, OfATinyModelOnTheCpu) {
  const Performance p = measure_performance(backends::get(config::BackendKind::cpu), tiny_options());
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

const LineShare& find_line(const std::vector<LineShare>& lines, const std::string& phase, const std::string& kind) {
  const auto it = std::ranges::find_if(lines, [&](const LineShare& l) { return l.phase == phase && l.kind == kind; });
  if (it == lines.end()) fail("no line {} {}", kind, phase);
  return *it;
}

TEST(Split, HasALinePerProductAndPhase) {
  const Roofs roofs{.alone = {{0, 0.3, "separate"}}};
  const auto lines = split_by_kind(sample_program(), intervals, roofs, {"gemm + gelu", "", "gemm", ""}).lines;
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines.front().what, "grad_reduce");
  EXPECT_EQ(lines.front().phase, "gradient_sync");
  const LineShare& forward = find_line(lines, "forward", "matmul");
  EXPECT_EQ(forward.what, "qkv");
  EXPECT_EQ(forward.shape, "1000 x 1000 x 1000");
  EXPECT_EQ(forward.count, 1);
  EXPECT_DOUBLE_EQ(forward.mean_s, 0.4);
  EXPECT_DOUBLE_EQ(forward.share, 0.2);
  EXPECT_TRUE(forward.by_flop);
  EXPECT_DOUBLE_EQ(forward.rate, 2e9 / 0.4);
  EXPECT_DOUBLE_EQ(forward.alone_s, 0.3);
  EXPECT_EQ(forward.form, "separate");
  EXPECT_EQ(forward.kernels, "gemm + gelu");
  const LineShare& backward = find_line(lines, "backward", "matmul");
  EXPECT_EQ(backward.alone_s, 0);
  EXPECT_EQ(backward.form, "");
  EXPECT_EQ(backward.kernels, "gemm");
  EXPECT_EQ(lines.back().kind, "convert");
  EXPECT_NEAR(lines.back().rate, 6e6 / 0.1, 1);
}

// The times were measured; what goes wrong after them must not take them away.
TEST(Performance, WithoutAProfileTheTimesStand) {
  PerformanceOptions o = tiny_options();
  std::vector<Performance> stored;
  o.timed = [&](const Performance& p) { stored.push_back(p); };
  const Performance p = measure_performance(test::WrongBackend("", test::Wrong::no_profile), o);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_GT(stored[0].mfu, 0);
  EXPECT_TRUE(stored[0].split.kinds.empty());
  EXPECT_EQ(p.median_s, stored[0].median_s);
  ASSERT_EQ(p.warnings.size(), 1u);
  EXPECT_THAT(p.warnings[0], HasSubstr("nothing was recorded"));
  const CheckLine line = judge_performance(p);
  EXPECT_EQ(line.outcome, Outcome::passed);
  EXPECT_EQ(line.notes, p.warnings);
  EXPECT_THAT(cli::timing_text(p), HasSubstr("tokens/s"));
  EXPECT_EQ(cli::split_text(p), "");
}

TEST(Performance, WatchesTheDeviceDuringTheTimedStepsOnly) {
  const Performance p = measure_performance(test::WrongBackend("", test::Wrong::nothing), tiny_options());
  EXPECT_EQ(p.gpu.samples, 5);
  EXPECT_THAT(cli::timing_text(p), HasSubstr("SM clock 1500 MHz"));
  EXPECT_THAT(cli::timing_text(p), HasSubstr("throttled by: power cap"));
  double sum = 0;
  for (const double s : p.seconds) sum += s;
  EXPECT_GE(p.wall_s, 0.99 * sum);
}

TEST(Performance, TwoFilesAreComparedLineByLine) {
  const test::TemporaryFolder folder;
  Performance p;
  p.options = tiny_options();
  p.seconds = {0.4};
  p.median_s = 0.4;
  p.tokens_per_s = 160;
  p.split = split_by_kind(sample_program(), intervals, {});
  const std::string before = folder.write("before.json", cli::performance_json(p));
  p.median_s = 0.5;
  std::ranges::find(p.split.lines, "backward", &LineShare::phase)->seconds = 0.5;  // from 0.4
  const std::string after = folder.write("after.jsonl", cli::check_json_lines({judge_performance(p)}, {p}));
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_cli({"selftest", "--compare", before, after}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("+25.00 %"));  // of the median
  EXPECT_THAT(out.str(), HasSubstr("+100.000 ms"));
  EXPECT_LT(out.str().find("backward"), out.str().find("forward  "));  // what changed comes first
  EXPECT_EQ(cli::run_cli({"selftest", "--compare", before, folder / "none"}, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("none cannot be read"));
}

Performance judged_well() {
  Performance p;
  p.options = tiny_options();
  p.seconds = {1};
  p.first_loss = p.last_loss = std::log(128);
  return p;
}

TEST(Performance, PartsThatDoNotAddUpFail) {
  Performance p = judged_well();
  // A kernel may begin while the one before it ends, but operations of one stream do not run side by side.
  p.split = split_by_kind(sample_program(), {{0, 0, 0, 1}, {1, 0, 0.98, 2}}, {});
  EXPECT_EQ(judge_performance(p).outcome, Outcome::passed);
  EXPECT_THAT(cli::split_text(p), HasSubstr("-1.00 %"));
  p.split = split_by_kind(sample_program(), {{0, 0, 0, 1}, {1, 0, 0.8, 2}}, {});
  EXPECT_EQ(judge_performance(p).outcome, Outcome::failed);
}

TEST(Performance, ALossThatLeavesWhatRandomTokensGiveIsNotedAndFailsIfItIsNoNumber) {
  EXPECT_EQ(judge_performance(judged_well()).outcome, Outcome::passed);
  const auto judged = [](double loss) {
    Performance p = judged_well();
    p.last_loss = loss;
    return judge_performance(p);
  };
  const auto says = testing::ElementsAre(HasSubstr("expected are 3.65 to 6.05"));
  for (const double loss : {double{NAN}, double{INFINITY}}) {
    EXPECT_EQ(judged(loss).outcome, Outcome::failed) << loss;
    EXPECT_THAT(judged(loss).failures, says) << loss;
  }
  for (const double loss : {std::log(128) + 1.3, std::log(128) - 1.3}) {
    EXPECT_EQ(judged(loss).outcome, Outcome::passed) << loss;
    EXPECT_THAT(judged(loss).notes, says) << loss;
  }
}

}  // namespace
}  // namespace harness::selftest
