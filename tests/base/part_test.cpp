#include "base/part.h"

#include <gtest/gtest.h>

namespace harness {
namespace {

TEST(Stretches, UnionMergesWhatTouchesAndDropsWhatIsEmpty) {
  EXPECT_EQ(united({{3, 4}, {0, 1}, {1, 2}, {0.5, 1.5}, {5, 5}, {7, 6}}), (Stretches{{0, 2}, {3, 4}}));
  EXPECT_EQ(united({}), Stretches{});
  EXPECT_EQ(united({{0, 10}, {1, 2}}), (Stretches{{0, 10}}));
}

TEST(Stretches, DifferenceCutsHoles) {
  EXPECT_EQ(without({{0, 10}}, {{1, 2}, {3, 4}}), (Stretches{{0, 1}, {2, 3}, {4, 10}}));
  EXPECT_EQ(without({{0, 2}, {3, 5}}, {{1, 4}}), (Stretches{{0, 1}, {4, 5}}));
  EXPECT_EQ(without({{0, 2}}, {{0, 2}}), Stretches{});
  EXPECT_EQ(without({{0, 2}}, {}), (Stretches{{0, 2}}));
  EXPECT_EQ(without({}, {{0, 2}}), Stretches{});
}

}  // namespace
}  // namespace harness
