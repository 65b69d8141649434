#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string_view>

#include "support/files.h"

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

// Bash expands the word to the text, byte for byte.
TEST(Text, AShellWordStandsForItsText) {
  std::mt19937 random(3);
  std::vector<std::string> texts{"", "plain", "my results/it's.h5", "$(id)", "`id`", "\\", "~", "#x", "!!", "é"};
  for (int i = 0; i < 200; ++i) {
    std::string& text = texts.emplace_back(random() % 6, '\0');
    for (char& c : text) c = static_cast<char>(' ' + random() % 95);
  }
  EXPECT_EQ(shell_word("a\nb\u202e"), "'a\\x0ab\\u202e'");
  std::string script;
  for (const std::string& text : texts) script += "printf '%s\\0' " + shell_word(text) + "\n";
  const test::TemporaryFolder folder;
  std::FILE* bash = ::popen(("bash " + folder.write("script", script)).c_str(), "r");
  ASSERT_NE(bash, nullptr);
  std::string out, wanted;
  for (int c = 0; (c = std::fgetc(bash)) != EOF;) out += static_cast<char>(c);
  EXPECT_EQ(::pclose(bash), 0);
  for (const std::string& text : texts) wanted += text + '\0';
  EXPECT_EQ(out, wanted) << script;
}

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

TEST(Escape, ControlsOfEveryKind) {
  EXPECT_EQ(escaped("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\u007f");
  EXPECT_EQ(escaped("\u009b31m"), "\\u009b31m");  // a control sequence introducer in one character
  EXPECT_EQ(escaped("\u202etxt\u2066\u200f\u061c\u2028"), "\\u202etxt\\u2066\\u200f\\u061c\\u2028");
}

TEST(Escape, TextStaysAsItIs) {
  EXPECT_EQ(escaped("naïve – 数 🙂 \u00a0"), "naïve – 数 🙂 \u00a0");
  EXPECT_EQ(escaped_lines("two\n\tlines\u009b\r"), "two\n\tlines\\u009b\\x0d");
}

// Some terminals read a single byte 0x9b as U+009B, and some also its overlong encoding.
TEST(Escape, WhatIsNotUtf8) {
  EXPECT_EQ(escaped("\x9b"
                    "31m\xff"),
            "\\x9b31m\\xff");
  EXPECT_EQ(escaped("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(escaped("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

// A path cannot break a line of a message; the line breaks of the message itself, and of a nested message, stay.
TEST(Escape, WhatAMessageIsAboutStaysInItsLine) {
  const auto said = [](const auto&... arguments) -> std::string {
    try {
      fail("{}: no\nsuch {}", arguments...);
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string path = "a\nharness: forged\x1b[2J\u202e";
  const std::string shown = "a\\x0aharness: forged\\x1b[2J\\u202e: no\nsuch ";
  EXPECT_EQ(said(path, 7), shown + "7");
  EXPECT_EQ(said(std::string_view(path), 7), shown + "7");
  const Error of_two_lines("one\ntwo");
  EXPECT_EQ(said(path, of_two_lines.what()), shown + "one\ntwo");
}

TEST(Escape, QuotesUseIt) {
  EXPECT_EQ(quote("\u009b\u202e\n"), "'\\u009b\\u202e\\x0a'");
  EXPECT_EQ(quote(std::string(59, 'x') + "µm").size(), 1 + 59 + 3 + 1);  // the µ is not cut in two
}

TEST(Nearest, IsATypoOrABeginning) {
  struct Typed {
    std::string_view word, near;
  };
  const std::vector<std::string> names{"h100-sxm",
                                       "h100-pcie",
                                       "h200-sxm",
                                       "b200",
                                       "rtx-4090",
                                       "llama3-70b",
                                       "mxfp8",
                                       "cpu",
                                       "cuda",
                                       "time_budget",
                                       "timeline",
                                       "micro_batch_size",
                                       "bucket_size",
                                       "LL128",
                                       "IB_HCA",
                                       "COMM_BLOCKING",
                                       "CREATE_THREAD_CONTEXT",
                                       "tensor_parallel"};
  for (const auto& [word, near] : std::vector<Typed>{{"h100-smx", "h100-sxm"},
                                                     {"H100", "h100-sxm"},
                                                     {"h1", ""},
                                                     {"h10", ""},
                                                     {"h100-nvl", ""},
                                                     {"b200-sxm", ""},
                                                     {"b100", ""},
                                                     {"rtx-3090", ""},
                                                     {"llama2-70b", ""},
                                                     {"mxfp4", ""},
                                                     {"gpu", ""},
                                                     {"cdua", "cuda"},
                                                     {"time", "time_budget"},
                                                     {"timelin", "timeline"},
                                                     {"micro_batch_sise", "micro_batch_size"},
                                                     {"microbatch_size", "micro_batch_size"},
                                                     {"tensor-paralel", "tensor_parallel"},
                                                     {"context_parallel", ""},
                                                     {"LL182", "LL128"},
                                                     {"HCA", "IB_HCA"},
                                                     {"EXT", ""},
                                                     {"USE_COMM_NONBLOCKING", ""}}) {
    EXPECT_EQ(nearest(word, names), near) << word;
  }
}

}  // namespace
}  // namespace harness
