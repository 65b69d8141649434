#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "analysis/power.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

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

}  // namespace
}  // namespace harness::cli
