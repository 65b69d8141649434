#include "cli/plan.h"

#include <algorithm>
#include <cmath>

#include "analysis/estimator.h"
#include "base/units.h"
#include "plan/plan.h"
#include "said.h"

namespace harness::cli {
namespace {

using ::testing::Contains;
using ::testing::Pair;
using ::testing::StartsWith;

const std::string config = shipped("16node.yaml");

Said planned_by(const PlanOptions& options) {
  Said said = outcome_of([&](std::ostream& out, std::ostream& /*err*/) { return plan(options, out); });
  said.out = unwrapped(said.out);
  return said;
}

// Options as in nccl-tests.
TEST(Plan, SizesOfACollectiveAreGivenByTheirEnds) {
  const auto said = [](const std::vector<std::string>& more) {
    return unwrapped(say({"plan", shipped("collectives.yaml"), "--ranks", "2"}, more).all());
  };
  const std::string sizes = said({"-b", "8", "-e", "8G", "-f", "2"});
  for (const char* size : {"message_size=8 B", "message_size=1 KiB", "message_size=8 GiB"})
    EXPECT_THAT(sizes, HasSubstr(size));
  EXPECT_THAT(sizes, HasSubstr("in a process that runs all sizes of a setting"));
  EXPECT_THAT(sizes, Not(HasSubstr("baseline_again")));
  EXPECT_THAT(sizes, Not(HasSubstr("collective=all_gather")));
  EXPECT_THAT(said({"-b", "64K", "-e", "1M", "-f", "4"}), HasSubstr("message_size=256 KiB"));
  EXPECT_THAT(said({}),
              HasSubstr("240 blocks in 6 rounds, each 2 warm-up and 6 timed steps in a process that runs all"));
  EXPECT_THAT(said({"--only", "allreduce_algorithm"}), HasSubstr("in fresh processes"));
  EXPECT_THAT(said({"-b", "64K", "-e", "1M", "--only", "allreduce_algorithm"}),
              HasSubstr("allreduce_algorithm=halving_doubling at message_size=128 KiB"));
  EXPECT_THAT(said({"-b", "8"}), HasSubstr("-b and -e go together"));
  EXPECT_THAT(said({"-b", "8x", "-e", "8G"}), HasSubstr("8x"));
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
}

// --only and --budget also accept the case names that plan's tables print.
TEST(Plan, SaysHowToSpendNoMoreAndTakesACaseApart) {
  const Said said = say({"plan", config, "--ranks", "128", "--only", "TP2", "--set", "micro_batch_size=2",
                         "--gpu-hours", "300", "--assume-mfu", "40%", "--budget", "TP2"});
  EXPECT_THAT(said.all(), AllOf(HasSubstr("`sweep` with --time-budget 8438s spends no more"),
                                HasSubstr("layout={tensor_parallel: 2, pipeline_parallel: 1}: budget of one step")));
}

// The promised resolution is that of the procedure behind the verdicts.
TEST(Plan, PromisesWhatTheSweepDetects) {
  const std::string laptop = shipped("laptop.yaml");
  const auto promise = [&](int rounds, const std::string& until = "rounds") {
    return planned_by({.config = laptop,
                       .overrides = {fmt::format("measure.rounds={}", rounds), "measure.until=" + until},
                       .only = {"baseline", "baseline_again", "micro_batch_size=4"},
                       .ranks = 2})
        .out;
  };
  const config::Measure m = config::load_experiment(laptop, {"measure.rounds=12"}).measure;
  const auto detected = [&](double alpha) {
    const double effect = analysis::resolvable_effect(12, 1, 0.01, m.smallest_effect, 1 - alpha);
    return HasSubstr(fmt::format("{:.2f} % (1.0 %)", 100 * effect));
  };
  EXPECT_THAT(promise(12), detected(0.05));
  EXPECT_THAT(promise(12, "settled"), detected(0.05 * 4 / 12));  // the look after 12 rounds, behind the one after 8
  EXPECT_THAT(promise(3), HasSubstr("3 rounds give no verdict: it takes 4 or more"));
  EXPECT_THAT(promise(3), HasSubstr("0.007963 GFLOP per token (0.008258 non-causal)"));  // by hand
  EXPECT_THAT(promise(4),
              HasSubstr("\nWith 1 comparison over 4 rounds, a change beyond 10 % is detected 4 times in 5"));
}

// By hand: a step of the 128-GPU baseline computes its model FLOP at 40 % of 989 TFLOP/s on each GPU; a block takes 30
// s of set-up plus its steps.
TEST(Plan, TakesTimesFromAnAssumedMfu) {
  const auto planned = [&](const std::vector<std::string>& overrides, const std::string& mfu) {
    return planned_by({.config = config,
                       .overrides = overrides,
                       .only = {"baseline", "baseline_again"},
                       .ranks = 128,
                       .assume_mfu = mfu});
  };
  const std::vector<std::string> overrides{"hardware=h100-sxm", "measure.until=rounds", "measure.rounds=10",
                                           "measure.time_budget=25 min",
                                           "cost={per_gpu_hour: 2.5, run: {tokens: 1e9}}"};
  const config::Experiment e = config::load_experiment(config, overrides);
  const plan::Plan p = plan::prepare(e, 128, {"baseline"});
  const double step_s = p.baseline().survey.flop.model / (128 * 989e12 * 0.4);
  const double block_s = 30 + step_s * (e.measure.warmup_steps + e.measure.steps);
  // Before round 1: one worker that records the timeline, one that tunes, one that reads NCCL's log.
  const double preparation_s = 3 * 30 + step_s * (e.measure.warmup_steps + 5 + 1);
  const double total_s = preparation_s + 20 * block_s;
  const std::string text = planned(overrides, "40%").out;
  EXPECT_THAT(text, HasSubstr(fmt::format("time: {}, a block of the baseline {}, if every case has an MFU of 40 %",
                                          show_seconds(total_s), show_seconds(block_s))));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.3g} GPU hours, {:.0f} USD", total_s * 128 / 3600, total_s * 128 / 1440)));
  EXPECT_THAT(text, HasSubstr("is enough for 10 of 10 rounds"));
  EXPECT_THAT(text, HasSubstr("--time="));
  // The timed steps take three quarters of the time of set-up and warm-up.
  const double auto_steps = std::round(0.75 * (30 + e.measure.warmup_steps * step_s) / step_s);
  EXPECT_THAT(planned({"hardware=h100-sxm", "measure.steps=auto", "measure.time_budget=24 h"}, "40%").out,
              HasSubstr(fmt::format("steps: auto gives {} timed steps", auto_steps)));
  EXPECT_THAT(planned(overrides, "140%").err, HasSubstr("up to 100 %"));
  EXPECT_THAT(planned({"hardware=none"}, "40%").err, HasSubstr("needs the peak"));
}

// Every source of times that a plan or an error suggests is accepted by that plan.
TEST(Plan, TheSourceOfTimesThatIsNamedIsOne) {
  const auto with_mfu = [](const std::string& name) {
    return planned_by({.config = shipped(name + ".yaml"),
                       .overrides = {"peak_flops=1e12", "measure.time_budget=24 h"},
                       .ranks = 8,
                       .assume_mfu = "40%"});
  };
  EXPECT_THAT(with_mfu("collectives").err, HasSubstr("have no FLOP, so an MFU says nothing about their time"));
  EXPECT_THAT(with_mfu("gemm").out, Not(::testing::ContainsRegex("[ -]nan|[ -]inf |time: 0")));
  for (const std::string name : {"laptop", "gemm", "pipeline"}) {
    for (const std::string peak : {"hardware=none", "peak_flops=1e12"}) {
      PlanOptions options{.config = shipped(name + ".yaml"), .overrides = {peak}, .ranks = 8};
      const std::string text = planned_by(options).out;
      options.gpu_hours = 300;
      const std::string refused = planned_by(options).err;
      options.assume_mfu = "40%";
      const bool works = planned_by(options).err.empty();
      for (const std::string& said : {text, refused}) {
        SCOPED_TRACE(name + " " + peak + "\n" + said);
        EXPECT_THAT(said, HasSubstr("an MFU (--assume-mfu 40%"));
        EXPECT_EQ(said.find("--assume-mfu 40%, with") == std::string::npos, works);
      }
    }
  }
  for (const double hours : {0.0, -1.0, 2e6, HUGE_VAL, double{NAN}}) {
    EXPECT_THAT(planned_by({.config = config, .gpu_hours = hours}).err, HasSubstr("--gpu-hours: found"));
  }
  EXPECT_THAT(planned_by({.config = config, .overrides = {"measure.time_budget=1 h"}, .gpu_hours = 3}).err,
              HasSubstr("--gpu-hours and --time-budget both say how long"));
}

// A budget too small for a verdict is refused, with one that fits. A budget for fewer rounds gets their power.
TEST(Plan, ATimeBudgetThatAllowsNoVerdictIsRefused) {
  const auto planned = [&](const std::string& budget, std::optional<double> gpu_hours) {
    // Seven layouts and one variable: a part of the sweep that is fast to plan.
    std::vector<std::string> overrides{
        "measure.until=rounds", "measure.rounds=12", "model.layers=8",
        "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 4}, {tensor_parallel: 8}, {tensor_parallel: 16}, "
        "{pipeline_parallel: 2}, {pipeline_parallel: 4}, {pipeline_parallel: 8}], overlap_grad_reduce: [false]}"};
    if (!budget.empty()) overrides.push_back("measure.time_budget=" + budget);
    return planned_by(
        {.config = config, .overrides = overrides, .ranks = 128, .assume_mfu = "40%", .gpu_hours = gpu_hours});
  };
  const std::string refused = planned("24 min", {}).err;
  EXPECT_THAT(refused, HasSubstr("the time budget of 24 min (51.2 GPU hours on 128 ranks) is enough for"));
  EXPECT_THAT(refused, HasSubstr("no verdict is possible before 4"));
  EXPECT_THAT(refused, HasSubstr("Take fewer of them (--only), or a larger budget"));
  EXPECT_EQ(planned("", 51.2).err, refused);
  const std::string less = planned("1 h", {}).out;
  EXPECT_THAT(less, ::testing::ContainsRegex("comparisons over [4-9] rounds, a change beyond 1 % is detected"));
  EXPECT_THAT(less, ::testing::ContainsRegex("time: .* for [4-9] of 12 rounds, a block of the baseline"));
  EXPECT_THAT(less, Not(HasSubstr("--time-budget")));
  EXPECT_THAT(planned("", 128).out, HasSubstr("--time-budget 3600s spends no more"));
}

// Without a stated time, plan uses what sim expects if a prediction is possible, in one line.
TEST(Plan, WithoutATimeItSaysWhatSimExpects) {
  const auto said = [](const char* config, int ranks, const std::string& assume_mfu) {
    return planned_by(
               {.config = shipped(config), .only = {"micro_batch_size"}, .ranks = ranks, .assume_mfu = assume_mfu})
        .out;
  };
  EXPECT_THAT(
      said("job.yaml", 128, ""),
      ::testing::ContainsRegex(
          "\ntime: [0-9.]+ (min|h), a block of the baseline [0-9.]+ s, if a step takes what sim expects .baseline "
          "[0-9.]+ m?s.\n- [0-9.e+]+ GPU hours; under Slurm, ask for --time="));
  EXPECT_THAT(said("job.yaml", 128, "40%"), Not(HasSubstr("what sim expects")));
  EXPECT_THAT(said("laptop.yaml", 2, ""), HasSubstr("nothing closer is known before the first sweep"));
}

// A prediction has no copy of the baseline and knows no timeout of NCCL's, but a sweep measures both.
TEST(Plan, WhatSimExpectsCountsTheBlocksThatItDoesNotPredict) {
  const std::string job = shipped("job.yaml");
  const config::Experiment e = config::load_experiment(job, {config::predict, "calibration=harness"});
  const plan::Plan p = plan::prepare(e, 128, {"baseline"}, plan::Processes::as_needed, planned_topology(e, 128, 0));
  const double step_s = predict_cases(p).front().step->step_s;
  // All but the copy run three workers before round 1, as in TakesTimesFromAnAssumedMfu.
  const auto time_for = [&](int cases) {
    const double preparation_s = 3 * 30 + step_s * (e.measure.warmup_steps + 5 + 1);
    const double block_s = 30 + step_s * (e.measure.warmup_steps + e.measure.steps);
    return fmt::format("time: {}, a block of the baseline",
                       show_seconds((cases - 1) * preparation_s + e.measure.rounds * cases * block_s));
  };
  EXPECT_THAT(planned_by({.config = job, .only = {"baseline"}, .ranks = 128}).out, HasSubstr(time_for(2)));
  EXPECT_THAT(planned_by({.config = job, .overrides = {"sweep={env: [{NCCL_IB_TIMEOUT: 22}]}"}, .ranks = 128}).out,
              HasSubstr(time_for(3)));
}

// A plan for one rank skips every layout of a cluster: it warns at the top instead of in the footnotes only.
TEST(Plan, WithoutRanksSaysThatItIsForOne) {
  const std::string laptop = shipped("laptop.yaml");
  EXPECT_THAT(planned_by({.config = laptop}).out, HasSubstr("\n! planned for 1 rank; give --ranks N"));
  EXPECT_THAT(planned_by({.config = laptop, .ranks = 1}).out, Not(HasSubstr("planned for")));
  EXPECT_THAT(planned_by({.config = laptop, .overrides = {"layout={tensor_parallel: 2}"}}).err,
              HasSubstr("planned for 1 rank, but the baseline needs 2; give --ranks N"));
}

constexpr const char* three_variables = R"(name: three
backend: sim
calibration: harness
hardware: h100-sxm
model: {layers: 2, hidden: 768, heads: 12, vocab: 50304, sequence: 2048}
baseline: {precision: bf16, micro_batch_size: 1, global_batch_size: 64, layout: {tensor_parallel: 1, pipeline_parallel: 1}}
sweep:
  micro_batch_size: [2, 4]
  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]
  overlap_grad_reduce: [false]
)";

class BestTest : public ::testing::Test {
 protected:
  static constexpr int ranks = 16;

  plan::Plan planned(const std::vector<std::string>& overrides = {}, const std::vector<std::string>& only = {}) const {
    const config::Experiment e = config::load_experiment(config_, overrides);
    return plan::prepare(e, ranks, only, plan::Processes::as_needed, planned_topology(e, ranks, 0));
  }
  // Predicts the baseline's step with these settings, with a separate `plan`.
  double seconds_with(const std::vector<std::string>& overrides) const {
    return predict_cases(planned(overrides, {"baseline"}))[0].step->step_s;
  }
  std::string said(const std::vector<std::string>& more) const {
    return unwrapped(say({"plan", config_, "--ranks", "16"}, more).all());
  }

  test::TemporaryFolder folder_;
  std::string config_ = folder_.write("three.yaml", three_variables);
};

std::vector<std::string> overrides_of(const RankedCombination& combination) {
  std::vector<std::string> overrides;
  for (const auto& [variable, value] : combination.settings)
    overrides.push_back(fmt::format("baseline.{}={}", variable, value));
  return overrides;
}

// The calibration chosen for the baseline can differ from the one that the fastest combination alone would get.
TEST_F(BestTest, NamesTheCalibrationThatTheOverridesNeed) {
  config_ = folder_.write("two.yaml", replaced_all(three_variables, "calibration: harness\n", ""));
  const std::string text = said({"--best", "1", "--set", "baseline.layout={pipeline_parallel: 2}", "--set",
                                 "sweep={layout: [{pipeline_parallel: 1}]}"});
  EXPECT_THAT(text, AllOf(HasSubstr("calibration megatron-2025 is chosen for pipeline_parallel 2"),
                          HasSubstr("--set 'calibration=megatron-2025'")));
}

// --set merges a map into that of the file, where context_parallel would stay 2.
TEST_F(BestTest, TheOverridesEndAContextAxis) {
  const std::string text = said({"--best", "1", "--set", "baseline.layout={context_parallel: 2}", "--set",
                                 "sweep={layout: [{tensor_parallel: 1, pipeline_parallel: 1, context_parallel: 1}]}"});
  EXPECT_THAT(text, HasSubstr("--set 'baseline.layout.context_parallel=1'"));
  // The ranks of a sequence are no replicas.
  EXPECT_THAT(said({"--set", "baseline.layout={tensor_parallel: 2, context_parallel: 2}", "--only", "baseline"}),
              HasSubstr("TP2 PP1 CP2 DP4"));
}

// Compares with a separate `plan` of each of the 18 combinations.
TEST_F(BestTest, NamesTheFastestOfAllCombinations) {
  std::vector<double> seconds;
  for (const std::string layout :
       {"{tensor_parallel: 1, pipeline_parallel: 1}", "{tensor_parallel: 2, pipeline_parallel: 1}",
        "{tensor_parallel: 1, pipeline_parallel: 2}"}) {
    for (const std::string micro_batch : {"1", "2", "4"}) {
      for (const std::string overlap : {"true", "false"})
        seconds.push_back(seconds_with({"baseline.layout=" + layout, "baseline.micro_batch_size=" + micro_batch,
                                        "baseline.overlap_grad_reduce=" + overlap}));
    }
  }
  std::ranges::sort(seconds);
  const plan::Plan p = planned();
  const Best best = find_best(p, 18);
  EXPECT_EQ(best.combinations, 18);
  EXPECT_EQ(best.predicted, 18);
  ASSERT_EQ(best.fastest.size(), 18);
  for (std::size_t i = 0; i < best.fastest.size(); ++i) {
    const RankedCombination& c = best.fastest[i];
    EXPECT_EQ(c.predicted.step->step_s, seconds[i]);
    EXPECT_EQ(c.predicted.step->step_s, seconds_with(overrides_of(c)));
    EXPECT_NEAR(c.distance, c.predicted.step->step_s / seconds[0] - 1, 1e-12);
    EXPECT_EQ(c.is_told_apart, std::log1p(c.distance) >= std::log1p(sim::smallest_effect(p.experiment)));
    EXPECT_GT(c.planned.survey.peak_bytes, 0);
    EXPECT_TRUE(c.predicted.mfu);
  }
  ASSERT_TRUE(best.baseline);
  EXPECT_TRUE(best.baseline->settings.empty());
}

TEST_F(BestTest, WhatIsRefusedIsCountedByReason) {
  const std::vector<std::string> overrides{
      "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 8}], micro_batch_size: [256, 128], rank_order: "
      "[dp-tp-pp]}",
      "baseline.micro_batch_size=64", "baseline.global_batch_size=4096", "baseline.memory_cap=90 %"};
  const Best best = find_best(planned(overrides), 20);
  EXPECT_EQ(best.combinations, 18);
  std::size_t refused = 0, memory = 0;
  for (const auto& [reason, number] : best.refused) {
    refused += number;
    if (reason.starts_with("needs more memory than a rank has (90.0 % of ")) memory += number;
  }
  EXPECT_GT(memory, 0);
  EXPECT_EQ(refused - memory, 6);  // tensor_parallel 8 does not divide the heads
  EXPECT_EQ(best.alike, 3);        // rank_order has no effect with a single axis
  EXPECT_EQ(best.predicted + refused + best.alike, 18);
}

// NCCL has no tree for an all-gather, whatever group the layout forms.
TEST_F(BestTest, WhatNcclRefusesInGroupsOfAnySizeIsOneReason) {
  const std::vector<std::string> overrides{
      "baseline.sharding=optimizer", "sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 4}], nccl_algo: [Tree]}"};
  const Best best = find_best(planned(overrides), 20);
  const auto by_nccl = StartsWith("NCCL ends with an error");
  const auto why = HasSubstr("nccl_algo Tree and nccl_proto default leave it nothing for an ");
  EXPECT_THAT(best.refused, Contains(Pair(by_nccl, ::testing::_)).Times(1));
  EXPECT_THAT(best.refused, Contains(Pair(AllOf(by_nccl, why), 3u)));
}

TEST_F(BestTest, TextAndJsonHaveTheSame) {
  const std::string text = said({"--best", "3"});
  EXPECT_THAT(text, AllOf(HasSubstr("predicted, not measured: "), HasSubstr("18 combinations of the values of"),
                          HasSubstr("predicted: 18"), HasSubstr("not told apart from the first: "),
                          HasSubstr("the first, as overrides:"), HasSubstr("expected error: ")));
  const auto json = say({"plan", config_, "--ranks", "16", "--best", "3", "--format", "json"}).json();
  EXPECT_EQ(json["schema"], "harness-plan-best");
  EXPECT_EQ(json["combinations"], 18);
  ASSERT_EQ(json["fastest"].size(), 3);
  EXPECT_EQ(json["fastest"][0]["distance"], 0);
  EXPECT_THAT(text, HasSubstr(fmt::format("not told apart from the first: {} of the 17 others",
                                          json["not_told_apart"].get<int>())));
  EXPECT_LE(json["fastest"][1]["predicted_step_seconds"], json["fastest"][2]["predicted_step_seconds"]);
}

TEST_F(BestTest, ItsTableIsSeenAsAskedFor) {
  EXPECT_THAT(said({"--best", "3", "--columns", "settings,MFU"}), ::testing::ContainsRegex("^place +settings +MFU\n"));
  EXPECT_THAT(said({"--best", "3", "--columns", "x"}),
              HasSubstr("there is no such column; allowed: place, settings, "));
  setenv("COLUMNS", "80", 1);
  const std::string narrow = said({"--best", "18"});
  unsetenv("COLUMNS");
  EXPECT_THAT(narrow, HasSubstr("TP2"));
}

TEST_F(BestTest, RefusesWhatHasNoPredictionAndTooMany) {
  EXPECT_THAT(test::error_of([&] { find_best(planned(), 1, 17); }),
              HasSubstr("have 18 combinations, more than the 17 that are predicted"));
  EXPECT_THAT(said({"--best", "3", "--backend", "cuda"}),
              HasSubstr("--best ranks predictions, and backend cuda has none"));
  EXPECT_THAT(said({"--best", "0"}), HasSubstr("--best"));
  const std::string operation =
      folder_.write("gemm.yaml",
                    "name: g\nbackend: sim\nhardware: h100-sxm\nworkload: gemm\nbaseline: {precision: bf16}\n"
                    "sweep: {gemm: [{m: 512, n: 512, k: 512}]}\n");
  EXPECT_THAT(say({"plan", operation, "--best", "2"}).err,
              HasSubstr("--best ranks training steps; workload gemm repeats one operation"));
}

}  // namespace
}  // namespace harness::cli
