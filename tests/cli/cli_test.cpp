// Mistakes in the command line, as a person meets them.
#include "said.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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
           {{"selftest", "--oracle", "gpu"}, "--oracle: found 'gpu'; allowed: cpu, cuda, sim"},
           {{"init", "--backend", "gpu"}, "--backend: found 'gpu'; allowed: cpu, cuda, sim"},
           {{"plan", laptop, "--rounds", "x"}, "--rounds: found 'x'; expected a whole number"},
           {{"plan", laptop, "--seed", "x"}, "--seed: found 'x'; expected a whole number"},
           {{"plan", laptop, "--time-budget", "x"}, "--time-budget: found 'x'; a time is a number with a unit"},
           {{"plan", laptop, "--assume-mfu", "x"}, "--assume-mfu: found 'x'; a share is written like"},
           {{"plan", laptop, "--ranks", "0"}, "--ranks: found '0'; allowed: 1 to 1048576"},
           {{"plan", laptop, "--ranks", "x"}, "--ranks: found 'x'; allowed: a whole number, 1 to 1048576"},
           {{"plan", laptop, "--ranks", "1e3"}, "--ranks: found '1e3'; allowed: a whole number, 1 to 1048576"},
           {{"plan", laptop, "--ranks", "2", "--ranks", "4"}, "--ranks is given 2 times; give it once"},
           {{"plan", laptop, "--format", "x"}, "--format: found 'x'; allowed: text, md, json"},
           {{"selftest", "x"}, "suites: found 'x'; allowed: operations, reference, equality, all"},
           {{"selftest", "--seed", "x"}, "--seed: found 'x'; expected a number"},
           {{"plan", laptop, "--set"}, "--set needs a value"}}) {
    EXPECT_THAT(error_of_command(wrong.arguments), StartsWith("harness: " + wrong.words));
  }
}

TEST(CommandLine, EveryErrorBeginsWithTheNameOfTheProgram) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
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

}  // namespace
}  // namespace harness::cli
