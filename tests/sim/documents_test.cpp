// Padding takes as long as tokens do, and packed documents as long as sequences of their length.
#include <gtest/gtest.h>

#include "config/registry.h"
#include "sim/simulation.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

double predicted_s(std::int64_t sequence, std::int64_t rows, const char* sequences, config::Batching batching) {
  config::Experiment e;
  e.backend = config::BackendKind::sim;
  e.hardware = config::hardware_named("dgx-h100");
  e.calibration = config::calibration_named("megatron-2025");
  config::Model model{"llama", 4, 1024, 8, 8192, sequence};
  model.positions = config::Positions::rotary;
  config::Settings s;
  s.precision = config::Precision::bf16;
  s.global_batch_size = s.micro_batch_size = rows;
  config::find_variable("sequences")->parse(s, sequences);
  s.batching = batching;
  return predict(Simulation(gpt::programs(model, s, {}), s, e, network_of(e, {0}))).step_s;
}

TEST(PredictedDocuments, CostWhatTheyCompute) {
  using enum config::Batching;
  constexpr const char* halves = "{distribution: uniform, min: 4096, max: 4096}";
  const double full = predicted_s(8192, 1, "full", packed), short_ones = predicted_s(4096, 2, "full", packed);
  ASSERT_LT(short_ones, 0.95 * full);
  EXPECT_NEAR(predicted_s(8192, 1, halves, padded), full, 1e-5 * full);  // it reads the scale of the loss
  EXPECT_NEAR(predicted_s(8192, 1, halves, packed), short_ones, 1e-4 * short_ones);
}

}  // namespace
}  // namespace harness::sim
