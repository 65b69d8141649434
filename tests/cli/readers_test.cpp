// show, report, export and trace, in-process, on files written for the test. The configurations that export --format
// harness writes can be planned, and give their reasons.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "report/golden.h"
#include "said.h"
#include "store/lock.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

// The name of a file or folder can neither start a line of its own nor reverse one, with any verb.
TEST_F(Readers, APathForgesNoLine) {
  const store::Result sample = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8});
  const std::string configuration = test::text_of(shipped("laptop.yaml"));
  for (const std::string name : {"a\nforged: line", "a\r\nforged\x1b]0;x\x07", "a\u202e\u2028b\u009b31m"}) {
    const std::string good = write(name + ".h5", sample), bad = folder_.write(name + "-bad.h5", "no result"),
                      yaml = folder_.write(name + ".yaml", configuration),
                      wrong = folder_.write(name + "-wrong.yaml", "model: {\"x\\nforged: y\": 1}\nbackend: gpu\n");
    const std::string missing = folder_ / (name + "/missing.h5"), other = write("other.h5", sample),
                      taken = folder_.write(name + "-taken", "");
    std::filesystem::create_directories(folder_ / (name + "-folder.h5"));
    Commands all;
    for (const std::string& file : {good, bad, yaml, wrong, missing, folder_ / (name + "-folder.h5")}) {
      for (const auto& verb : Commands{{"show"},
                                       {"show", "--breakdown"},
                                       {"plan", "--ranks", "2"},
                                       {"plan", "--hardware", "h100-sxm"},
                                       {"plan", "--hardware", file, shipped("laptop.yaml")},
                                       {"report", "-o", "-", "--format", "md"},
                                       {"report", "-o", taken},
                                       {"report", "-o", file},
                                       {"report", "--force", "-o", folder_ / (name + ".html")},
                                       {"trace", "-o", taken},
                                       {"compare", "--history"},
                                       {"compare", other},
                                       {"compare", "--reproduce", other},
                                       {"compare", other, other + "2", "--with"},
                                       {"export"},
                                       {"export", "--format", "env"},
                                       {"read"},
                                       {"read", other},
                                       {"read", "-o", taken},
                                       {"init", "-o"},
                                       {"make-tokens", "--tokens", "10", "--vocabulary", "10"},
                                       {"variables"},
                                       {"no such verb"},
                                       {"show", "--" + name}}) {
        all.push_back(verb);
        if (std::ranges::find(verb, file) == verb.end()) all.back().push_back(file);
      }
    }
    for (const auto& arguments : all) {
      const Said said = say(arguments);
      const std::string text = "\n" + said.all(), typed = escaped(join(arguments, " "));
      EXPECT_EQ(text, escaped_lines(text)) << typed;
      EXPECT_THAT(text, Not(HasSubstr("\nforged"))) << typed;
    }
    EXPECT_EQ(say({"show", good}).code, 0);
    EXPECT_THAT(say({"show", missing}).err, HasSubstr(escaped(name)));
  }
}

TEST_F(Readers, FollowPrintsAfterEachRoundUntilTheSweepHasEnded) {
  store::Result whole = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8}, 3);
  for (std::size_t i = 0; i < whole.blocks.size(); ++i) whole.blocks[i].start_unix_s = 1000 + 10 * double(i);
  ShowOptions options;
  options.files = {folder_ / "a.h5"};
  int writes = 0;
  const auto measured = [&](std::size_t blocks, store::RunState state) {
    store::Result result = whole;
    result.state = state;
    for (std::size_t i = blocks; i < result.blocks.size(); ++i) result.blocks[i].status = store::BlockStatus::pending;
    // Makes every write a new modification time, whatever the resolution of the file system's clock.
    std::filesystem::last_write_time(write("a.h5", result),
                                     std::filesystem::file_time_type::clock::now() + std::chrono::seconds(++writes));
  };
  const auto followed = [&](const std::function<void()>& wait, bool redraw = false) {
    return outcome_of([&](std::ostream& out, std::ostream& err) { return follow(options, out, err, wait, redraw); });
  };
  measured(0, store::RunState::running);
  int waits = 0;
  const Said said = followed([&] {
    ++waits;
    if (waits == 1) measured(2, store::RunState::running);  // within a round: no new table
    if (waits == 3) measured(3, store::RunState::running);
    if (waits == 4) measured(6, store::RunState::running);
    if (waits == 5) measured(9, store::RunState::complete);
    ASSERT_LT(waits, 10);
  });
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(waits, 5);
  EXPECT_THAT(said.out, AllOf(StartsWith("Unfinished: 0 of 3 rounds, 0 of 9 blocks.\n"),
                              HasSubstr("\n\nUnfinished: 1 of 3 rounds, 3 of 9 blocks; about "),
                              HasSubstr("Unfinished: 2 of 3 rounds, 6 of 9 blocks; about "),
                              HasSubstr("\n\nComplete: 3 of 3 rounds, 9 of 9 blocks.\n"), Not(HasSubstr("2 of 9")),
                              Not(HasSubstr("\x1b"))));
  EXPECT_EQ(said.err, "");
  // On a terminal, each table replaces the previous one.
  measured(3, store::RunState::running);
  const Said screen = followed([&] { measured(9, store::RunState::complete); }, true);
  EXPECT_EQ(screen.code, 0);
  EXPECT_THAT(screen.out,
              AllOf(StartsWith("\x1b[H\x1b[2JUnfinished: 1 of 3"), HasSubstr("\x1b[H\x1b[2JComplete: 3 of 3")));
  // A stopped sweep gives the exit code of show.
  measured(6, store::RunState::partial);
  const Said stopped = followed([] { FAIL(); });
  EXPECT_EQ(stopped.code, 0);
  EXPECT_THAT(stopped.out, StartsWith("Stopped: 2 of 3 rounds, 6 of 9 blocks.\n"));
  // One that has the lock is being resumed, or about to end.
  auto lock = store::Lock::take(options.files[0]);
  const Said resumed = followed([&] { measured(9, store::RunState::complete); });
  EXPECT_EQ(resumed.code, 0);
  EXPECT_THAT(resumed.out, HasSubstr("\n\nComplete: 3 of 3 rounds, 9 of 9 blocks.\n"));
  measured(6, store::RunState::partial);
  EXPECT_EQ(followed([&] { lock.reset(); }).code, 0);
}

TEST_F(Readers, TablesAreSeenAsAskedFor) {
  const auto a = write("a.h5", test::samples::everything());
  EXPECT_THAT(say({"show", a, "--columns", "change,verdict"}).out,
              HasSubstr("\ncase                            change  verdict\n"));
  EXPECT_THAT(say({"show", a, "--columns", "change,verdict", "--format", "md"}).out,
              HasSubstr("\n| case | change | verdict |\n"));
  EXPECT_THAT(say({"show", a, "--columns", "x"}).err, HasSubstr("there is no such column"));
  EXPECT_THAT(say({"show", a, "--columns", "change", "--format", "csv"}).err, HasSubstr("give text or md"));
  EXPECT_THAT(say({"compare", a, a, "--columns", "change", "--format", "json"}).err, HasSubstr("give text or md"));
  EXPECT_THAT(say({"show", a}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(say({"compare", a, a, "--columns", "change,verdict"}).out, HasSubstr("\nbaseline "));
  setenv("COLUMNS", "80", 1);
  const std::string narrow = say({"show", a}).out, csv = say({"show", a, "--format", "csv"}).out;
  unsetenv("COLUMNS");
  EXPECT_THAT(narrow, HasSubstr("Left out to fit: "));
  for (const std::string& line : split_text(narrow, "\n")) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(csv, say({"show", a, "--format", "csv"}).out);
}

TEST_F(Readers, SlipsInArgumentsAreUsageErrors) {
  const auto a = write("a.h5", test::samples::nothing_moved());
  for (const auto& slip : Commands{{"compare", a},
                                   {"compare", a, a, "--fail-on", "faster"},
                                   {"compare", a, a, "--fail-on", "slower:nan"},
                                   {"compare", a, a, "--fail-on", "slower:-1"},
                                   {"compare", a, a, "--reproduce", "--fail-on", "slower"},
                                   {"compare", a, a, "--with", a, a},  // a run counts only once on a side
                                   {"export", a, "--format", "yaml"},
                                   {"export", a, "--format", "env", "--case", "nobody"},
                                   {"trace", a, "-o", a},
                                   {"show", a, "--cost", "2.5"},
                                   {"show", a, "--cost", "free", "--run-tokens", "1e9"},
                                   {"show", a, "--follow", "--format", "json"}}) {
    EXPECT_EQ(say(slip).code, 1) << slip.back();
  }
  EXPECT_EQ(say({"show", a}).code, 0);  // the file is still intact
}

TEST_F(Readers, TraceWritesAFileThatParsesAndOverwritesNothingUnlessTold) {
  const auto a = write("a.h5", test::samples::with_timeline());
  EXPECT_EQ(say({"trace", a, "--case", "micro_batch_size=2"}).code, 0);  // beside the file
  EXPECT_EQ(nlohmann::json::parse(test::text_of(folder_ / "a.trace.json"))["otherData"]["case"], "micro_batch_size=2");
  EXPECT_EQ(say({"trace", a, "-o", "-"}).json()["otherData"]["case"], "baseline");
  const std::string taken = folder_.write("trace.json", "mine");
  EXPECT_THAT(say({"trace", a, "-o", taken}).err, HasSubstr("already exists"));
  EXPECT_EQ(test::text_of(taken), "mine");
  EXPECT_EQ(say({"trace", a, "-o", taken, "--force"}).code, 0);
  EXPECT_NE(test::text_of(taken), "mine");
}

TEST_F(Readers, AReportIsWrittenBesideTheResultAndNeverOverSomething) {
  const auto a = write("a.h5", test::samples::with_timeline());
  EXPECT_THAT(say({"report", a}).out, HasSubstr("a.html"));
  const std::string page = test::text_of(folder_ / "a.html");
  EXPECT_THAT(page, HasSubstr("<figure id=\"timeline-baseline\">"));
  EXPECT_THAT(say({"report", a}).err, HasSubstr("--force"));
  EXPECT_EQ(say({"report", a, "--force"}).code, 0);
}

TEST_F(Readers, AnOutputThatNobodyGetsIsAFailure) {
  const auto a = write("a.h5", test::samples::with_timeline());
  for (const auto& arguments : Commands{{"show", a},
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
  EXPECT_THAT(say({"help", "sweep"}).out, Not(HasSubstr("kept")));  // --force keeps nothing of the old file
  const Said said = say({"sho", "a.h5"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("there is no command 'sho'"));
  EXPECT_THAT(said.err, HasSubstr("did you mean show?"));
  // Options of nccl-tests that have another meaning here.
  for (const auto& [option, here] :
       std::vector<std::pair<std::string, std::string>>{{"-g", "mpirun -np N"},
                                                        {"-n", "baseline.repetitions"},
                                                        {"--iters", "baseline.repetitions"},
                                                        {"-d", "baseline.precision"},
                                                        {"-c", "checks its results"}}) {
    EXPECT_THAT(say({"plan", "a.yaml", option, "20"}).err, HasSubstr(here)) << option;
  }
  EXPECT_THAT(say({"plan", "a.yaml", "--stepbytes=1M"}).err, AllOf(HasSubstr("-f 2"), Not(HasSubstr("did you mean"))));
}

TEST_F(Readers, ShowTellsCostsFromTheConfigurationOrTheCommandLine) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8});
  const auto without = write("a.h5", result);
  EXPECT_THAT(say({"show", without}).out, Not(HasSubstr("training run")));
  EXPECT_THAT(say({"show", without, "--cost", "2.5", "--run-tokens", "300e9"}).out,
              HasSubstr("at 2.50 USD per rank and hour"));
  result.backend = "cuda";
  const auto of_gpus = write("gpus.h5", result);
  EXPECT_THAT(say({"show", of_gpus, "--cost", "2.5", "--run-tokens", "300e9"}).out,
              HasSubstr("2.50 USD per GPU and hour"));
  result.backend = "cpu";
  result.config_text = "cost: {per_gpu_hour: 3, currency: EUR, run: {tokens: 1e9}}\n";
  const auto with = write("b.h5", result);
  EXPECT_THAT(say({"show", with}).out, HasSubstr("at 3.00 EUR per rank"));
  EXPECT_THAT(say({"show", with, "--cost", "4"}).out, HasSubstr("at 4.00 EUR per rank"));
  EXPECT_EQ(say({"show", with, "--format", "json"}).json()["cost"]["currency"], "EUR");
  EXPECT_THAT(say({"show", with, "--currency", "<b>"}).err, HasSubstr("--currency: found '<b>'; allowed: up to 8 "));
  EXPECT_THAT(say({"show", without, "--currency", "EUR"}).err, HasSubstr("--cost and --run-tokens need each other"));
  EXPECT_THAT(say({"show", with, "--cost", "4", "--format", "csv"}).err, HasSubstr("csv holds the cases alone"));
  for (store::ResultBlock& block : result.blocks) block.status = store::BlockStatus::pending;
  const auto nothing = write("c.h5", result);
  for (const auto& arguments :
       Commands{{"show", nothing, "--cost", "4"}, {"report", nothing, "--cost", "4", "--format", "md", "-o", "-"}})
    EXPECT_THAT(say(arguments).out, HasSubstr("There is no price: the file has no tokens/s of the baseline."));
}

class NextConfiguration : public Readers {
 protected:
  // Exports the configuration that follows a result, and plans it. Returns its text.
  std::string next_of(const store::Result& result) {
    const Said said = say({"export", write("a.h5", result), "--format", "harness"});
    EXPECT_EQ(said.code, 0) << said.err;
    const Said planned = say({"plan", folder_.write("next.yaml", said.out), "--ranks", "4"});
    EXPECT_EQ(planned.code, 0) << planned.err << said.out;
    plan_ = planned.out;
    return said.out;
  }
  std::string plan_;  // of the last one
};

constexpr const char* model = "backend: cpu\nmodel: {layers: 4, hidden: 128, heads: 4, vocab: 2048, sequence: 128}\n";

// Two proven changes of one variable, one each of two others, and every reason for leaving a list.
store::Result sweep_with_a_configuration() {
  store::Result result = test::samples::sweep(
      {"micro_batch_size=2", "micro_batch_size=4", "overlap_grad_reduce=false", "precision=bf16",
       "layout={tensor_parallel: 2, pipeline_parallel: 1}", "layout={tensor_parallel: 1, pipeline_parallel: 2}"},
      {1, 1, 0.95, 0.85, 0.92, 0.9, 1.3, 1.0005});
  result.config_path = "laptop.yaml";
  result.config_text =
      "name: laptop  # ours\n" + std::string(model) +
      "baseline: {precision: fp32, global_batch_size: 16, micro_batch_size: 1, overlap_grad_reduce: true}\n"
      "sweep:\n  micro_batch_size: [1, 2, 4, 16]\n  overlap_grad_reduce: [false]\n  precision: [bf16]\n"
      "  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]\n"
      "measure: {rounds: 4, deadlines: {start: 60 s, step: 30 s}}\noutput: 'results/{name}-{date}.h5'\n";
  result.overrides = {"measure.rounds=12", "sweep.bucket_size=[2 MiB]"};
  return result;
}

TEST_F(NextConfiguration, ExportWritesTheNextConfiguration) {
  test::expect_golden("next.yaml", next_of(sweep_with_a_configuration()));
  EXPECT_THAT(plan_, HasSubstr("\nprecision=bf16 + overlap_grad_reduce=false"));
}

// The flags of any case, proven or not, even before any measurement.
TEST_F(NextConfiguration, ExportWritesTheFlagsOfAPlannedCase) {
  const auto a = write("a.h5", sweep_with_a_configuration());
  const Said slower = say({"export", a, "--format", "megatron", "--case", "TP2"});
  EXPECT_EQ(slower.code, 0) << slower.err;
  test::expect_golden("export.planned", slower.out);
  EXPECT_THAT(say({"export", a, "--format", "megatron", "--case", "TP3"}).err, HasSubstr("there is no case 'TP3'"));
  EXPECT_THAT(say({"export", a, "--format", "env", "--case", "baseline"}).out, HasSubstr("): the baseline.\n"));

  const std::string config =
      folder_.write("job.yaml", std::string(model) +
                                    "baseline: {global_batch_size: 16, micro_batch_size: 2}\n"
                                    "sweep: {layout: [{tensor_parallel: 2}], precision: [bf16]}\n");
  const Said baseline = say({"export", config, "--format", "megatron"});
  EXPECT_EQ(baseline.code, 0) << baseline.err;
  EXPECT_THAT(baseline.out, HasSubstr("# All settings of baseline in " + config + ": planned, not measured.\n"));
  EXPECT_THAT(baseline.out, HasSubstr("\n  --micro-batch-size 2\n"));
  EXPECT_THAT(baseline.out, Not(HasSubstr("--bf16")));
  EXPECT_THAT(say({"export", config, "--format", "megatron", "--case", "precision=bf16"}).out,
              HasSubstr("\n  --bf16\n"));
  EXPECT_THAT(say({"export", config, "--format", "deepspeed"}).out, HasSubstr("\"train_batch_size\": 16"));
  EXPECT_THAT(say({"export", config, "--format", "megatron", "--case", "precision=fp8"}).err,
              HasSubstr("there is no case 'precision=fp8'"));
  EXPECT_THAT(say({"export", config}).err, HasSubstr("is a configuration already"));
  const std::string gemm = folder_.write("gemm.yaml", "workload: gemm\nbackend: cpu\nbaseline: {}\n");
  EXPECT_THAT(say({"export", gemm, "--format", "megatron"}).out, HasSubstr("MEGATRON_ARGS=(\n)\n"));
}

TEST_F(NextConfiguration, TheNextConfigurationOfTwoWinnersSweepsTheSecondOnTopOfTheFirst) {
  store::Result result = test::samples::sweep({"micro_batch_size=4", "precision=bf16"}, {1, 1, 0.85, 0.9});
  result.config_text = sweep_with_a_configuration().config_text;
  const std::string next = next_of(result);
  EXPECT_THAT(next, HasSubstr("# precision=bf16 was proven against the former baseline, not yet together with "
                              "micro_batch_size=4\n"));
  EXPECT_THAT(next, Not(HasSubstr("combine:")));
  // With only one winner adopted, the other stays in its list without a note about both.
  const Said alone = say({"export", folder_ / "a.h5", "--format", "harness", "--case", "precision=bf16"});
  EXPECT_THAT(alone.out, HasSubstr("\n  precision: bf16\n"));
  EXPECT_THAT(alone.out, Not(HasSubstr("together")));
}

TEST_F(NextConfiguration, AProvenCombinationBecomesTheBaseline) {
  store::Result result = test::samples::sweep({"micro_batch_size=4", "a"}, {1, 1, 0.9, 0.8});
  result.cases[3].variable = "combine";
  result.cases[3].value = result.cases[3].name = "precision=bf16 + micro_batch_size=2";
  result.cases[3].settings[0] = "bf16";
  result.cases[3].settings[1] = "2";
  result.config_text = std::string(model) +
                       "baseline: {global_batch_size: 16, micro_batch_size: 1}\nsweep: {micro_batch_size: [4]}\n"
                       "combine: [{precision: bf16, micro_batch_size: 2}]\n";
  const std::string next = next_of(result);
  for (const char* line : {"\n  micro_batch_size: 2\n", "\n  precision: bf16\n", "\n  micro_batch_size: [4]\n"})
    EXPECT_THAT(next, HasSubstr(line));
  EXPECT_THAT(next, Not(HasSubstr("\ncombine")));
}

TEST_F(NextConfiguration, AMapOfTheFormerBaselineIsReplacedWhole) {
  const std::string name = "sequences={distribution: uniform, min: 1, max: 64}";
  store::Result result = test::samples::sweep({name}, {1, 1, 0.5});
  result.config_text = std::string(model) +
                       "baseline: {sequences: {distribution: lognormal, median: 64, sigma: 1}}\n"
                       "sweep: {sequences: [{distribution: uniform, min: 1, max: 64}]}\n";
  const Said next = say({"export", write("a.h5", result), "--case", name});
  EXPECT_THAT(next.out, HasSubstr("\n  sequences: {distribution: uniform, min: 1, max: 64}\n")) << next.err;
  EXPECT_EQ(say({"plan", folder_.write("next.yaml", next.out), "--ranks", "4"}).err, "");
}

TEST_F(NextConfiguration, WithoutAWinnerTheNextConfigurationSaysSo) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 1.3});
  EXPECT_THAT(say({"export", write("bare.h5", result), "--format", "harness"}).err, HasSubstr("configuration"));
  result.config_text = std::string(model) + "baseline: {}\nsweep: {micro_batch_size: [2]}\n";
  EXPECT_THAT(next_of(result), AllOf(HasSubstr("Nothing is proven faster: the baseline stays as it was."),
                                     HasSubstr("Nothing is left to try")));
  result.config_text += "ladder: [{overlap: {overlap_grad_reduce: false}}, {batches: {micro_batch_size: 2}}]\n";
  EXPECT_THAT(next_of(result), AllOf(HasSubstr("\nladder:\n"), Not(HasSubstr("Nothing is left to try"))));
}

TEST_F(NextConfiguration, WhatIsSlowerAtOneSizeAloneStaysInItsList) {
  const auto next_after = [&](double at_other_size) {
    store::Result result = test::samples::sweep(
        {"message_size=2 kB", "in_place=false", "in_place=false at message_size=2 kB"}, {1, 1, 2, 1.3, at_other_size});
    result.config_text =
        "workload: collective\nbackend: cpu\nbaseline: {message_size: 1 kB}\n"
        "sweep: {message_size: [2 kB], in_place: [false]}\n";
    return next_of(result);
  };
  EXPECT_THAT(next_after(1.6), HasSubstr("\n  in_place: [false]\n"));
  EXPECT_THAT(next_after(2.6), AllOf(HasSubstr("# left out: in_place=false: slower"), Not(HasSubstr("\n  in_place:"))));
}

// The first fix of the ladder is the value that becomes the new baseline.
TEST_F(NextConfiguration, ALadderOfTheFormerBaselineIsLeftOut) {
  store::Result result = test::samples::sweep({"micro_batch_size=4"}, {1, 1, 0.85});
  result.config_text = sweep_with_a_configuration().config_text +
                       "ladder: [{batches: {micro_batch_size: 4}}, {overlap: {overlap_grad_reduce: false}}]\n";
  EXPECT_THAT(next_of(result), HasSubstr("\n# ladder: left out"));
}

}  // namespace
}  // namespace harness::cli
