// Laws are fitted to points that laws made, with noise: what was planted comes out.
#include "calibrate/laws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

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

TEST(FitLine, FindsStartAndRate) {
  Noise noise;
  std::vector<CurvePoint> points;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) points.push_back({bytes, noise(12e-6 + bytes / 5e9)});
  const Line line = fit_line(points);
  EXPECT_NEAR(line.start_s, 12e-6, 0.03 * 12e-6);
  EXPECT_NEAR(line.rate, 5e9, 0.03 * 5e9);
}

// One point of twelve that another process held up by ten times.
TEST(FitLine, IsHardlyMovedByOnePointThatIsFarOff) {
  Noise noise;
  std::vector<CurvePoint> points;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) points.push_back({bytes, noise(12e-6 + bytes / 5e9)});
  points[5].seconds *= 10;
  const Line line = fit_line(points);
  EXPECT_NEAR(line.start_s, 12e-6, 0.05 * 12e-6);
  EXPECT_NEAR(line.rate, 5e9, 0.05 * 5e9);
}

TEST(FitLine, HasNoRateAboveTheMost) {
  const std::vector<CurvePoint> points{{1e6, 1e-3}, {1e8, 1e-2}};
  EXPECT_LE(fit_line(points, 1e9).rate, 1e9 * (1 + 1e-9));
}

void expect_products_found(int multiprocessors) {
  const sim::Device device{100e12, 1e13, multiprocessors};
  config::Calibration c = planted();
  c.product_share = c.product_ramp = 0;
  EXPECT_LT(fit_products(products_by(planted(), device), 4, device, c), 0.03);
  EXPECT_NEAR(c.product_share, 0.8, 0.03);
  EXPECT_NEAR(c.product_ramp, 96, 20);
}

TEST(FitProducts, FindsShareAndRampOfADeviceWithTiles) {
  expect_products_found(100);
}
TEST(FitProducts, FindsShareAndRampOfADeviceWithout) {
  expect_products_found(0);
}

TEST(FitAttention, FindsBothSharesAndTheRamp) {
  const sim::Device device{1e12, 1e12, 0};
  config::Calibration c = planted();
  c.attention_forward = c.attention_backward = 1;
  EXPECT_LT(fit_attention(attentions_by(planted(), device), device, c), 0.03);
  EXPECT_NEAR(c.attention_forward, 0.6, 0.03);
  EXPECT_NEAR(c.attention_backward, 0.45, 0.03);
  EXPECT_NEAR(c.attention_ramp, 400, 60);
}

double error_called(const Laws& laws, std::string_view what) {
  const auto found = std::ranges::find(laws.errors, what, &LawError::what);
  return found == laws.errors.end() ? std::numeric_limits<double>::quiet_NaN() : found->error;
}

TEST(Laws, WriteAsACurveWhatTheyDoNotSayWell) {
  const Laws laws = fit(node_of_two());
  const config::MeasuredCurves& curves = laws.calibration.measured;
  EXPECT_NE(curves.computation(Precision::fp32, "gelu"), nullptr);
  EXPECT_EQ(curves.computation(Precision::fp32, "layer_norm"), nullptr);
  EXPECT_EQ(curves.computation(Precision::fp32, "matmul"), nullptr);
  EXPECT_EQ(curves.communication("all_reduce"), nullptr);
  EXPECT_NEAR(laws.calibration.within_node->start_s, 50e-6, 3e-6);
  // Its ring moves as many bytes as the message has; the links are as fast as the quickest collective makes them.
  EXPECT_NEAR(laws.link_bytes_per_s * laws.calibration.within_node->share, 1e9, 0.05e9);
  EXPECT_NEAR(laws.calibration.taken_by_communication, 0.2, 1e-9);
}

// Operands of a product that is repeated stay in the caches. What a step's products take is what counts.
TEST(Laws, OfComputingHaveTheSpeedOfAStep) {
  Measured m = node_of_two();
  const config::Calibration repeated = fit(m).calibration;
  for (const double slower : {1.0, 1.25}) {
    m.products_in_step = m.products;
    for (ProductTime& p : m.products_in_step[Precision::fp32]) p.seconds *= slower;
    m.attentions_in_step = m.attentions;
    for (AttentionTime& a : m.attentions_in_step[Precision::fp32]) a.seconds *= a.backward ? slower : 1;
    const Laws laws = fit(m);
    const config::Calibration& c = laws.calibration;
    EXPECT_NEAR(c.product_share, repeated.product_share / slower, 0.02) << slower;
    EXPECT_EQ(c.product_ramp, repeated.product_ramp);
    EXPECT_NEAR(c.attention_forward, repeated.attention_forward, 0.02) << slower;
    EXPECT_NEAR(c.attention_backward, repeated.attention_backward / slower, 0.02) << slower;
    EXPECT_LT(error_called(laws, "products, fp32"), 0.05) << slower;
    EXPECT_LT(error_called(laws, "attention, fp32"), 0.05) << slower;
  }
}

// The speed of some sizes of a step need not suit the law of all.
TEST(Laws, OfComputingThatAStepContradictsGiveWayToItsCurve) {
  Measured m = node_of_two();
  m.products_in_step = m.products;
  for (ProductTime& p : m.products_in_step[Precision::fp32]) p.seconds *= p.shape.k < 1024 ? 2 : 1;
  const Laws laws = fit(m);
  EXPECT_GT(error_called(laws, "products, fp32"), 0.1);
  EXPECT_NE(laws.calibration.measured.computation(Precision::fp32, "matmul"), nullptr);
}

// One law for all collectives, by their bus bandwidth; one that is quicker or slower than the all-reduce is written as
// it was measured.
TEST(Laws, OfLinksAreThatOfTheAllReduce) {
  for (const double of_lawful : {1.0, 0.5, 2.0}) {
    Noise noise;
    Measured m = node_of_two();
    // Half of the bytes of an all-reduce, and six tenths of its start.
    m.communications["reduce_scatter"] = straight(30e-6, 2e9, noise);
    m.communications["all_gather"] = straight(30e-6, of_lawful * 2e9, noise);
    const Laws laws = fit(m);
    const config::Calibration& c = laws.calibration;
    const double best = std::max(of_lawful, 1.0) * 1e9;
    // As quick as the quickest message, of whose time a part is its start.
    EXPECT_LT(laws.link_bytes_per_s, 1.05 * best);
    EXPECT_GT(laws.link_bytes_per_s, 0.8 * best);
    EXPECT_NEAR(laws.link_bytes_per_s * c.within_node->share, 1e9, 0.05e9);
    EXPECT_EQ(c.measured.communication("all_gather") == nullptr, of_lawful == 1) << of_lawful;
    EXPECT_EQ(error_called(laws, "all_gather") < 0.05, of_lawful == 1) << of_lawful;
    for (const char* lawful : {"all_reduce", "reduce_scatter", "send"}) {
      EXPECT_EQ(c.measured.communication(lawful), nullptr) << lawful << " beside " << of_lawful;
      EXPECT_LT(error_called(laws, lawful), 0.05) << lawful << " beside " << of_lawful;
    }
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

TEST(Laws, OfSeveralNodesAreOfTheNetworkAloneWhereNothingElseIsKnown) {
  Noise noise;
  const Measured m = two_nodes_of_two(noise);
  const Laws laws = fit(m);
  const config::Calibration& c = laws.calibration;
  EXPECT_EQ(laws.link_bytes_per_s, 0);
  EXPECT_FALSE(c.within_node);
  EXPECT_NEAR(laws.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NEAR(c.network_start_s, 80e-6, 5e-6);
  EXPECT_NEAR(c.message_start_s, 30e-6, 2e-6);
  for (const char* lawful : {"all_reduce", "all_gather", "reduce_scatter", "send"})
    EXPECT_LT(error_called(laws, lawful), 0.1) << lawful;
  EXPECT_TRUE(c.measured.communications.empty());
  const std::string hardware = hardware_text(m, laws);
  EXPECT_THAT(hardware, HasSubstr("network: "));
  EXPECT_THAT(hardware, Not(HasSubstr("nvlink")));
  EXPECT_THAT(hardware, HasSubstr("gpus: 2"));
}

// Links within a node that are ten times as quick as the network, and whose all-gathers no law says.
TEST(Laws, OfSeveralNodesAreOfTheLinksWithinOneToo) {
  Noise noise;
  Measured m = two_nodes_of_two(noise);
  m.within_node = node_of_two().communications;
  m.within_node["all_reduce"] = m.within_node["send"] = straight(20e-6, 10e9, noise);
  m.within_node["reduce_scatter"] = straight(12e-6, 20e9, noise);
  m.within_node["all_gather"] = straight(12e-6, 5e9, noise);
  const Laws laws = fit(m);
  const config::Calibration& c = laws.calibration;
  ASSERT_TRUE(c.within_node);
  EXPECT_NEAR(laws.link_bytes_per_s * c.within_node->share, 10e9, 0.5e9);
  EXPECT_NEAR(c.within_node->start_s, 20e-6, 2e-6);
  EXPECT_NEAR(laws.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NEAR(c.network_start_s, 80e-6, 5e-6);
  for (const char* lawful : {"all_reduce", "all_gather", "reduce_scatter", "send", "all_reduce, within a node"})
    EXPECT_LT(error_called(laws, lawful), 0.1) << lawful;
  EXPECT_GT(error_called(laws, "all_gather, within a node"), 0.2);
  EXPECT_NE(c.measured.communication("all_gather"), nullptr);
  EXPECT_EQ(c.measured.communication("all_reduce"), nullptr);
  EXPECT_EQ(c.measured.ranks, 2);
  EXPECT_THAT(hardware_text(m, laws), AllOf(HasSubstr("network: "), HasSubstr("nvlink: ")));
}

double best_rate(const std::vector<ProductTime>& products) {
  double best = 0;
  for (const ProductTime& p : products) {
    const config::GemmShape& g = p.shape;
    best = std::max(best,
                    2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) / p.seconds);
  }
  return best;
}

// Its products need longer sums for the same share of their peak, which the law does not know: the peak that says most
// of them best is below the rate of the longest.
TEST(Laws, OfASecondPrecisionHaveThePeakThatSaysItsProductsBest) {
  Measured m = node_of_two();
  config::Calibration slower = planted();
  slower.product_ramp = 1500;
  m.products[Precision::bf16] = products_by(slower, {300e9, 20e9, 0}, 2);
  const Laws laws = fit(m);
  EXPECT_LT(laws.peak_flops.at(Precision::bf16), 0.9 * best_rate(m.products[Precision::bf16]));
  EXPECT_GT(error_called(laws, "products, bf16"), 0.1);
  EXPECT_NEAR(laws.peak_flops.at(Precision::fp32), best_rate(m.products[Precision::fp32]), 1e-3);
}

// Shares and ramps are the first precision's; of another only the peak is its own.
TEST(Laws, OfASecondPrecisionHaveAPeakOfTheirOwn) {
  Measured m = node_of_two();
  const Laws alone = fit(m);
  const sim::Device three_times_as_fast{300e9, 20e9, 0};
  m.products[Precision::bf16] = products_by(planted(), three_times_as_fast, 2);
  m.attentions[Precision::bf16] = attentions_by(planted(), three_times_as_fast);
  const Laws both = fit(m);
  EXPECT_NEAR(both.peak_flops.at(Precision::bf16) / both.peak_flops.at(Precision::fp32), 3, 0.1);
  EXPECT_LT(error_called(both, "products, bf16"), 0.05);
  EXPECT_LT(error_called(both, "attention, bf16"), 0.05);
  EXPECT_EQ(both.peak_flops.at(Precision::fp32), alone.peak_flops.at(Precision::fp32));
  EXPECT_EQ(both.calibration.product_share, alone.calibration.product_share);
  EXPECT_EQ(both.calibration.attention_forward, alone.calibration.attention_forward);
  EXPECT_THAT(hardware_text(m, both), ::testing::ContainsRegex("peak_flops: .fp32: .* GFLOP/s, bf16: .* GFLOP/s"));
}

TEST(Laws, NeedAProductAndSomethingThatMovesMemory) {
  Measured m = node_of_two();
  m.products.clear();
  EXPECT_THAT(test::error_of([&] { fit(m); }), HasSubstr("no matrix product"));
  m = node_of_two();
  m.computations.clear();
  EXPECT_THAT(test::error_of([&] { fit(m); }), HasSubstr("no operation that moves memory"));
}

}  // namespace
}  // namespace harness::calibrate
