#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/prepare.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

const std::string config = test::source_dir() + "/configs/16node.yaml";

std::string refusal(const config::Experiment& e, const std::string& device) {
  return test::error_of([&] { hardware_for(e, device); });
}

TEST(HardwareFor, AConfiguredFileMustBeOfThisGpu) {
  config::Experiment e = config::load_experiment(config);
  EXPECT_FALSE(hardware_for(e, "NVIDIA H100 80GB HBM3"));
  const std::string message = refusal(e, "NVIDIA H200");
  EXPECT_THAT(message, HasSubstr("H100 SXM5 80GB (devices: NVIDIA H100 80GB HBM3), but the ranks run on NVIDIA H200"));
  e.hardware->devices.clear();  // a file that does not say is believed
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

TEST(HardwareFor, WithoutOneItIsFoundByTheName) {
  config::Experiment e = config::load_experiment(config);
  e.hardware.reset();
  ASSERT_TRUE(hardware_for(e, "NVIDIA H200"));
  EXPECT_EQ(hardware_for(e, "NVIDIA H200")->name, "H200 SXM 141GB");
  EXPECT_THAT(refusal(e, "NVIDIA Z9"), HasSubstr("devices: [NVIDIA Z9]"));
  e.peak_flops = 1e12;
  EXPECT_FALSE(hardware_for(e, "NVIDIA Z9"));
  e.peak_flops = 0;
  e.without_hardware = true;
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

TEST(HardwareFor, ThePeakIsOfTheCasesPrecision) {
  const config::Experiment e = config::load_experiment(config);
  EXPECT_DOUBLE_EQ(configured_peak(e, config::Precision::bf16).flops, 989.4e12);
  EXPECT_DOUBLE_EQ(configured_peak(e, config::Precision::tf32).flops, 494.7e12);
  EXPECT_DOUBLE_EQ(configured_peak(e, config::Precision::fp32).flops, 67e12);
}

}  // namespace
}  // namespace harness::plan
