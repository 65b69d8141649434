// Mistakes on the command line, as users make them.
#include "backend/backend.h"
#include "cli/output.h"
#include "plan/plan.h"
#include "report/full_result.h"
#include "said.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

TEST(CommandLine, AWrongValueIsNamedWithItsOptionAndWhatIsAllowed) {
  const std::string laptop = shipped("laptop.yaml");
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
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
    const Said said = say(arguments);
    EXPECT_EQ(said.code, 1);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.err, StartsWith("harness: " + words));
  }
}

// The files behind an option's value are no further values of it.
TEST(CommandLine, AnOverrideIsOneWord) {
  const Arguments sweep = parse_arguments({"sweep", "--set", "measure.rounds=4", "a.yaml", "--set", "threads=1"});
  EXPECT_EQ(sweep.sweep.config, "a.yaml");
  EXPECT_EQ(sweep.sweep.overrides, (std::vector<std::string>{"measure.rounds=4", "threads=1"}));
  const Arguments selftest = parse_arguments({"selftest", "--only", "gelu", "operations", "--only", "softmax"});
  EXPECT_EQ(selftest.selftest.suites, (std::vector<std::string>{"operations"}));
  EXPECT_EQ(selftest.selftest.only, (std::vector<std::string>{"gelu", "softmax"}));
  const Arguments read = parse_arguments({"read", "--set", "ranks=16", "a.sh", "b.log"});
  EXPECT_EQ(read.read.files, (std::vector<std::string>{"a.sh", "b.log"}));
  const Arguments compare = parse_arguments({"compare", "--columns", "change,verdict", "a.h5", "b.h5"});
  EXPECT_EQ(compare.compare.files, (std::vector<std::string>{"a.h5", "b.h5"}));
  EXPECT_EQ(compare.compare.view.columns, (std::vector<std::string>{"change", "verdict"}));
}

// A verb's output reaches the terminal without control characters, whatever the files are named or contain.
TEST(CleanStream, EscapesLinesAndPassesTablesAsTheyAre) {
  std::ostringstream to;
  CleanStream out(to);
  out << "a\x1b[31m\n" << TerminalText{"\x1b[1mbold\x1b[0m\n"} << "\u202e" << '\x07' << std::flush;
  EXPECT_EQ(to.str(), "a\\x1b[31m\n\x1b[1mbold\x1b[0m\n\\u202e\\x07");
}

// Control characters, a window title, direction overrides, invalid UTF-8, and a spreadsheet formula.
const std::string hostile = "=x\x1b]0;owned\x07\u009b31m\u202e\u200b\u2028\x7f\xff";

TEST_F(Readers, PrintNoCharacterThatMovesTheCursor) {
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

FirstMachine node(const std::string& gpu, double memory_bytes, int gpus) {
  machine::GpuHealth one;
  one.name = gpu;
  one.memory_bytes = memory_bytes;
  return {.gpus = std::vector<machine::GpuHealth>(gpus, one), .cores = 64, .cpu = "a CPU"};
}
const FirstMachine laptop{.gpus = {}, .cores = 2, .cpu = "a CPU"};

// The file that init writes loads without a warning, and all its cases can run.
plan::Plan plan_of(const FirstConfiguration& first) {
  const config::Experiment e = config::load_experiment("harness.yaml", {}, first.text);
  EXPECT_TRUE(e.warnings.empty()) << e.warnings.front();
  plan::Plan p = plan::prepare(e, first.ranks, {});
  for (const plan::PlannedCase& c : p.cases) {
    EXPECT_EQ(c.impossible, "") << c.name;
    EXPECT_TRUE(c.notes.empty()) << c.name << ": " << c.notes.front();
  }
  return p;
}

TEST(Init, EveryMachineGetsAPlanThatRuns) {
  for (const int ranks : {1, 3, 8}) {
    SCOPED_TRACE(ranks);
    plan_of(first_configuration(laptop, {.ranks = ranks, .backend = ""}));
    plan_of(first_configuration(node("NVIDIA H100 80GB HBM3", 80e9, 8), {.ranks = ranks, .backend = ""}));
  }
}

TEST(Init, TheGpusNameFindsItsHardwareAndAModelThatFits) {
  const plan::Plan h100 = plan_of(first_configuration(node("NVIDIA H100 80GB HBM3", 80e9, 8), {}));
  EXPECT_EQ(h100.experiment.backend, config::BackendKind::cuda);
  EXPECT_EQ(h100.ranks, 8);
  ASSERT_TRUE(h100.experiment.hardware);
  EXPECT_EQ(h100.experiment.hardware->name, "H100 SXM5 80GB");
  for (const plan::PlannedCase& c : h100.cases)
    EXPECT_LT(plan::planned_memory_bytes(h100.experiment, c), 80e9) << c.name;
  const plan::Plan a10 = plan_of(first_configuration(node("NVIDIA A10", 24e9, 1), {}));
  for (const plan::PlannedCase& c : a10.cases) EXPECT_LT(plan::planned_memory_bytes(a10.experiment, c), 24e9) << c.name;
  EXPECT_LT(a10.experiment.model.layers * a10.experiment.model.hidden,
            h100.experiment.model.layers * h100.experiment.model.hidden);
}

TEST(Init, WhatTheGpuIsDecidesOnMfuAndPrecision) {
  const FirstConfiguration unknown = first_configuration(node("Some GPU", 40e9, 2), {});
  EXPECT_THAT(unknown.text, HasSubstr("hardware: none "));
  EXPECT_THAT(unknown.text, HasSubstr("no hardware file lists the Some GPU"));
  plan_of(unknown);
  const FirstConfiguration volta = first_configuration(node("Tesla V100-SXM2-16GB", 16e9, 1), {});
  EXPECT_EQ(plan_of(volta).experiment.baseline.precision, config::Precision::fp32);
}

TEST(Init, OptionsChooseBackendAndRanks) {
  EXPECT_EQ(plan_of(first_configuration(laptop, {})).ranks, 2);
  const FirstConfiguration for_cluster = first_configuration(laptop, {.ranks = 0, .backend = "cuda"});
  EXPECT_EQ(for_cluster.ranks, 8);
  EXPECT_THAT(for_cluster.text, HasSubstr("no GPU here"));
  const FirstConfiguration on_cores = first_configuration(node("NVIDIA A10", 24e9, 1), {.ranks = 4, .backend = "cpu"});
  EXPECT_EQ(plan_of(on_cores).experiment.backend, config::BackendKind::cpu);
  EXPECT_THAT(test::error_of([] { first_configuration(laptop, {.ranks = 0, .backend = "sim"}); }),
              HasSubstr("--backend sim: a first configuration measures"));
}

TEST(Init, WritesAFileOnceAndSaysHowToGoOn) {
  const test::TemporaryFolder folder;
  const InitOptions options{.ranks = 2, .backend = "cpu", .output = folder / "mine.yaml"};
  std::ostringstream out;
  setenv("HARNESS_CALLED", "/opt/site/harness", 1);  // set by the launcher to the command that the user typed
  EXPECT_EQ(init(options, out), 0);
  unsetenv("HARNESS_CALLED");
  EXPECT_THAT(out.str(), HasSubstr("  /opt/site/harness plan " + options.output + " --ranks 2"));
  EXPECT_THAT(out.str(), HasSubstr(" /opt/site/harness sweep " + options.output));
  EXPECT_THAT(test::text_of(options.output), HasSubstr("/opt/site/harness sweep " + options.output));
  EXPECT_THAT(test::text_of(options.output), HasSubstr("backend: cpu\n"));
  const std::string before = test::text_of(options.output);
  EXPECT_THAT(test::error_of([&] { init(options, out); }), HasSubstr("exists; -o names another file"));
  EXPECT_EQ(test::text_of(options.output), before);
}

}  // namespace
}  // namespace harness::cli
