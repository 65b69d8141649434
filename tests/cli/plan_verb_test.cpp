#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "analysis/power.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "config/experiment.h"
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

}  // namespace
}  // namespace harness::cli
