#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "analysis/estimator.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "plan/plan.h"
#include "said.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string config = test::source_dir() + "/configs/16node.yaml";

std::string planned_text(const PlanOptions& options) {
  std::ostringstream out;
  plan(options, out);
  return unwrapped(out.str());
}

// As nccl-tests takes them.
TEST(Plan, SizesOfACollectiveAreGivenByTheirEnds) {
  const auto said = [](const std::vector<std::string>& more) {
    return unwrapped(say({"plan", test::source_dir() + "/configs/collectives.yaml", "--ranks", "2"}, more).all());
  };
  const std::string sizes = said({"-b", "8", "-e", "8G", "-f", "2"});
  for (const char* size : {"message_size=8 B", "message_size=1 KiB", "message_size=8 GiB"})
    EXPECT_THAT(sizes, HasSubstr(size));
  EXPECT_THAT(sizes, HasSubstr("in a process that runs all sizes of a setting"));
  EXPECT_THAT(sizes, ::testing::Not(HasSubstr("baseline_again")));
  EXPECT_THAT(sizes, ::testing::Not(HasSubstr("collective=all_gather")));
  EXPECT_THAT(said({"-b", "64K", "-e", "1M", "-f", "4"}), HasSubstr("message_size=256 KiB"));
  EXPECT_THAT(said({}),
              HasSubstr("240 blocks in 6 rounds, each 2 warm-up and 6 timed steps in a process that runs all"));
  EXPECT_THAT(said({"--only", "allreduce_algorithm"}), HasSubstr("in fresh processes"));
  EXPECT_THAT(said({"-b", "64K", "-e", "1M", "--only", "allreduce_algorithm"}),
              HasSubstr("allreduce_algorithm=halving_doubling at message_size=128 KiB"));
  EXPECT_THAT(said({"-b", "8"}), HasSubstr("-b and -e go together"));
  EXPECT_THAT(said({"-b", "8x", "-e", "8G"}), HasSubstr("8x"));
}

TEST(Plan, JsonIsAscii) {
  const Said said = say({"plan", config, "--ranks", "128", "--format", "json", "--only", "env", "--set",
                         "sweep.env=[{X: \"\xe2\x82\xac\"}]"});
  EXPECT_EQ(said.json()["cases"][2]["value"], "{X: \"\xe2\x82\xac\"}") << said.all();
  EXPECT_TRUE(std::ranges::all_of(said.out, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) << said.out;
}

TEST(Plan, RefusesOptionsThatItsAnswerDoesNotHold) {
  const auto refused = [](const std::vector<std::string>& more) {
    return say({"plan", config, "--ranks", "128", "--only", "baseline"}, more).err;
  };
  for (const char* time : {"--assume-mfu=40%", "--gpu-hours=3"})
    EXPECT_THAT(refused({time, "--backend", "sim"}), HasSubstr("and a prediction takes seconds"));
  EXPECT_THAT(refused({"--best", "2", "--backend", "sim", "--budget", "baseline"}), HasSubstr("give only one of them"));
  for (const char* text : {"--assume-mfu=40%", "--budget=baseline"})
    EXPECT_THAT(refused({text, "--format", "json"}), HasSubstr("print text or md, not json"));
  EXPECT_THAT(refused({"--assume-mfu", "40%", "--assume-setup", "-5s"}), HasSubstr("found -5s; allowed: 0 s or more"));
}

// Cases under the names that its tables have, too.
TEST(Plan, SaysHowToSpendNoMoreAndTakesACaseApart) {
  const Said said = say({"plan", config, "--ranks", "128", "--only", "TP2", "--set", "micro_batch_size=2",
                         "--gpu-hours", "300", "--assume-mfu", "40%", "--budget", "TP2"});
  EXPECT_THAT(said.all(), AllOf(HasSubstr("`sweep` with --time-budget 8438s spends no more"),
                                HasSubstr("layout={tensor_parallel: 2, pipeline_parallel: 1}: budget of one step")));
}

// The promise is that of the procedure behind the verdicts.
TEST(Plan, PromisesWhatTheSweepDetects) {
  const std::string laptop = test::source_dir() + "/configs/laptop.yaml";
  const auto promise = [&](int rounds) {
    return planned_text({.config = laptop,
                         .overrides = {fmt::format("measure.rounds={}", rounds)},
                         .only = {"baseline", "baseline_again", "micro_batch_size=4"},
                         .ranks = 2});
  };
  const config::Measure m = config::load_experiment(laptop, {"measure.rounds=12"}).measure;
  EXPECT_THAT(promise(12), HasSubstr(fmt::format("{:.2f} % (1.0 %)", 100 * analysis::resolvable_effect(
                                                                               12, 1, 0.01, m.smallest_effect, 0.95))));
  EXPECT_THAT(promise(3), HasSubstr("3 rounds give no verdict: it takes 4 or more"));
  EXPECT_THAT(promise(4),
              HasSubstr("\nWith 1 comparison over 4 rounds, a change beyond 10 % is detected 4 times in 5"));
}

TEST(Plan, SaysOneOfWhatIsOne) {
  const std::string laptop = test::source_dir() + "/configs/laptop.yaml";
  const std::string text = planned_text(
      {.config = laptop, .overrides = {"measure.rounds=5", "measure.until=settled"}, .only = {"baseline"}, .ranks = 2});
  EXPECT_THAT(text, HasSubstr("after round 5: "));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("unresolved")));  // nothing is compared
}

// By hand: a step of the 128-GPU baseline computes its model FLOP at 40 % of 989 TFLOP/s on each GPU; a block is 45 s
// of set-up and its steps.
TEST(Plan, TakesTimesFromAnAssumedMfu) {
  const auto planned = [&](const std::vector<std::string>& overrides, const std::string& mfu,
                           const std::string& setup) {
    return planned_text({.config = config,
                         .overrides = overrides,
                         .only = {"baseline", "baseline_again"},
                         .ranks = 128,
                         .assume_mfu = mfu,
                         .assume_setup = setup});
  };
  const std::vector<std::string> overrides{"hardware=h100-sxm", "measure.until=rounds", "measure.rounds=10",
                                           "measure.time_budget=25 min",
                                           "cost={per_gpu_hour: 2.5, run: {tokens: 1e9}}"};
  const config::Experiment e = config::load_experiment(config, overrides);
  const plan::Plan p = plan::prepare(e, 128, {"baseline"});
  const double step_s = p.baseline().survey.flop.model / (128 * 989e12 * 0.4);
  const double block_s = 45 + step_s * (e.measure.warmup_steps + e.measure.steps);
  // Before round 1: a worker that records the timeline, one that tunes, one that reads NCCL's log.
  const double preparation_s = 3 * 45 + step_s * (e.measure.warmup_steps + 5 + 1);
  const double total_s = preparation_s + 20 * block_s;
  const std::string text = planned(overrides, "40%", "45 s");
  EXPECT_THAT(text, HasSubstr(fmt::format("time: {}, a block of the baseline {}, if every case has an MFU of 40 %",
                                          show_seconds(total_s), show_seconds(block_s))));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.3g} GPU hours, {:.0f} USD", total_s * 128 / 3600, total_s * 128 / 1440)));
  EXPECT_THAT(text, HasSubstr("is enough for 10 of 10 rounds"));
  EXPECT_THAT(text, HasSubstr("--time="));
  // As many timed steps as take three quarters of set-up and warm-up.
  const double auto_steps = std::round(0.75 * (45 + e.measure.warmup_steps * step_s) / step_s);
  EXPECT_THAT(planned({"hardware=h100-sxm", "measure.steps=auto", "measure.time_budget=24 h"}, "40%", "45 s"),
              HasSubstr(fmt::format("steps: auto gives {} timed steps", auto_steps)));
  EXPECT_THAT(test::error_of([&] { planned(overrides, "140%", ""); }), HasSubstr("up to 100 %"));
  EXPECT_THAT(test::error_of([&] { planned({"hardware=none"}, "40%", ""); }), HasSubstr("needs the peak"));
}

// What a plan or an error names for its time is taken by that plan.
TEST(Plan, TheSourceOfTimesThatIsNamedIsOne) {
  const auto with_mfu = [](const std::string& name) {
    return planned_text({.config = test::source_dir() + "/configs/" + name + ".yaml",
                         .overrides = {"peak_flops=1e12", "measure.time_budget=24 h"},
                         .ranks = 8,
                         .assume_mfu = "40%"});
  };
  EXPECT_THAT(test::error_of([&] { with_mfu("collectives"); }),
              HasSubstr("have no FLOP, so an MFU says nothing about their time"));
  EXPECT_THAT(with_mfu("gemm"), ::testing::Not(::testing::ContainsRegex("[ -]nan|[ -]inf |time: 0")));
  for (const std::string name : {"laptop", "gemm", "pipeline"}) {
    for (const std::string peak : {"hardware=none", "peak_flops=1e12"}) {
      PlanOptions options{.config = test::source_dir() + "/configs/" + name + ".yaml", .overrides = {peak}, .ranks = 8};
      const std::string text = planned_text(options);
      options.gpu_hours = 300;
      const std::string refused = test::error_of([&] { planned_text(options); });
      options.assume_mfu = "40%";
      const bool works = test::error_of([&] { planned_text(options); }).empty();
      for (const std::string& said : {text, refused}) {
        SCOPED_TRACE(name + " " + peak + "\n" + said);
        EXPECT_THAT(said, HasSubstr("an MFU (--assume-mfu 40%"));
        EXPECT_EQ(said.find("--assume-mfu 40%, with") == std::string::npos, works);
      }
    }
  }
  for (const double hours : {0.0, -1.0, 2e6, HUGE_VAL, double{NAN}}) {
    EXPECT_THAT(test::error_of([&] { planned_text({.config = config, .gpu_hours = hours}); }),
                HasSubstr("--gpu-hours: found"));
  }
}

// A budget that allows no verdict is refused, with what would fit in it; one that allows fewer rounds gets their power.
TEST(Plan, ATimeBudgetThatAllowsNoVerdictIsRefused) {
  const auto planned = [&](const std::string& budget, std::optional<double> gpu_hours) {
    // A part of the sweep that is quickly planned: seven layouts and one variable.
    std::vector<std::string> overrides{
        "measure.until=rounds", "measure.rounds=12", "model.layers=8",
        "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 4}, {tensor_parallel: 8}, {tensor_parallel: 16}, "
        "{pipeline_parallel: 2}, {pipeline_parallel: 4}, {pipeline_parallel: 8}], overlap_grad_reduce: [false]}"};
    if (!budget.empty()) overrides.push_back("measure.time_budget=" + budget);
    return planned_text({.config = config,
                         .overrides = overrides,
                         .ranks = 128,
                         .assume_mfu = "40%",
                         .assume_setup = "30 s",
                         .gpu_hours = gpu_hours});
  };
  const std::string refused = test::error_of([&] { planned("24 min", {}); });
  EXPECT_THAT(refused, HasSubstr("the time budget of 24 min (51.2 GPU hours on 128 ranks) is enough for"));
  EXPECT_THAT(refused, HasSubstr("no verdict is possible before 4"));
  EXPECT_THAT(refused, HasSubstr("Take fewer of them (--only), or a larger budget"));
  EXPECT_EQ(test::error_of([&] { planned("", 51.2); }), refused);
  const std::string less = planned("1 h", {});
  EXPECT_THAT(less, ::testing::ContainsRegex("comparisons over [4-9] rounds, a change beyond 1 % is detected"));
  EXPECT_THAT(less, ::testing::ContainsRegex("time: .* for [4-9] of 12 rounds, a block of the baseline"));
  EXPECT_THAT(less, ::testing::Not(HasSubstr("--time-budget")));
  EXPECT_THAT(planned("", 128), HasSubstr("--time-budget 3600s spends no more"));
}

// Nobody states a time: where a prediction is possible, it is what sim expects, in one line.
TEST(Plan, WithoutATimeItSaysWhatSimExpects) {
  const auto said = [](const char* config, int ranks, const std::string& assume_mfu) {
    return planned_text({.config = test::source_dir() + "/configs/" + config,
                         .only = {"micro_batch_size"},
                         .ranks = ranks,
                         .assume_mfu = assume_mfu});
  };
  EXPECT_THAT(
      said("job.yaml", 128, ""),
      ::testing::ContainsRegex(
          "\ntime: [0-9.]+ (min|h), a block of the baseline [0-9.]+ s, if a step takes what sim expects .baseline "
          "[0-9.]+ m?s.\n- [0-9.e+]+ GPU hours; under Slurm, ask for --time="));
  EXPECT_THAT(said("job.yaml", 128, "40%"), ::testing::Not(HasSubstr("what sim expects")));
  EXPECT_THAT(said("laptop.yaml", 2, ""), HasSubstr("nothing closer is known before the first sweep"));
}

// A plan for one rank skips every layout of a cluster: it says so instead of leaving it to the footnotes.
TEST(Plan, WithoutRanksSaysThatItIsForOne) {
  const auto text = [](const std::vector<std::string>& overrides, int ranks) {
    return planned_text(
        {.config = test::source_dir() + "/configs/laptop.yaml", .overrides = overrides, .ranks = ranks});
  };
  EXPECT_THAT(text({}, 0), HasSubstr("\n! planned for 1 rank; give --ranks N"));
  EXPECT_THAT(text({}, 1), ::testing::Not(HasSubstr("planned for")));
  EXPECT_THAT(test::error_of([&] { text({"layout={tensor_parallel: 2}"}, 0); }),
              HasSubstr("planned for 1 rank, but the baseline needs 2; give --ranks N"));
}

}  // namespace
}  // namespace harness::cli
