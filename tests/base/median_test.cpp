#include "base/median.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace harness {
namespace {

TEST(Median, OddEvenOneAndNone) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(median(std::vector<double>{})));
}

}  // namespace
}  // namespace harness
