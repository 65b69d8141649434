#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "analysis/power.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "plan/prepare.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string config = test::source_dir() + "/configs/16node.yaml";

TEST(Plan, SaysWhereThePeakComesFrom) {
  const auto head = [](const std::string& override_text) {
    std::ostringstream out;
    plan({.config = config,
          .overrides = {override_text},
          .only = {"baseline"},
          .ranks = 128,
          .like = "",
          .budget = "",
          .efficiencies = {}},
         out);
    return out.str();
  };
  EXPECT_THAT(head("hardware=h100-sxm"), HasSubstr("peak: 989 TFLOP/s per rank"));
  EXPECT_THAT(head("hardware=none"), HasSubstr("peak: none (hardware: none)"));
}

// The promise is that of the procedure behind the verdicts.
TEST(Plan, PromisesWhatTheDeclaredIntervalDetects) {
  const std::string laptop = test::source_dir() + "/configs/laptop.yaml";
  const auto promise = [&](const std::string& interval) {
    std::ostringstream out;
    plan({.config = laptop,
          .overrides = {"measure.interval=" + interval},
          .only = {"baseline", "baseline_again", "micro_batch_size=2"},
          .ranks = 4,
          .like = "",
          .budget = "",
          .efficiencies = {}},
         out);
    return out.str();
  };
  const config::Measure m = config::load_experiment(laptop, {}).measure;
  const double pairs = analysis::resolvable_effect_of_pairs(m.rounds, 1, 0.01, m.smallest_effect);
  const double level = analysis::resolvable_effect(m.rounds, 1, 0.01, m.smallest_effect);
  EXPECT_THAT(promise("pairs"),
              HasSubstr(fmt::format("{:5.2f} % when blocks of one round scatter by 1.0 %", pairs * 100)));
  EXPECT_THAT(
      promise("level"),
      HasSubstr(fmt::format("{:5.2f} % when a block scatters around the machine's level by 1.0 %", level * 100)));
  EXPECT_NE(pairs, level);
}

// The times of four ranks of a small model on a CPU say nothing about 128 GPUs.
TEST(Plan, TakesTimesFromALikeResultOnly) {
  const std::string example = test::source_dir() + "/results/example.h5";
  const auto planned = [&](const std::string& file, const std::vector<std::string>& overrides, int ranks) {
    std::ostringstream out;
    plan({.config = test::source_dir() + "/configs/" + file,
          .overrides = overrides,
          .only = {"baseline"},
          .ranks = ranks,
          .like = example,
          .budget = "",
          .efficiencies = {}},
         out);
    return out.str();
  };
  EXPECT_THAT(planned("laptop.yaml", {}, 4), HasSubstr("estimated from " + example));
  const auto complaint = [&](const std::string& file, const std::vector<std::string>& overrides, int ranks) {
    return test::error_of([&] { planned(file, overrides, ranks); });
  };
  EXPECT_THAT(complaint("16node.yaml", {"hardware=h100-sxm"}, 128),
              AllOf(HasSubstr("backend cpu, here cuda"), HasSubstr("ranks 4, here 128"), HasSubstr("layers 4, here")));
  EXPECT_THAT(complaint("laptop.yaml", {}, 8), HasSubstr("(ranks 4, here 8)"));
  EXPECT_THAT(complaint("laptop.yaml", {"model.hidden=256"}, 4), HasSubstr("(hidden 128, here 256)"));
}

// By hand: a step of the 128-GPU baseline computes its model FLOP at 40 % of 989 TFLOP/s on each GPU; a block is 45 s
// of set-up and its steps.
TEST(Plan, TakesTimesFromAnAssumedMfu) {
  const auto planned = [&](const std::vector<std::string>& overrides, const std::string& mfu,
                           const std::string& setup) {
    std::ostringstream out;
    plan({.config = config,
          .overrides = overrides,
          .only = {"baseline", "baseline_again"},
          .ranks = 128,
          .like = "",
          .assume_mfu = mfu,
          .assume_setup = setup,
          .budget = "",
          .efficiencies = {}},
         out);
    return out.str();
  };
  const std::vector<std::string> overrides{"hardware=h100-sxm", "measure.rounds=10", "measure.time_budget=20 min",
                                           "cost={per_gpu_hour: 2.5, run: {tokens: 1e9}}"};
  const config::Experiment e = config::load_experiment(config, overrides);
  const plan::Plan p = plan::prepare(e, {}, 128, {"baseline"});
  const double step_s = p.baseline().survey.flop.model / (128 * 989e12 * 0.4);
  const double block_s = 45 + step_s * (e.measure.warmup_steps + e.measure.steps);
  const double total_s = 45 + step_s * (e.measure.warmup_steps + 1) + 20 * block_s;
  const std::string text = planned(overrides, "40%", "45 s");
  EXPECT_THAT(text, HasSubstr("time: " + show_seconds(total_s) + ", if every case has an MFU of 40 %"));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.3g} GPU hours, {:.0f} USD", total_s * 128 / 3600, total_s * 128 / 1440)));
  EXPECT_THAT(text, HasSubstr("of 10 rounds"));
  EXPECT_THAT(text, HasSubstr("--time="));
  EXPECT_THAT(test::error_of([&] { planned(overrides, "140%", ""); }), HasSubstr("up to 100 %"));
  EXPECT_THAT(test::error_of([&] { planned({"hardware=none"}, "40%", ""); }), HasSubstr("needs the peak"));
}

}  // namespace
}  // namespace harness::cli
