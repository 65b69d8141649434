#include <gtest/gtest.h>

#include "base/error.h"
#include "paths.h"
#include "plan/prepare.h"

namespace harness {
namespace {

const std::string config = paths::source_dir() + "/configs/16node.yaml";

std::string refusal(const Experiment& e, const std::string& device) {
  try {
    hardware_for(e, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(HardwareFor, AConfiguredFileMustBeOfThisGpu) {
  Experiment e = load_experiment(config);
  EXPECT_FALSE(hardware_for(e, "NVIDIA H100 80GB HBM3"));
  const std::string message = refusal(e, "NVIDIA H200");
  EXPECT_NE(message.find("H100 SXM5 80GB (devices: NVIDIA H100 80GB HBM3), but the ranks' GPU is a NVIDIA H200"),
            std::string::npos)
      << message;
  e.hardware->devices.clear();  // a file that does not say is believed
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

TEST(HardwareFor, WithoutOneItIsFoundByTheName) {
  Experiment e = load_experiment(config);
  e.hardware.reset();
  ASSERT_TRUE(hardware_for(e, "NVIDIA H200"));
  EXPECT_EQ(hardware_for(e, "NVIDIA H200")->name, "H200 SXM 141GB");
  EXPECT_NE(refusal(e, "NVIDIA Z9").find("devices: [NVIDIA Z9]"), std::string::npos);
  e.peak_flops = 1e12;
  EXPECT_FALSE(hardware_for(e, "NVIDIA Z9"));
  e.peak_flops = 0;
  e.without_hardware = true;
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

TEST(HardwareFor, ThePeakIsOfTheCasesPrecision) {
  const Experiment e = load_experiment(config);
  EXPECT_DOUBLE_EQ(configured_peak(e, Precision::bf16).flops, 989.4e12);
  EXPECT_DOUBLE_EQ(configured_peak(e, Precision::tf32).flops, 494.7e12);
  EXPECT_DOUBLE_EQ(configured_peak(e, Precision::fp32).flops, 67e12);
}

}  // namespace
}  // namespace harness
