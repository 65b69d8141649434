#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

namespace harness {
namespace {

TEST(Utf8, ACharacterIsInItsShortestFormAndNoSurrogate) {
  EXPECT_EQ(character_at("a\u00e9", 1).code, 0xe9u);
  EXPECT_EQ(character_at("\u20ac", 0).bytes, 3u);
  EXPECT_EQ(character_at("\U0001f642", 0).code, 0x1f642u);
  for (const char* broken :
       {"\x9b", "\xc0\xaf", "\xe0\x82\x9b", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"})
    EXPECT_EQ(character_at(broken, 0).bytes, 0u) << broken;
}

TEST(Utf8, NoCharacterIsCutInTwo) {
  constexpr std::string_view text = "ab\u20acd";  // the third takes the bytes 2 to 4
  EXPECT_EQ(whole_characters(text, 2), 2u);
  EXPECT_EQ(whole_characters(text, 4), 2u);
  EXPECT_EQ(whole_characters(text, 5), 5u);
  EXPECT_EQ(whole_characters(text, 99), text.size());
  EXPECT_EQ(whole_characters("\x80\x80", 1), 0u);
}

}  // namespace
}  // namespace harness
