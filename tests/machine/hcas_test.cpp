#include "machine/hcas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/temporary_folder.h"

namespace harness::machine {
namespace {

class Hcas : public ::testing::Test {
 protected:
  void put(const std::string& device, const std::string& file, const std::string& text) const {
    root_.write("sys/class/infiniband/" + device + "/ports/1/" + file, text + "\n");
  }
  void port(const std::string& device, const std::string& rate, const std::string& link_layer) const {
    put(device, "state", "4: ACTIVE");
    put(device, "phys_state", "5: LinkUp");
    put(device, "rate", rate);
    put(device, "link_layer", link_layer);
  }
  std::vector<HcaPort> found() const { return find_hcas(root_.path()); }
  const test::TemporaryFolder root_;
};

TEST_F(Hcas, TwoInfiniBandPorts) {
  port("mlx5_1", "400 Gb/sec (4X NDR)", "InfiniBand");
  port("mlx5_0", "400 Gb/sec (4X NDR)", "InfiniBand");
  const std::vector<HcaPort> ports = found();
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].device, "mlx5_0");
  EXPECT_EQ(ports[1].device, "mlx5_1");
  for (const HcaPort& p : ports) {
    EXPECT_EQ(p.port, 1);
    EXPECT_EQ(p.state, "ACTIVE");
    EXPECT_EQ(p.phys_state, "LinkUp");
    EXPECT_EQ(p.rate, "400 Gb/sec (4X NDR)");
    EXPECT_EQ(p.link_layer, "InfiniBand");
    EXPECT_EQ(p.bits_per_s, 400e9);
  }
}

TEST_F(Hcas, RoceIsOverEthernet) {
  port("bnxt_re0", "2.5 Gb/sec (1X SDR)", "Ethernet");
  put("bnxt_re0", "state", "1: DOWN");
  put("bnxt_re0", "phys_state", "3: Disabled");
  const std::vector<HcaPort> ports = found();
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].link_layer, "Ethernet");
  EXPECT_EQ(ports[0].state + " " + ports[0].phys_state, "DOWN Disabled");
  EXPECT_EQ(ports[0].bits_per_s, 2.5e9);
}

TEST_F(Hcas, WhatCannotBeReadIsNotKnown) {
  port("mlx5_0", "100 Gb/sec (4X EDR)", "InfiniBand");
  const std::string ports = root_ / "sys/class/infiniband/mlx5_0/ports/1/";
  std::filesystem::remove(ports + "state");
  std::filesystem::remove(ports + "rate");
  std::filesystem::create_directory(ports + "rate");  // opens, but cannot be read, as a file of a driver that refuses
  ASSERT_EQ(found().size(), 1u);
  EXPECT_EQ(found()[0].state, "");
  EXPECT_EQ(found()[0].rate, "");
  EXPECT_TRUE(std::isnan(found()[0].bits_per_s));
  EXPECT_EQ(found()[0].link_layer, "InfiniBand");
}

TEST_F(Hcas, AMachineWithoutAdaptersHasNone) {
  EXPECT_TRUE(found().empty());
  std::filesystem::create_directories(root_ / "sys/class/infiniband/mlx5_0");  // without ports
  EXPECT_TRUE(found().empty());
}

TEST(HcaTexts, AreRead) {
  EXPECT_EQ(state_in("4: ACTIVE"), "ACTIVE");
  EXPECT_EQ(state_in("4: ACTIVE_DEFER\n"), "ACTIVE_DEFER");
  EXPECT_EQ(state_in(""), "");
  EXPECT_EQ(rate_in("100 Gb/sec (4X EDR)"), 100e9);
  for (const char* text : {"", "Gb/sec", "fast Gb/sec", "-1 Gb/sec", "100", "100 furlongs"}) {
    EXPECT_TRUE(std::isnan(rate_in(text))) << text;
  }
}

}  // namespace
}  // namespace harness::machine
