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

TEST(Text, SplitGivesOnePartMoreThanThereAreSeparators) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b,", ','), (Parts{"a", "b", ""}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
  EXPECT_EQ(split("a b", ','), Parts{"a b"});
  EXPECT_EQ(split("", ','), Parts{""});
}

TEST(Text, CharactersAreReplacedByTexts) {
  EXPECT_EQ(replaced("a<b&c", {{'<', "&lt;"}, {'&', "&amp;"}}), "a&lt;b&amp;c")
      << "what is put in is not replaced again";
  EXPECT_EQ(replaced("a,,b", {{',', ""}}), "ab");
  EXPECT_EQ(replaced("", {{',', ";"}}), "");
}

}  // namespace
}  // namespace harness
