#include "sim/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/units.h"
#include "config/files.h"
#include "support/paths.h"

namespace harness::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> shipped(const std::string& folder) {
  return config::data_file_names(test::source_dir() + "/configs/" + folder);
}

config::Calibration compared() {
  config::Calibration c;
  c.file = "mine";
  c.errors = {{"a", "h100-sxm", "one", "NVIDIA", -0.02},
              {"b", "h100-sxm", "one", "NVIDIA", 0.5},
              {"c", "h100-sxm", "two", "NVIDIA", 0.07},
              {"d", "h100-sxm", "three", "NVIDIA", -0.2}};
  c.change = {0.04, 0.1};
  c.gpus = {"h100-sxm"};
  c.ranks = {8, 512};
  c.hidden = {1024, 8192};
  c.sequence = {1024, 4096};
  c.message_bytes = {1, 1 << 30};
  return c;
}

config::Model model(std::int64_t hidden, std::int64_t sequence) {
  config::Model m;
  m.hidden = hidden;
  m.sequence = sequence;
  return m;
}

config::Hardware gpu_of(const std::string& file) {
  config::Hardware h;
  h.file = file;
  h.name = "GPU " + file;
  return h;
}

Trust trust(const config::Hardware& hardware, int ranks, const config::Model& m, double largest_bytes = 1e6,
            const config::Settings& settings = {}) {
  Prediction prediction;
  prediction.largest_message_bytes = largest_bytes;
  return trust_in(prediction, m, settings, ranks, hardware, compared());
}

TEST(TrustIn, HasTheErrorsOfTheCalibrationAndNoWarningWithinItsRange) {
  const Trust t = trust(gpu_of("h100-sxm"), 512, model(1024, 4096));
  EXPECT_EQ(t.errors.tier, Tier::other_cluster);
  EXPECT_EQ(t.errors.step, (config::Errors{0.13, 0.38}));
  EXPECT_EQ(t.errors.change, (config::Errors{0.04, 0.1}));
  EXPECT_EQ(t.error_words,
            "13.0 % of a step (9 of 10 within 38.0 %; tier B: this software and GPU, on a cluster that was not "
            "measured), 4.0 % of a change (9 of 10 within 10.0 %)");
  EXPECT_THAT(t.warnings, IsEmpty());
  config::Hardware machine = gpu_of("p5");
  machine.gpu = "h100-sxm";
  EXPECT_THAT(trust(machine, 8, model(8192, 1024)).warnings, IsEmpty());
}

TEST(TrustIn, WarnsOfEachSizeThatLeavesTheRange) {
  const config::Hardware h = gpu_of("h100-sxm");
  const auto outside = [](const char* what) { return ElementsAre(HasSubstr(what)); };
  EXPECT_THAT(trust(h, 513, model(1024, 1024)).warnings, outside("number of ranks 513"));
  EXPECT_THAT(trust(h, 8, model(8256, 1024)).warnings, outside("hidden size 8256"));
  EXPECT_THAT(trust(h, 8, model(1024, 8192)).warnings, outside("sequence length 8192"));
  EXPECT_THAT(trust(h, 8, model(1024, 1024), 2e9).warnings, outside("largest collective, 1.86 GiB"));
  const Trust of_new_gpu = trust(gpu_of("b200"), 8, model(1024, 1024));
  EXPECT_THAT(of_new_gpu.warnings, outside("uncalibrated: no step was measured on GPU b200"));
  EXPECT_EQ(of_new_gpu.errors.step, (config::Errors{0.17, 0.42}));
  EXPECT_FALSE(of_new_gpu.errors.change);
  config::Settings operation;
  operation.workload = "gemm";  // has no model
  EXPECT_THAT(trust(h, 8, model(0, 0), 0, operation).warnings, IsEmpty());
}

// Each group counts once, by its median: 2, 7 and 20 %.
TEST(TrustIn, WithAStepOfOnesOwnTheErrorsAreThoseOfTheGroups) {
  config::Calibration c = compared();
  c.errors[0].lab = "own";
  const Trust t = trust_in({}, model(1024, 1024), {}, 8, gpu_of("h100-sxm"), c);
  EXPECT_EQ(t.errors.tier, Tier::own_cluster);
  EXPECT_EQ(t.errors.step, (config::Errors{0.07, 0.2}));
  c.errors.resize(1);  // claims no less than the errors of held-back steps
  EXPECT_EQ(expected_errors(c, gpu_of("h100-sxm")).step, (config::Errors{0.05, 0.11}));
}

TEST(TrustIn, OutsideOfWhatWasMeasuredAndInFourBitsErrorsAreLarger) {
  const Trust t = trust(gpu_of("h100-sxm"), 8, model(1024, 8192));
  EXPECT_EQ(t.errors.step, (config::Errors{1.5 * 0.13, 1.5 * 0.38}));
  EXPECT_THAT(t.error_words, HasSubstr("tier E: outside of what was measured, half as much again as tier B"));
  config::Settings settings;
  settings.precision = config::Precision::nvfp4;
  const Trust four_bits = trust(gpu_of("h100-sxm"), 8, model(1024, 1024), 1e6, settings);
  EXPECT_EQ(four_bits.errors.step, (config::Errors{0.19, 0.41}));
}

TEST(TrustIn, ACalibrationFromTablesIsSoftwareOfWhichNoStepWasMeasured) {
  config::Calibration tables;
  tables.file = "tables";
  const Trust t = trust_in({}, model(1024, 1024), {}, 8, gpu_of("h100-sxm"), tables);
  EXPECT_EQ(t.errors.tier, Tier::other_software);
  EXPECT_FALSE(t.errors.change);
  EXPECT_THAT(t.error_words, HasSubstr("26.0 % of a step (9 of 10 within 42.0 %; tier D"));
  EXPECT_THAT(t.warnings, ElementsAre(HasSubstr("uncalibrated: calibration tables rests on published tables alone")));
  tables.gpus = {"here"};  // measured here: laws, but no step
  EXPECT_EQ(trust_in({}, model(1024, 1024), {}, 8, gpu_of("here"), tables).error_words,
            "not known: no step was compared with calibration tables, which was measured on here");
}

// Checks every calibration with every hardware file.
TEST(ExpectedErrors, AreLeastWhereStepsWereMeasured) {
  std::vector<double> known, unknown;
  for (const std::string& calibration_name : shipped("calibration")) {
    const config::Calibration c = config::calibration_named(calibration_name);
    for (const std::string& hardware_name : shipped("hardware")) {
      SCOPED_TRACE(calibration_name + " on " + hardware_name);
      const config::Hardware h = config::hardware_named(hardware_name);
      const ExpectedErrors errors = expected_errors(c, h);
      const bool was_measured = std::ranges::find(c.gpus, h.gpu_file()) != c.gpus.end();
      ASSERT_TRUE(errors.step);
      const Tier measured = was_measured ? Tier::other_cluster : Tier::other_gpu;
      EXPECT_EQ(errors.tier, c.errors.empty() ? Tier::other_software : measured);
      EXPECT_EQ(errors.change.has_value(), errors.tier == Tier::other_cluster && c.change.nine_of_ten > 0);
      EXPECT_THAT(trust_in({}, model(c.hidden.least, c.sequence.least), {}, c.ranks.least, h, c).error_words,
                  HasSubstr(percent(errors.step->nine_of_ten)));
      const double least = least_change(c, h);
      if (errors.change) {
        EXPECT_EQ(least, errors.change->nine_of_ten);
      }
      (errors.change ? known : unknown).push_back(least);
    }
  }
  ASSERT_FALSE(known.empty());
  ASSERT_FALSE(unknown.empty());
  // A change with an unknown error must be at least as large as any other to count.
  EXPECT_GE(std::ranges::min(unknown), std::ranges::max(known));
}

// Uses the tier of the row's cluster: NVIDIA's and MosaicML's steps were fitted, so their other steps are of tier A.
double stated_for(const config::Calibration& calibration, const config::StepError& step) {
  config::Calibration asked = calibration;
  if (step.lab == "NVIDIA" || step.lab == "MosaicML") asked.errors.front().lab = "own";
  return expected_errors(asked, gpu_of(step.gpu)).step->nine_of_ten;
}

// Compares each published step, predicted with its group left out of the fit, with its tier's bound for 9 of 10.
TEST(ExpectedErrors, HoldForStepsThatWereLeftOut) {
  constexpr double least_share = 0.85;
  for (const char* family : {"megatron-2025", "torch-fsdp", "megatron-2022"}) {
    const config::Calibration calibration = config::calibration_named(family);
    int within = 0;
    std::string beyond;
    for (const config::StepError& step : calibration.errors) {
      if (std::abs(step.error) <= stated_for(calibration, step)) {
        ++within;
      } else {
        beyond += " " + step.id;
      }
    }
    EXPECT_GE(within, least_share * static_cast<double>(calibration.errors.size())) << family << ", beyond:" << beyond;
  }
}

}  // namespace
}  // namespace harness::sim
