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

// The promise is that of the procedure behind the verdicts: of pairs.
TEST(Plan, PromisesWhatTheDeclaredIntervalDetects) {
  std::ostringstream out;
  const std::string laptop = test::source_dir() + "/configs/laptop.yaml";
  plan({.config = laptop,
        .overrides = {},
        .only = {"baseline", "baseline_again", "micro_batch_size=2"},
        .ranks = 4,
        .like = "",
        .budget = "",
        .efficiencies = {}},
       out);
  const config::Experiment e = config::load_experiment(laptop, {});
  const double effect = analysis::resolvable_effect_of_pairs(e.measure.rounds, 1, 0.01, e.measure.smallest_effect);
  EXPECT_THAT(out.str(), HasSubstr(fmt::format("{:5.2f} % when blocks of one round scatter by 1.0 %", effect * 100)));
}

}  // namespace
}  // namespace harness::cli
