#include "machine/gpus.h"

#include <gtest/gtest.h>

#include "machine/fake_nvml/fake_nvml.h"

namespace harness::machine {
namespace {

TEST(Nvml, TellsTheStateOfAllGpus) {
  fake_nvml()->answers = true;
  ASSERT_EQ(Nvml::get().unavailable(), "");
  const GpuReport report = Nvml::get().report();
  EXPECT_EQ(report.driver, "570.86.15");
  ASSERT_EQ(report.gpus.size(), 1u);
  const GpuHealth& gpu = report.gpus[0];
  EXPECT_EQ(gpu.pci_bus_id, "0000:18:00.0");
  EXPECT_EQ(gpu.name, "NVIDIA Fake");
  EXPECT_EQ(gpu.memory_bytes, 80.0 * (1 << 30));
  EXPECT_EQ(gpu.persistence, true);
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(gpu.ecc_uncorrected, 5u);
  EXPECT_EQ(gpu.row_remap_pending, true);
  EXPECT_EQ(gpu.row_remap_failed, false);
  EXPECT_EQ(gpu.power_limit_w, 500);
  EXPECT_EQ(gpu.default_power_limit_w, 700);
  EXPECT_EQ(gpu.bar1_bytes, 128.0 * (1ull << 30));
  EXPECT_EQ(gpu.pcie_width, 8u);
  EXPECT_EQ(gpu.pcie_max_width, 16u);
  EXPECT_EQ(gpu.throttle_reasons, 0x4u);
  EXPECT_EQ(gpu.processes, 2u);
  EXPECT_EQ(gpu.nvlinks, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(gpu.fabric_state, 3);
  EXPECT_EQ(gpu.fabric_status, 0);
  EXPECT_EQ(gpu.fabric_health, 0x9u);
  EXPECT_EQ(gpu.recovery_action, 2u);
  EXPECT_EQ(gpu.nvlink_recoveries, 33u);  // 10 + 11 + 12
  EXPECT_EQ(gpu.nvlink_crc_errors, 63u);
  EXPECT_EQ(gpu.compute_mode, std::nullopt);  // this driver has no such function
}

TEST(Nvml, WhatAGpuDoesNotTellIsNothing) {
  fake_nvml()->answers = false;
  const GpuHealth gpu = Nvml::get().report().gpus.at(0);
  EXPECT_EQ(gpu.memory_bytes, std::nullopt);
  EXPECT_EQ(gpu.persistence, std::nullopt);
  EXPECT_EQ(gpu.ecc_uncorrected, std::nullopt);
  EXPECT_EQ(gpu.power_limit_w, std::nullopt);
  EXPECT_EQ(gpu.throttle_reasons, std::nullopt);
  EXPECT_TRUE(gpu.nvlinks.empty());
  EXPECT_EQ(gpu.fabric_state, std::nullopt);
  EXPECT_EQ(gpu.fabric_health, std::nullopt);
  EXPECT_EQ(gpu.recovery_action, std::nullopt);
  EXPECT_EQ(gpu.nvlink_recoveries, std::nullopt);
}

}  // namespace
}  // namespace harness::machine
