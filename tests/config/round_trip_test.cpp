// Whatever value a row takes: what it prints is that value again. Workers, results and `--set` rely on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config_files.h"
#include "support/row_values.h"
#include "support/soak.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

TEST(RoundTrip, EveryPrintedValueIsReadAsItself) {
  std::mt19937_64 random(1);
  constexpr int enough_to_hit = 1000;  // of a row that refuses most texts, some values
  const int texts = test::times(enough_to_hit, 20, 100000);
  for (const Variable& row : registry()) {
    std::set<std::string> seen;
    for (int i = 0; i < texts; ++i) {
      const std::string text = test::random_text(row, random);
      Settings given;
      try {
        row.parse(given, text);
      } catch (const Error&) {
        continue;
      }
      const std::string printed = row.print(given);
      Settings again;
      ASSERT_NO_THROW(row.parse(again, printed)) << row.name << ": " << text << " is printed as " << printed;
      EXPECT_EQ(again, given) << row.name << ": " << text << " is printed as " << printed;
      seen.insert(printed);
    }
    if (texts < enough_to_hit) continue;
    EXPECT_GE(seen.size(), 2u) << row.name << ": hardly any random text is a value of it";
  }
}

// A change says all of its value, whatever the baseline has. `env` and `mended` add to what is there.
TEST(RoundTrip, APrintedValueReplacesAnyOther) {
  std::mt19937_64 random(2);
  for (const Variable& row : registry()) {
    if (row.free_parts || row.name == "mended") continue;
    for (int i = 0; i < test::draws(100, 10000); ++i) {
      Settings one, other;
      test::set_at_random(row, one, random);
      test::set_at_random(row, other, random);
      row.parse(other, row.print(one));
      EXPECT_EQ(row.print(other), row.print(one)) << row.name;
    }
  }
}

TEST(RoundTrip, AttentionKeepsItsKeyHeads) {
  const Variable& row = *find_variable("attention_shape");
  Settings s;
  row.parse(s, "{heads: 32, kv_heads: 8}");
  EXPECT_EQ(s.attention_shape.group, 4);
  row.parse(s, "{heads: 64}");  // changes only what it names
  EXPECT_EQ(s.attention_shape.kv_heads(), 8);
  EXPECT_THAT(test::error_of([&] { row.parse(s, "{heads: 12}"); }), HasSubstr("kv_heads (here 8) must divide heads"));
  EXPECT_EQ(s.attention_shape.heads, 64);
  Settings whole;
  row.parse(whole, "{heads: 12}");
  EXPECT_EQ(whole.attention_shape.kv_heads(), 12);
}

}  // namespace
}  // namespace harness::config
