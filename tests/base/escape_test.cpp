#include "base/escape.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace harness {
namespace {

TEST(Escape, ControlsOfEveryKind) {
  EXPECT_EQ(escaped("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\u007f");
  EXPECT_EQ(escaped("\u009b31m"), "\\u009b31m");  // a control sequence introducer in one character
  EXPECT_EQ(escaped("\u202etxt\u2066\u200f\u061c\u2028"), "\\u202etxt\\u2066\\u200f\\u061c\\u2028");
}

TEST(Escape, TextStaysAsItIs) {
  EXPECT_EQ(escaped("naïve – 数 🙂 \u00a0"), "naïve – 数 🙂 \u00a0");
  EXPECT_EQ(escaped_lines("two\n\tlines\u009b\r"), "two\n\tlines\\u009b\\x0d");
}

// Some terminals read a single byte 0x9b as U+009B, and some an overlong form of it.
TEST(Escape, WhatIsNotUtf8) {
  EXPECT_EQ(escaped("\x9b"
                    "31m\xff"),
            "\\x9b31m\\xff");
  EXPECT_EQ(escaped("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(escaped("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(Escape, QuotesUseIt) {
  EXPECT_EQ(quote("\u009b\u202e\n"), "'\\u009b\\u202e\\x0a'");
}

}  // namespace
}  // namespace harness
