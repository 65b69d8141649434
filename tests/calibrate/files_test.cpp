// A prediction reads the files of a calibration.
#include "calibrate/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "calibrate/wanted.h"
#include "config/experiment.h"
#include "planted.h"
#include "sim/simulation.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "workloads/workload.h"

namespace harness::calibrate {
namespace {

using config::Precision;
using ::testing::HasSubstr;

// A prediction by the files of node_of_two(), with more of a baseline.
config::Experiment predicted(const std::string& baseline, const Wanted& wanted = usual(config::BackendKind::cpu)) {
  const test::TemporaryFolder folder;
  const Measured m = node_of_two();
  const Calibrated found = calibrated_by(m);
  folder.write("x-hardware.yaml", hardware_text(m, found));
  folder.write("x-calibration.yaml", calibration_text(m, found, wanted, "x-hardware"));
  return config::load_experiment(
      folder.write("x.yaml",
                   "backend: sim\nhardware: x-hardware.yaml\ncalibration: x-calibration.yaml\n"
                   "model: {layers: 1, hidden: 64, heads: 2, vocab: 64, sequence: 32}\n"
                   "baseline: {precision: fp32, " +
                       baseline + "}\n"));
}

// A prediction reads what is written, whatever stands in the device's name.
TEST(CalibrationFiles, AreReadBack) {
  const Calibrated found = calibrated_by(node_of_two());
  Wanted wanted;
  wanted.layer.hidden = 192;
  wanted.layer.sequence = 128;
  const config::Experiment e = predicted("allreduce_algorithm: ring", wanted);
  EXPECT_EQ(config::stands_for(e), config::BackendKind::cpu);
  EXPECT_EQ(e.hardware->gpus_of_node, 2);
  EXPECT_NEAR(e.hardware->nvlink_bytes_per_s, found.link_bytes_per_s, 1e-3 * found.link_bytes_per_s);
  const config::Calibration &c = *e.calibration, &written = found.calibration;
  EXPECT_NEAR(c.product_share, written.product_share, 1e-3);
  EXPECT_NEAR(c.memory_share, written.memory_share, 1e-3);
  EXPECT_NEAR(c.within_node->start_s, written.within_node->start_s, 1e-8);
  EXPECT_NEAR(c.software.hop_s, 7e-6, 1e-9);
  EXPECT_NEAR(c.software.step_s, 40e-6, 1e-8);
  EXPECT_EQ(c.software.fused, config::traits_of(config::BackendKind::cpu).fused);
  EXPECT_EQ(c.gpus, std::vector<std::string>{"x-hardware"});
  const config::Curve* gelu = c.measured.computation(Precision::fp32, "gelu");
  ASSERT_NE(gelu, nullptr);
  EXPECT_NEAR(gelu->seconds_at(5e5), written.measured.computation(Precision::fp32, "gelu")->seconds_at(5e5), 1e-7);
}

// Each number of a calibration is in the step that it predicts.
TEST(CalibrationFiles, PredictWithCurvesHopsAndSteps) {
  config::Experiment e = predicted("global_batch_size: 4, layout: {tensor_parallel: 2}");
  const program::Layout layout{{program::Axis::tensor, 2}};
  const program::ProgramSet set = workloads::build_programs(e.model, e.baseline, layout);
  const auto step_s = [&] { return sim::Simulation(set, e.baseline, e, sim::network_of(e, {0, 0})).step_s(); };
  const double plain_s = step_s();
  e.calibration->software.step_s += 1;
  EXPECT_NEAR(step_s(), plain_s + 1, 1e-6);
  e.calibration->software.step_s -= 1;
  e.calibration->software.hop_s += 1;
  EXPECT_GT(step_s(), plain_s + 2);  // to a collective and back
  e.calibration->software.hop_s -= 1;
  for (const char* curve : {"gelu", "all_reduce"}) {
    config::Experiment before = e;
    const config::Curve slow({{1, 1.0}});
    if (std::string_view(curve) == "gelu") {
      e.calibration->measured.computations[{Precision::fp32, curve}] = slow;
    } else {
      e.calibration->measured.ranks = 2;
      e.calibration->measured.communications[curve] = slow;
    }
    EXPECT_GT(step_s(), plain_s + 1) << curve;
    std::swap(e, before);
  }
}

// A curve of fused attention says nothing of the time with probabilities in memory.
TEST(CalibrationFiles, CurvesOfAttentionAreOfFusedAttention) {
  config::Experiment e = predicted("global_batch_size: 4, layout: {tensor_parallel: 2}");
  const program::Layout layout{{program::Axis::tensor, 2}};
  e.calibration->measured.computations[{Precision::fp32, "attention"}] = config::Curve({{1, 1.0}});
  for (const config::AttentionKind attention : {config::AttentionKind::fused, config::AttentionKind::unfused}) {
    e.baseline.attention = attention;
    const program::ProgramSet set = workloads::build_programs(e.model, e.baseline, layout);
    const double step_s = sim::Simulation(set, e.baseline, e, sim::network_of(e, {0, 0})).step_s();
    EXPECT_EQ(step_s > 1, attention == config::AttentionKind::fused) << step_s;
  }
}

// A setting that only the other backend honours is refused.
TEST(CalibrationFiles, AreOfOneBackend) {
  EXPECT_THAT(test::error_of([] { predicted("nccl_algo: Ring"); }), HasSubstr("nccl_algo"));
}

}  // namespace
}  // namespace harness::calibrate
