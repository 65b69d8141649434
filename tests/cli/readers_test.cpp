// compare, export, trace and the costs of show, in-process, on files written for the test.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli.h"
#include "support/files.h"
#include "support/sample_timeline.h"
#include "support/temporary_folder.h"
#include "written_result.h"

namespace harness::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Said {
  int code = -1;
  std::string out, err;
};

class Readers : public ::testing::Test {
 protected:
  std::string write(const std::string& name, store::Result result, double factor = 1) {
    result.run_uuid = name;
    for (auto& steps : result.step_seconds) {
      for (auto& step : steps) step = static_cast<float>(step * factor);
    }
    test::samples::write_result(folder_ / name, result);
    return folder_ / name;
  }
  static Said say(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const int code = run_cli(arguments, out, err);
    return {code, out.str(), err.str()};
  }
  test::TemporaryFolder folder_;
};

// Whatever a name or a file holds, a terminal gets no control of it; and no words of a library.
TEST_F(Readers, NoMessageCarriesControls) {
  const auto hostile = say({"show", "\u009b31m\u202e\x1b[2J"});
  EXPECT_EQ(hostile.code, 1);
  EXPECT_EQ(hostile.err, "harness: \\x9b31m\\u202e\\x1b[2J: no such file\n");
  EXPECT_THAT(say({"show", "a", "\u009b31m"}).err, HasSubstr("\\x9b31m"));
  EXPECT_THAT(say({"plan", "x.yaml", "--set"}).err, HasSubstr("--set needs a value"));
  EXPECT_THAT(say({"show", std::string(300, 'n')}).err, HasSubstr("File name too long"));
}

TEST_F(Readers, CompareExitsWithWhatItFound) {
  const auto a = write("a.h5", test::samples::nothing_moved());
  const auto slower = write("slower.h5", test::samples::nothing_moved(), 1.1);
  const auto faster = write("faster.h5", test::samples::nothing_moved(), 0.9);
  EXPECT_EQ(say({"compare", a, a}).code, 0);
  EXPECT_EQ(say({"compare", a, slower}).code, 0);  // it was not asked to judge
  EXPECT_EQ(say({"compare", a, slower, "--fail-on", "slower"}).code, 2);
  EXPECT_EQ(say({"compare", a, slower, "--fail-on", "slower:5"}).code, 2);
  EXPECT_EQ(say({"compare", a, slower, "--fail-on", "slower:5%"}).code, 2);
  EXPECT_EQ(say({"compare", a, slower, "--fail-on", "slower:11"}).code, 0);
  EXPECT_EQ(say({"compare", a, faster, "--fail-on", "slower"}).code, 0);
  EXPECT_EQ(say({"compare", a, faster, slower, "--fail-on", "slower"}).code, 2);
  EXPECT_EQ(say({"compare", a, a, "--fail-on", "slower"}).code, 0);
}

TEST_F(Readers, CompareRefusesWhatIsUnlikeAndDoubtsWhatIsUnreliable) {
  const auto a = write("a.h5", test::samples::nothing_moved());
  store::Result other = test::samples::nothing_moved();
  other.ranks = 8;
  const auto ranks = write("ranks.h5", other);
  const auto moved = write("moved.h5", test::samples::unreliable());
  const auto part = write("part.h5", test::samples::partial());
  const Said refused = say({"compare", a, ranks});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.out, HasSubstr("Numbers of ranks differ"));
  EXPECT_THAT(refused.out, Not(HasSubstr("tokens/s")));
  const Said anyway = say({"compare", a, ranks, "--anyway"});
  EXPECT_EQ(anyway.code, 0);
  EXPECT_THAT(anyway.out, HasSubstr("tokens/s"));
  EXPECT_EQ(say({"compare", a, moved}).code, 4);
  EXPECT_EQ(say({"compare", a, part}).code, 4);
  // Nothing in common is nothing compared, not "no regression".
  store::Result bf16 = test::samples::nothing_moved();
  for (auto& row : bf16.cases) row.settings[0] = "bf16";
  EXPECT_EQ(say({"compare", a, write("bf16.h5", bf16), "--fail-on", "slower"}).code, 3);
  EXPECT_EQ(say({"compare", a, ranks, "--reproduce"}).code, 0);  // effects, not times
}

TEST_F(Readers, CompareTakesRunsOfTwoSides) {
  std::vector<std::string> arguments{"compare"};
  for (const double factor : {1.0, 1.01, 0.99})
    arguments.push_back(write(fmt::format("a{}.h5", factor), test::samples::nothing_moved(), factor));
  arguments.emplace_back("--with");
  for (const double factor : {1.2, 1.21, 1.19})
    arguments.push_back(write(fmt::format("b{}.h5", factor), test::samples::nothing_moved(), factor));
  const Said text = say(arguments);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("The interval is between runs"));
  for (const char* more : {"--format", "json", "--fail-on", "slower:10"}) arguments.emplace_back(more);
  const Said json = say(arguments);
  EXPECT_EQ(json.code, 2);
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_TRUE(parsed["comparisons"][0]["between_runs"]);
  EXPECT_EQ(parsed["comparisons"][0]["cases"][0]["a"]["runs"], 3);
}

TEST_F(Readers, SlipsInArgumentsAreUsageErrors) {
  const auto a = write("a.h5", test::samples::nothing_moved());
  EXPECT_EQ(say({"compare", a}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--fail-on", "faster"}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--fail-on", "slower:x"}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--fail-on", "slower:nan"}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--fail-on", "slower:-1"}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--reproduce", "--fail-on", "slower"}).code, 1);
  EXPECT_EQ(say({"compare", a, a, "--with", a, a}).code, 1);  // a run counts once on a side
  EXPECT_EQ(say({"export", a, "--format", "yaml"}).code, 1);
  EXPECT_EQ(say({"export", a, "--format", "env", "--case", "baseline"}).code, 1);
  EXPECT_EQ(say({"trace", a, "-o", a}).code, 1);
  EXPECT_EQ(say({"show", a, "--cost", "2.5"}).code, 1);
  EXPECT_EQ(say({"show", a, "--cost", "free", "--run-tokens", "1e9"}).code, 1);
  EXPECT_EQ(say({"show", a}).code, 0);  // and the file is still whole
}

TEST_F(Readers, ExportPrintsWhatIsProven) {
  const auto a = write("a.h5", test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8}));
  const Said said = say({"export", a, "--format", "megatron"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("  --micro-batch-size 2\n"));
  EXPECT_THAT(said.out, HasSubstr("12 rounds; a.h5"));
  EXPECT_EQ(say({"export", write("moved.h5", test::samples::unreliable()), "--format", "env"}).code, 4);
}

TEST_F(Readers, TraceWritesAFileThatParses) {
  const auto a = write("a.h5", test::samples::with_timeline());
  const Said said = say({"trace", a, "--case", "micro_batch_size=2", "-o", folder_ / "trace.json"});
  EXPECT_EQ(said.code, 0) << said.err;
  std::ifstream in(folder_ / "trace.json");
  EXPECT_EQ(nlohmann::json::parse(in)["otherData"]["case"], "micro_batch_size=2");
  EXPECT_EQ(say({"trace", a, "-o", folder_ / "new/trace.json"}).code, 0);
  EXPECT_EQ(nlohmann::json::parse(say({"trace", a, "-o", "-"}).out)["otherData"]["case"], "baseline");
}

TEST_F(Readers, TraceOverwritesNothingUnlessTold) {
  const auto a = write("a.h5", test::samples::with_timeline());
  const std::string taken = folder_.write("trace.json", "mine");
  const Said refused = say({"trace", a, "-o", taken});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("already exists"));
  EXPECT_EQ(test::text_of(taken), "mine");
  EXPECT_EQ(say({"trace", a, "-o", taken, "--force"}).code, 0);
  EXPECT_NE(test::text_of(taken), "mine");
}

TEST_F(Readers, AnOutputThatNobodyGetsIsAFailure) {
  const auto a = write("a.h5", test::samples::with_timeline());
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"show", a},
                                                    {"show", a, "--breakdown"},
                                                    {"compare", a, a},
                                                    {"export", a, "--format", "env"},
                                                    {"report", a, "-o", "-"},
                                                    {"trace", a, "-o", "-"},
                                                    {"--version"},
                                                    {"show", "--help"}}) {
    std::ofstream out("/dev/full");
    std::ostringstream err;
    EXPECT_EQ(run_cli(arguments, out, err), 1) << arguments[0];
    EXPECT_THAT(err.str(), HasSubstr("harness: cannot write to the standard output: ")) << arguments[0];
  }
}

TEST_F(Readers, HelpIsACommandAndAnUnknownOneIsNamed) {
  EXPECT_EQ(say({"help"}).code, 0);
  EXPECT_THAT(say({"help"}).out, HasSubstr("compare"));
  EXPECT_THAT(say({"help", "trace"}).out, HasSubstr("--case"));
  EXPECT_THAT(say({"help", "sweep"}).out, HasSubstr("--resume"));
  const Said said = say({"sho", "a.h5"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("there is no command 'sho'"));
  EXPECT_THAT(said.err, HasSubstr("did you mean show?"));
}

TEST_F(Readers, ShowTellsCostsFromTheConfigurationOrTheCommandLine) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8});
  const auto without = write("a.h5", result);
  EXPECT_THAT(say({"show", without}).out, Not(HasSubstr("training run")));
  EXPECT_THAT(say({"show", without, "--cost", "2.5", "--run-tokens", "300e9"}).out, HasSubstr("at 2.50 USD per GPU"));
  result.config_text = "cost: {per_gpu_hour: 3, currency: EUR, run: {tokens: 1e9}}\n";
  const auto with = write("b.h5", result);
  EXPECT_THAT(say({"show", with}).out, HasSubstr("at 3.00 EUR per GPU"));
  EXPECT_THAT(say({"show", with, "--cost", "4"}).out, HasSubstr("at 4.00 EUR per GPU"));
  EXPECT_EQ(nlohmann::json::parse(say({"show", with, "--format", "json"}).out)["cost"]["currency"], "EUR");
}

TEST_F(Readers, ADamagedOrForeignFileGetsOneError) {
  const auto good = write("good.h5", test::samples::with_timeline());
  const std::string whole = test::text_of(good);
  std::string scrambled = whole;
  for (std::size_t i = 2048; i < scrambled.size(); i += 97) scrambled[i] = '\x5a';
  for (const std::string& bad : {folder_.write("cut.h5", whole.substr(0, whole.size() / 2)),
                                 folder_.write("text.h5", "not HDF5 \x1b[2J at all\n"), folder_.write("empty.h5", ""),
                                 folder_.write("scrambled.h5", scrambled), folder_ / "absent.h5", folder_ / ""}) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"compare", good, bad},
                                                      {"compare", bad, good, "--reproduce"},
                                                      {"export", bad, "--format", "env"},
                                                      {"trace", bad, "-o", folder_ / "t.json"},
                                                      {"show", bad, "--cost", "1"}}) {
      const Said said = say(arguments);
      EXPECT_EQ(said.code, 1) << bad;
      EXPECT_TRUE(said.out.empty()) << said.out;
      EXPECT_EQ(said.err.substr(0, 9), "harness: ");
      EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
      EXPECT_THAT(said.err, Not(HasSubstr("\x1b")));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "t.json"));
}

}  // namespace
}  // namespace harness::cli
