#include "base/text.h"

#include <gtest/gtest.h>

namespace harness {
namespace {

TEST(Text, ALongListNamesItsFirstAndCountsTheRest) {
  const std::vector<std::string> parts{"a", "b", "c"};
  EXPECT_EQ(join_first(parts, 3), "a, b, c");
  EXPECT_EQ(join_first(parts, 2), "a, b, 1 more");
  EXPECT_EQ(join_first({}, 2), "");
}

}  // namespace
}  // namespace harness
