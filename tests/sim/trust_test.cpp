#include "sim/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  EXPECT_EQ(t.expected_error, 0.05);
  EXPECT_EQ(t.expected_error_90, 0.15);
  EXPECT_EQ(t.expected_change_error, 0.04);
  EXPECT_EQ(t.expected_change_error_90, 0.1);
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
  EXPECT_THAT(of_new_gpu.warnings, outside("uncalibrated: no measured step ran on GPU b200"));
  EXPECT_EQ(of_new_gpu.expected_error, 0.17);
  EXPECT_EQ(of_new_gpu.expected_error_90, 0.5);
  config::Settings operation;
  operation.workload = "gemm";  // which has no model
  EXPECT_THAT(trust(h, 8, model(0, 0), 0, operation).warnings, IsEmpty());
}

TEST(TrustIn, ACalibrationWithoutStepsIsUncalibrated) {
  config::Calibration tables;
  tables.file = "tables";
  const Trust t = trust_in({}, model(1024, 1024), {}, 8, gpu_of("h100-sxm"), tables);
  EXPECT_EQ(t.expected_error, 0);
  EXPECT_THAT(t.warnings, ElementsAre(HasSubstr("uncalibrated: calibration tables rests on published tables alone")));
}

}  // namespace
}  // namespace harness::sim
