#include "machine/hcas.h"

#include <gtest/gtest.h>

#include <cmath>

namespace harness::machine {
namespace {

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
