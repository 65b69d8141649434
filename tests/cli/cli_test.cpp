// Mistakes in the command line, as a person meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/text.h"
#include "cli/output.h"
#include "report/full_result.h"
#include "said.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

struct Wrong {
  std::vector<std::string> arguments;
  std::string words;
};

std::string error_of_command(const std::vector<std::string>& arguments) {
  const Said said = say(arguments);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out, "");
  return said.err;
}

TEST(CommandLine, AWrongValueIsNamedWithItsOptionAndWhatIsAllowed) {
  const std::string laptop = test::source_dir() + "/configs/laptop.yaml";
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"plan", laptop, "--backend", "gpu"}, "--backend: found 'gpu'; allowed: cpu, cuda, sim"},
           {{"selftest", "--backend", "gpu"}, "--backend: found 'gpu'; allowed: cpu, cuda, sim"},
           {{"init", "--backend", "gpu"}, "--backend: found 'gpu'; allowed: cpu, cuda, sim"},
           {{"plan", laptop, "--rounds", "x"}, "--rounds: found 'x'; expected a whole number"},
           {{"plan", laptop, "--seed", "x"}, "--seed: found 'x'; expected a whole number"},
           {{"plan", laptop, "--time-budget", "x"}, "--time-budget: found 'x'; a time is a number with a unit"},
           {{"plan", laptop, "--assume-mfu", "x"}, "--assume-mfu: found 'x'; a share is written like"},
           {{"plan", laptop, "--ranks", "0"}, "--ranks: found '0'; allowed: a whole number from 1 to 1048576"},
           {{"plan", laptop, "--ranks", "x"}, "--ranks: found 'x'; allowed: a whole number from 1 to 1048576"},
           {{"plan", laptop, "--ranks", "2", "--ranks", "4"}, "--ranks is given 2 times; give it once"},
           {{"plan", laptop, "--format", "x"}, "--format: found 'x'; allowed: text, md, json"},
           {{"selftest", "x"}, "suites: found 'x'; allowed: operations, reference, all"},
           {{"selftest", "--seed", "x"}, "--seed: found 'x'; expected a number"},
           {{"plan", laptop, "--set"}, "--set needs a value"}}) {
    EXPECT_THAT(error_of_command(wrong.arguments), StartsWith("harness: " + wrong.words));
  }
}

TEST(CommandLine, EveryErrorBeginsWithTheNameOfTheProgram) {
  for (const auto& wrong : Commands{{},
                                    {"plan"},
                                    {"plan", "x", "--colour"},
                                    {"shwo"},
                                    {"show", "none.h5"},
                                    {"compare", "a", "--format", "pdf"}}) {
    const Said said = say(wrong);
    EXPECT_NE(said.code, 0);
    EXPECT_THAT(said.err, StartsWith("harness: "));
  }
  EXPECT_EQ(say({"plan", "--help"}).code, 0);
  EXPECT_EQ(say({"plan", "--help"}).err, "");
}

// The output of a verb reaches the terminal without a control character, whoever named the files and wrote their texts.

TEST(CleanStream, EscapesLinesAndPassesTablesAsTheyAre) {
  std::ostringstream to;
  CleanStream out(to);
  out << "a\x1b[31m\n" << TerminalText{"\x1b[1mbold\x1b[0m\n"} << "\u202e" << '\x07' << std::flush;
  EXPECT_EQ(to.str(), "a\\x1b[31m\n\x1b[1mbold\x1b[0m\n\\u202e\\x07");
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
  Commands all{{"show", first, "--breakdown"},
               {"report", first, "-o", "-", "--format", "md"},
               {"report", first, "-o", page},
               {"trace", first, "-o", "-"},
               {"trace", first, "-o", trace}};
  for (const char* format : {"text", "md", "csv", "json"}) all.push_back({"show", first, "--format", format});
  for (const char* format : {"text", "md", "json"}) all.push_back({"compare", first, second, "--format", format});
  for (const char* format : {"harness", "env", "megatron", "deepspeed", "torchtitan"})
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
