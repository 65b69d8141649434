#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "support/temporary_folder.h"

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

// Bash makes of the word what the text is, byte for byte.
TEST(Text, AShellWordStandsForItsText) {
  std::mt19937 random(3);
  std::vector<std::string> texts{"",   "plain", "my results/it's.h5", "$(id)", "`id`", "\\", "a\nb", "~", "#x",
                                 "!!", "é"};
  for (int i = 0; i < 200; ++i) {
    std::string& text = texts.emplace_back(random() % 6, '\0');
    for (char& c : text) c = static_cast<char>(1 + random() % 127);
  }
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

}  // namespace
}  // namespace harness
