#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/calibration.h"
#include "config/experiment.h"
#include "config_files.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Experiment loaded(const std::string& head, const std::string& baseline) {
  return test::loaded("backend: sim\nhardware: h100-sxm\nmodel: llama3-8b\n" + head + "baseline: {" + baseline + "}\n");
}

TEST(UsualCalibration, IsOfTheSoftwareThatDividesAModelSo) {
  const auto of = [](const std::string& baseline) { return loaded("", baseline).calibration->file; };
  EXPECT_EQ(of("precision: bf16"), "harness");
  EXPECT_EQ(of("layout: {tensor_parallel: 2}"), "megatron-2025");
  EXPECT_EQ(of("layout: {pipeline_parallel: 2}"), "megatron-2025");
  EXPECT_EQ(of("layout: {context_parallel: 2}"), "megatron-2025");
  EXPECT_EQ(of("sharding: optimizer"), "megatron-2025");
  EXPECT_EQ(of("sharding: parameters"), "torch-fsdp");
  EXPECT_EQ(of("sharding: parameters, layout: {tensor_parallel: 2}"), "megatron-2025");
  EXPECT_EQ(of("precision: fp16, attention: unfused, layout: {tensor_parallel: 2}"), "megatron-2022");
}

TEST(UsualCalibration, GivesWayToOneThatIsNamed) {
  EXPECT_FALSE(loaded("", "layout: {tensor_parallel: 2}").names_calibration);
  const Experiment named = loaded("calibration: harness\n", "layout: {tensor_parallel: 2}");
  EXPECT_EQ(named.calibration->file, "harness");
  EXPECT_TRUE(named.names_calibration);
}

TEST(UsualCalibration, SaysWhy) {
  Settings s;
  EXPECT_EQ(usual_calibration(s).why, "a layout that divides nothing but the batch");
  s.layout[program::Axis::tensor] = 8;
  EXPECT_EQ(usual_calibration(s).why, "tensor_parallel 8");
}

TEST(CalibrationFile, AListInPlaceOfAMapIsOneProblem) {
  const test::TemporaryFolder folder;
  folder.write("calibration/mine.yaml", "products: {share: 80 %, ramp: 1, on: [much]}\n");
  const std::string complaint = test::complaint(
      folder.write("a.yaml", "backend: sim\nhardware: h100-sxm\nmodel: llama3-8b\ncalibration: mine\nbaseline: {}\n"));
  EXPECT_THAT(complaint, HasSubstr("mine.yaml:1:38: products.on: found a list; expected a map such as {gb200: 88 %}"));
  EXPECT_THAT(complaint, Not(HasSubstr("products.on.")));
}

TEST(Curve, IsExactAtItsPointsAndStraightBetweenThemOnLogarithmicAxes) {
  const Curve curve({{1e6, 100}, {1e2, 1}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e2), 1);
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e6), 100);
  EXPECT_NEAR(curve.seconds_at(1e4), 10, 1e-9);
  EXPECT_DOUBLE_EQ(curve.seconds_at(1), 1) << "below all points it stays at the least";
  EXPECT_DOUBLE_EQ(curve.seconds_at(3e6), 300) << "above all points it grows in proportion";
  EXPECT_EQ(Curve().seconds_at(10), 0);
}

TEST(Curve, TakesTheMiddleOfWhatWasMeasuredTwice) {
  const Curve curve({{1e2, 1}, {1e2, 4}, {1e3, 20}});
  EXPECT_EQ(curve.points().size(), 2U);
  EXPECT_NEAR(curve.seconds_at(1e2), 2, 1e-12);
}

}  // namespace
}  // namespace harness::config
