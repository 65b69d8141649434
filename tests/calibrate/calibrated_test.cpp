// Points that lines made, with noise: what was planted comes out.
#include "calibrate/calibrated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "calibrate/files.h"
#include "planted.h"
#include "support/errors.h"

namespace harness::calibrate {
namespace {

using config::CurvePoint;
using config::Precision;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<CurvePoint> line_with_noise() {
  Noise noise;
  std::vector<CurvePoint> points;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) points.push_back({bytes, noise(12e-6 + bytes / 5e9)});
  return points;
}

TEST(FitLine, FindsStartAndRate) {
  const Line line = fit_line(line_with_noise());
  EXPECT_NEAR(line.start_s, 12e-6, 0.03 * 12e-6);
  EXPECT_NEAR(line.rate, 5e9, 0.03 * 5e9);
}

// One point of twelve that another process held up by ten times.
TEST(FitLine, IsHardlyMovedByOnePointThatIsFarOff) {
  std::vector<CurvePoint> points = line_with_noise();
  points[5].seconds *= 10;
  const Line line = fit_line(points);
  EXPECT_NEAR(line.start_s, 12e-6, 0.05 * 12e-6);
  EXPECT_NEAR(line.rate, 5e9, 0.05 * 5e9);
}

TEST(FitLine, TakesASinglePoint) {
  const Line line = fit_line({{1e6, 1e-3}});
  EXPECT_NEAR(line.start_s + 1e6 / line.rate, 1e-3, 1e-5);
}

TEST(Calibrated, HasTheCurvesAndTheBestRates) {
  const Measured m = node_of_two();
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  EXPECT_NEAR(found.peak_flops.at(Precision::fp32), 1e11 * 4096 / (4096 + 96), 1e6);
  EXPECT_NEAR(found.memory_bytes_per_s, 20e9, 1e9);
  EXPECT_GT(c.software.kernel_s, 2.5e-6);
  EXPECT_LT(c.software.kernel_s, 3.5e-6);
  EXPECT_NEAR(c.taken_by_communication, 0.2, 1e-9);
  EXPECT_EQ(c.measured.ranks, 2);
  for (const auto& [key, curve] : m.computations) {
    const config::Curve* kept = c.measured.computation(key.first, key.second);
    ASSERT_NE(kept, nullptr) << key.second;
    EXPECT_EQ(kept->seconds_at(5e5), curve.seconds_at(5e5)) << key.second;
  }
  for (const auto& [name, curve] : m.communications) {
    ASSERT_NE(c.measured.communication(name), nullptr) << name;
    EXPECT_EQ(c.measured.communication(name)->seconds_at(5e5), curve.seconds_at(5e5)) << name;
  }
}

// A GPU's burst clocks: the products of one layer's step ran quicker than a step of many layers lets them. On cores it
// is the other way round, because an operand of a repeated product stays in the caches, and the step's time holds.
TEST(Calibrated, HasNoProductQuickerThanTheBestThatRanAgainAndAgain) {
  for (const double rate : {0.5, 0.9, 1.0, 1.2, 2.0}) {  // of the step's best product, over the peak
    Measured m = node_of_two();
    const double peak = calibrated_by(m).peak_flops.at(Precision::fp32);
    m.computations[{Precision::fp32, "matmul"}] =
        config::Curve({{1e8, 2 * 1e8 / (rate * peak)}, {1e9, 1e9 / (rate * peak)}});
    const config::Calibration c = calibrated_by(m).calibration;
    const config::Curve* products = c.measured.computation(Precision::fp32, "matmul");
    EXPECT_NEAR(1e9 / products->seconds_at(1e9) / peak, std::min(rate, 1.0), 1e-9) << rate;
    EXPECT_NEAR(products->seconds_at(1e9) / products->seconds_at(1e8), 5, 1e-9) << rate;
  }
}

// A ring of two moves as many bytes as an all-reduce's message has; the links are as fast as the quickest collective.
TEST(Calibrated, HasTheLinksOfTheAllReduce) {
  for (const double of_gather : {0.5, 1.0, 2.0}) {
    Noise noise;
    Measured m = node_of_two();
    m.communications["reduce_scatter"] = straight(30e-6, 2e9, noise);
    m.communications["all_gather"] = straight(30e-6, of_gather * 2e9, noise);
    const Calibrated found = calibrated_by(m);
    const double best = std::max(of_gather, 1.0) * 1e9;
    // As quick as the quickest message, of whose time a part is its start.
    EXPECT_LT(found.link_bytes_per_s, 1.05 * best);
    EXPECT_GT(found.link_bytes_per_s, 0.8 * best);
    EXPECT_NEAR(found.link_bytes_per_s * found.calibration.within_node->share, 1e9, 0.05e9);
    EXPECT_NEAR(found.calibration.within_node->start_s, 50e-6, 3e-6);
  }
}

// Two nodes of two ranks: a ring through all of them enters and leaves each node once.
Measured two_nodes_of_two(Noise& noise) {
  Measured m = node_of_two();
  m.ranks = 4;
  m.nodes = m.ranks_of_node = 2;
  m.communications["all_reduce"] = straight(80e-6, 1e9 / 1.5, noise);  // 2 * 3 / 4 of the bytes
  m.communications["all_gather"] = m.communications["reduce_scatter"] = straight(80e-6, 1e9 / 0.75, noise);
  m.communications["send"] = straight(30e-6, 1e9, noise);
  return m;
}

TEST(Calibrated, HasOnlyTheNetworkWhereNothingElseIsKnown) {
  Noise noise;
  const Measured m = two_nodes_of_two(noise);
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  EXPECT_EQ(found.link_bytes_per_s, 0);
  EXPECT_FALSE(c.within_node);
  EXPECT_NEAR(found.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NEAR(c.network_start_s, 80e-6, 5e-6);
  EXPECT_NEAR(c.message_start_s, 30e-6, 2e-6);
  EXPECT_TRUE(c.measured.communications.empty());
  const std::string hardware = hardware_text(m, found);
  EXPECT_THAT(hardware, HasSubstr("network: "));
  EXPECT_THAT(hardware, Not(HasSubstr("nvlink")));
  EXPECT_THAT(hardware, HasSubstr("gpus: 2"));
}

// Links within a node that are ten times as quick as the network.
TEST(Calibrated, HasTheLinksWithinANodeToo) {
  Noise noise;
  Measured m = two_nodes_of_two(noise);
  m.within_node["all_reduce"] = m.within_node["send"] = straight(20e-6, 10e9, noise);
  m.within_node["all_gather"] = m.within_node["reduce_scatter"] = straight(12e-6, 20e9, noise);
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  ASSERT_TRUE(c.within_node);
  EXPECT_NEAR(found.link_bytes_per_s * c.within_node->share, 10e9, 0.5e9);
  EXPECT_NEAR(c.within_node->start_s, 20e-6, 2e-6);
  EXPECT_NEAR(found.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NE(c.measured.communication("all_gather"), nullptr);
  EXPECT_EQ(c.measured.ranks, 2);
  EXPECT_THAT(hardware_text(m, found), AllOf(HasSubstr("network: "), HasSubstr("nvlink: ")));
}

TEST(Calibrated, HasAPeakForEachPrecision) {
  Measured m = node_of_two();
  for (ProductTime p : m.products[Precision::fp32]) {
    p.seconds /= 3;
    m.products[Precision::bf16].push_back(p);
  }
  const Calibrated found = calibrated_by(m);
  EXPECT_NEAR(found.peak_flops.at(Precision::bf16) / found.peak_flops.at(Precision::fp32), 3, 1e-9);
  EXPECT_THAT(hardware_text(m, found), ::testing::ContainsRegex("peak_flops: .fp32: .* GFLOP/s, bf16: .* GFLOP/s"));
}

TEST(Calibrated, NeedsAProductAndSomethingThatMovesMemory) {
  Measured m = node_of_two();
  m.products.clear();
  EXPECT_THAT(test::error_of([&] { calibrated_by(m); }), HasSubstr("no matrix product"));
  m = node_of_two();
  m.computations.clear();
  EXPECT_THAT(test::error_of([&] { calibrated_by(m); }), HasSubstr("no operation that moves memory"));
}

}  // namespace
}  // namespace harness::calibrate
