#include "sim/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "support/paths.h"

namespace harness::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> shipped(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/configs/" + folder))
    names.push_back(entry.path().stem().string());
  return names;
}

config::Calibration compared() {
  config::Calibration c;
  c.file = "mine";
  c.validation = {
      .steps = 60, .changes = 30, .step = {0.05, 0.15}, .change = {0.04, 0.1}, .step_of_new_gpu = {0.17, 0.5}};
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
  ASSERT_TRUE(t.errors.step && t.errors.change);
  EXPECT_EQ(t.errors.step->mean, 0.05);
  EXPECT_EQ(t.errors.step->nine_of_ten, 0.15);
  EXPECT_EQ(t.errors.change->mean, 0.04);
  EXPECT_EQ(t.errors.change->nine_of_ten, 0.1);
  EXPECT_EQ(t.error_words, "5.0 % of a step (9 of 10 within 15.0 %), 4.0 % of a change (9 of 10 within 10.0 %)");
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
  ASSERT_TRUE(of_new_gpu.errors.step);
  EXPECT_EQ(of_new_gpu.errors.step->mean, 0.17);
  EXPECT_EQ(of_new_gpu.errors.step->nine_of_ten, 0.5);
  EXPECT_FALSE(of_new_gpu.errors.change);
  config::Settings operation;
  operation.workload = "gemm";  // which has no model
  EXPECT_THAT(trust(h, 8, model(0, 0), 0, operation).warnings, IsEmpty());
}

TEST(TrustIn, ACalibrationWithoutStepsIsUncalibrated) {
  config::Calibration tables;
  tables.file = "tables";
  const Trust t = trust_in({}, model(1024, 1024), {}, 8, gpu_of("h100-sxm"), tables);
  EXPECT_FALSE(t.errors.step || t.errors.change);
  EXPECT_EQ(t.error_words, "not known: no measured step was compared with calibration tables");
  EXPECT_THAT(t.warnings, ElementsAre(HasSubstr("uncalibrated: calibration tables rests on published tables alone")));
}

// Every calibration with every hardware file.
TEST(ExpectedErrors, AreThoseOfTheCalibrationThatWasUsedOnThatGpuOrNone) {
  std::vector<double> known, unknown;
  for (const std::string& calibration_name : shipped("calibration")) {
    const config::Calibration c = config::calibration_named(calibration_name);
    for (const std::string& hardware_name : shipped("hardware")) {
      SCOPED_TRACE(calibration_name + " on " + hardware_name);
      const config::Hardware h = config::hardware_named(hardware_name);
      const ExpectedErrors errors = expected_errors(c, h);
      const std::string words = expected_error_words(c, h);
      const double least = least_change(c, h);
      const bool was_measured = std::ranges::find(c.gpus, h.gpu.empty() ? h.file : h.gpu) != c.gpus.end();
      const bool of_own_steps = c.validation.steps > 0;
      EXPECT_EQ(errors.step.has_value(), of_own_steps);
      EXPECT_EQ(errors.change.has_value(), of_own_steps && was_measured);
      EXPECT_EQ(words.starts_with("not known"), !of_own_steps) << words;
      if (errors.step) {
        const config::Validation::Errors& own = was_measured ? c.validation.step : c.validation.step_of_new_gpu;
        EXPECT_EQ(errors.step->nine_of_ten, own.nine_of_ten);
        EXPECT_THAT(words, HasSubstr(percent(own.nine_of_ten)));
      }
      if (errors.change) {
        EXPECT_EQ(least, errors.change->nine_of_ten);
      }
      (of_own_steps && was_measured ? known : unknown).push_back(least);
    }
  }
  ASSERT_FALSE(known.empty());
  ASSERT_FALSE(unknown.empty());
  // A change whose error is not known is called no sooner than any other.
  EXPECT_GE(std::ranges::min(unknown), std::ranges::max(known));
}

}  // namespace
}  // namespace harness::sim
