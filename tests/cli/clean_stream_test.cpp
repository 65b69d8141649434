// The output of a verb reaches the terminal without a control character, whoever named the files and wrote their texts.
#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "readers_fixture.h"
#include "report/full_result.h"

namespace harness::cli {
namespace {

TEST(CleanStream, EscapesLinesAndPassesTablesAsTheyAre) {
  std::ostringstream to;
  CleanStream out(to);
  out << "a\x1b[31m\n" << TerminalText{"\x1b[1mbold\x1b[0m\n"} << "\u202e" << '\x07' << std::flush;
  EXPECT_EQ(to.str(), "a\\x1b[31m\n\x1b[1mbold\x1b[0m\n\\u202e\\x07");
}

// However a text is cut into pieces, the same comes out.
TEST(CleanStream, CutsNoCharacter) {
  const std::string text = "ä\u009b\xff数\n🙂\u2066 \x1b]0;x\x07\n\xe2\x80";
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::ostringstream to;
    {
      CleanStream out(to);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = std::min<std::size_t>(1 + random() % 5, text.size() - at);
        if (bytes == 1) {
          out.put(text[at]);
        } else {
          out << text.substr(at, bytes);
        }
        at += bytes;
      }
    }
    ASSERT_EQ(to.str(), escaped_lines(text));
  }
}

TEST(CleanStream, AFullDiskIsSeenAtTheFlush) {
  std::ostringstream to;
  to.setstate(std::ios::badbit);
  CleanStream out(to);
  out << "text" << std::flush;
  EXPECT_FALSE(out);
}

// Controls, a title of the window, overrides of direction, what is not UTF-8, and a formula.
const std::string hostile = "=x\x1b]0;owned\x07\u009b31m\u202e\u200b\u2028\x7f\xff";

class PrintedByVerbs : public Readers {};

TEST_F(PrintedByVerbs, NothingHasACharacterThatMovesTheCursor) {
  const std::string first = write(hostile + ".h5", test::samples::full(hostile)),
                    second = write("b" + hostile + ".h5", test::samples::full(hostile), 1.25);
  const std::string page = folder_ / (hostile + ".html"), trace = folder_ / (hostile + ".json");
  std::vector<std::vector<std::string>> all{{"show", first, "--breakdown"},
                                            {"report", first, "-o", "-", "--format", "md"},
                                            {"report", first, "-o", page},
                                            {"trace", first, "-o", "-"},
                                            {"trace", first, "-o", trace}};
  for (const char* format : {"text", "md", "csv", "long-csv", "json"})
    all.push_back({"show", first, "--format", format});
  for (const char* format : {"text", "md", "json"}) all.push_back({"compare", first, second, "--format", format});
  for (const char* format : {"harness", "env", "megatron", "deepspeed", "torchtitan", "pytorch"})
    all.push_back({"export", first, "--format", format});
  for (const auto& arguments : all) {
    const Said said = say(arguments);
    const std::string typed = escaped(join(arguments, " "));
    EXPECT_EQ(said.out, escaped_lines(said.out)) << typed;
    EXPECT_EQ(said.err, escaped_lines(said.err)) << typed;
    if (said.out.starts_with("{")) {
      EXPECT_TRUE(nlohmann::json::accept(said.out)) << typed;
    }
  }
}

}  // namespace
}  // namespace harness::cli
