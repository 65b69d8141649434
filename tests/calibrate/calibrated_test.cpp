// Measurements generated from known lines, with noise: calibration recovers the planted values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibrate/calibrate.h"
#include "config/experiment.h"
#include "config/hardware.h"
#include "sim/simulation.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/played_job.h"
#include "workloads/workload.h"

namespace harness::calibrate {

namespace {

using config::CurvePoint;
using config::Precision;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Scatters times by 2 %, symmetrically.
class Noise {
 public:
  double operator()(double seconds) { return seconds * std::exp(0.02 * normal_(engine_)); }

 private:
  std::mt19937 engine_{7};
  std::normal_distribution<double> normal_;
};

// A curve with this start-up time and rate at every size, with noise.
config::Curve straight(double start_s, double bytes_per_s, Noise& noise) {
  std::vector<config::CurvePoint> points;
  for (double bytes = 8; bytes < 2e6; bytes *= 4) points.push_back({bytes, noise(start_s + bytes / bytes_per_s)});
  return config::Curve(points);
}

// A node of two ranks.
Measured node_of_two() {
  Noise noise;
  Measured m;
  m.ranks = m.ranks_of_node = 2;
  m.host = "node1";
  m.device = {.name = "CPU \"fast\": 2 GHz", .memory_bytes = 8e9};
  m.rounds = 3;
  m.took_s = 12;
  m.hop_s = 7e-6;
  m.step_s = 40e-6;
  m.slowed_computing = 1.25;
  m.largest_message_bytes = 1 << 20;
  m.peak_flops[config::Precision::fp32] = 98e9;
  std::vector<config::CurvePoint> quick, slow;
  for (double bytes = 1024; bytes < 1e8; bytes *= 4) {
    quick.push_back({bytes, noise(3e-6 + bytes / 20e9)});
    slow.push_back({bytes, noise(5e-6 + bytes / 3e9)});
  }
  for (const char* name : {"layer_norm", "residual_add", "adamw", "bias_add"})
    m.computations[{config::Precision::fp32, name}] = config::Curve(quick);
  m.computations[{config::Precision::fp32, "gelu"}] = config::Curve(slow);
  m.computations[{config::Precision::fp32, "matmul"}] = config::Curve({{1e8, 1.5e-3}, {1e9, 12e-3}});
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "send"})
    m.communications[name] = straight(50e-6, 1e9, noise);
  return m;
}

std::vector<CurvePoint> line_with_noise() {
  Noise noise;
  std::vector<CurvePoint> points;
  for (double bytes = 64; bytes < 1e9; bytes *= 4) points.push_back({bytes, noise(12e-6 + bytes / 5e9)});
  return points;
}

// Also if one of twelve points took ten times as long because another process interfered.
TEST(FitLine, FindsStartAndRate) {
  for (const auto& [factor, error] : {std::pair{1, 0.03}, {10, 0.05}}) {
    std::vector<CurvePoint> points = line_with_noise();
    points[5].seconds *= factor;
    const Line line = fit_line(points);
    EXPECT_NEAR(line.start_s, 12e-6, error * 12e-6) << factor;
    EXPECT_NEAR(line.rate, 5e9, error * 5e9) << factor;
  }
}

TEST(Calibrated, HasTheCurvesAndTheBestRates) {
  const Measured m = node_of_two();
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  EXPECT_NEAR(found.memory_bytes_per_s, 20e9, 1e9);
  EXPECT_GT(c.software.kernel_s, 2.5e-6);
  EXPECT_LT(c.software.kernel_s, 3.5e-6);
  EXPECT_NEAR(c.taken_by_communication, 0.2, 1e-9);
  EXPECT_EQ(c.measured.ranks, 2);
  for (const auto& [key, curve] : m.computations) {
    const config::Curve* kept = c.measured.computation(key.first, key.second);
    ASSERT_NE(kept, nullptr) << key.second;
    EXPECT_EQ(kept->seconds_at(5e5), curve.seconds_at(5e5)) << key.second;
  }
  for (const auto& [name, curve] : m.communications) {
    ASSERT_NE(c.measured.communication(name), nullptr) << name;
    EXPECT_EQ(c.measured.communication(name)->seconds_at(5e5), curve.seconds_at(5e5)) << name;
  }
}

// Burst clocks of a GPU: the products of one layer's step ran faster than a step of many layers permits. On CPU cores
// it is the other way round, because the operands of a repeated product stay in the caches, and the step's time counts.
TEST(Calibrated, HasNoProductQuickerThanTheBestThatRanAgainAndAgain) {
  for (const double rate : {0.5, 0.9, 1.0, 1.2, 2.0}) {  // of the step's best product, over the peak
    Measured m = node_of_two();
    const double peak = m.peak_flops.at(Precision::fp32);
    m.computations[{Precision::fp32, "matmul"}] =
        config::Curve({{1e8, 2 * 1e8 / (rate * peak)}, {1e9, 1e9 / (rate * peak)}});
    const config::Calibration c = calibrated_by(m).calibration;
    const config::Curve* products = c.measured.computation(Precision::fp32, "matmul");
    EXPECT_NEAR(1e9 / products->seconds_at(1e9) / peak, std::min(rate, 1.0), 1e-9) << rate;
    EXPECT_NEAR(products->seconds_at(1e9) / products->seconds_at(1e8), 5, 1e-9) << rate;
  }
}

// A ring of two moves as many bytes as an all-reduce's message has. The fastest collective gives the link speed.
TEST(Calibrated, HasTheLinksOfTheAllReduce) {
  for (const double of_gather : {0.5, 1.0, 2.0}) {
    Noise noise;
    Measured m = node_of_two();
    m.communications["reduce_scatter"] = straight(30e-6, 2e9, noise);
    m.communications["all_gather"] = straight(30e-6, of_gather * 2e9, noise);
    const Calibrated found = calibrated_by(m);
    const double best = std::max(of_gather, 1.0) * 1e9;
    // As fast as the fastest message, part of whose time is its start.
    EXPECT_LT(found.link_bytes_per_s, 1.05 * best);
    EXPECT_GT(found.link_bytes_per_s, 0.8 * best);
    EXPECT_NEAR(found.link_bytes_per_s * found.calibration.within_node->share, 1e9, 0.05e9);
    EXPECT_NEAR(found.calibration.within_node->start_s, 50e-6, 3e-6);
  }
}

// Two nodes of two ranks: a ring through all ranks enters and leaves each node once.
Measured two_nodes_of_two(Noise& noise) {
  Measured m = node_of_two();
  m.ranks = 4;
  m.nodes = m.ranks_of_node = 2;
  m.communications["all_reduce"] = straight(80e-6, 1e9 / 1.5, noise);  // 2 * 3 / 4 of the bytes
  m.communications["all_gather"] = m.communications["reduce_scatter"] = straight(80e-6, 1e9 / 0.75, noise);
  m.communications["send"] = straight(30e-6, 1e9, noise);
  return m;
}

TEST(Calibrated, HasOnlyTheNetworkWhereNothingElseIsKnown) {
  Noise noise;
  const Measured m = two_nodes_of_two(noise);
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  EXPECT_EQ(found.link_bytes_per_s, 0);
  EXPECT_FALSE(c.within_node);
  EXPECT_NEAR(found.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NEAR(c.network_start_s, 80e-6, 5e-6);
  EXPECT_NEAR(c.message_start_s, 30e-6, 2e-6);
  EXPECT_TRUE(c.measured.communications.empty());
  const std::string hardware = hardware_text(m, found);
  EXPECT_THAT(hardware, HasSubstr("network: "));
  EXPECT_THAT(hardware, Not(HasSubstr("nvlink")));
  EXPECT_THAT(hardware, HasSubstr("gpus: 2"));
}

// Links within a node that are ten times as fast as the network.
TEST(Calibrated, HasTheLinksWithinANodeToo) {
  Noise noise;
  Measured m = two_nodes_of_two(noise);
  m.within_node["all_reduce"] = m.within_node["send"] = straight(20e-6, 10e9, noise);
  m.within_node["all_gather"] = m.within_node["reduce_scatter"] = straight(12e-6, 20e9, noise);
  const Calibrated found = calibrated_by(m);
  const config::Calibration& c = found.calibration;
  ASSERT_TRUE(c.within_node);
  EXPECT_NEAR(found.link_bytes_per_s * c.within_node->share, 10e9, 0.5e9);
  EXPECT_NEAR(c.within_node->start_s, 20e-6, 2e-6);
  EXPECT_NEAR(found.node_bytes_per_s * c.network_share, 1e9, 0.05e9);
  EXPECT_NE(c.measured.communication("all_gather"), nullptr);
  EXPECT_EQ(c.measured.ranks, 2);
  EXPECT_THAT(hardware_text(m, found), AllOf(HasSubstr("network: "), HasSubstr("nvlink: ")));
}

// Links within a node that are as fast as the network hold up no collective between nodes.
TEST(Calibrated, TakesAsLongBetweenNodesAsMeasured) {
  Noise noise;
  Measured m = two_nodes_of_two(noise);
  m.within_node["all_reduce"] = m.within_node["send"] = straight(20e-6, 1e9, noise);
  const Calibrated found = calibrated_by(m);
  const sim::Network network{.rank_bytes_per_s = found.link_bytes_per_s,
                             .node_bytes_per_s = found.node_bytes_per_s,
                             .switches_reduce = false,
                             .node_of = {0, 0, 1, 1}};
  constexpr double bytes = 5e5;
  const sim::Spread spread{4, 2, 2, 1};
  const double predicted_s =
      sim::collective_seconds(program::Collective::all_reduce, bytes, spread, network, found.calibration);
  const double measured_s = m.communications["all_reduce"].seconds_at(bytes);
  EXPECT_NEAR(predicted_s, measured_s, 0.1 * measured_s);
}

TEST(Calibrated, NeedsAProductAndSomethingThatMovesMemory) {
  Measured m = node_of_two();
  m.peak_flops.clear();
  EXPECT_THAT(test::error_of([&] { calibrated_by(m); }), HasSubstr("no matrix product"));
  m = node_of_two();
  m.computations.clear();
  EXPECT_THAT(test::error_of([&] { calibrated_by(m); }), HasSubstr("no operation that moves memory"));
}

// The remedy is one that the command line of calibrate has.
TEST(Wanted, NeedsAPrecisionThatTheWorkloadGemmHas) {
  plan::Plan plan;
  plan.experiment.path = "a.yaml";
  plan.cases.emplace_back().settings.precision = Precision::fp8;
  const std::string message = test::error_of([&] { wanted_by(plan); });
  EXPECT_THAT(message, HasSubstr("a.yaml: calibrate measures no products of its precision"));
  EXPECT_THAT(message, Not(HasSubstr("--set")));
}

// Loads a prediction from the files of node_of_two(), with more settings in its baseline.
config::Experiment predicted(const std::string& baseline, const Wanted& wanted = usual(config::BackendKind::cpu)) {
  const test::TemporaryFolder folder;
  const Measured m = node_of_two();
  const Calibrated found = calibrated_by(m);
  folder.write("x, y-hardware.yaml", hardware_text(m, found));
  folder.write("x-calibration.yaml", calibration_text(m, found, wanted, "x, y-hardware"));
  return config::load_experiment(
      folder.write("x.yaml",
                   "backend: sim\nhardware: x, y-hardware.yaml\ncalibration: x-calibration.yaml\n"
                   "model: {layers: 1, hidden: 64, heads: 2, vocab: 64, sequence: 32}\n"
                   "baseline: {precision: fp32, " +
                       baseline + "}\n"));
}

// A prediction can read the written files, whatever the device and the files are called.
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
  EXPECT_EQ(c.gpus, std::vector<std::string>{"x, y-hardware"});
  const config::Curve* gelu = c.measured.computation(Precision::fp32, "gelu");
  ASSERT_NE(gelu, nullptr);
  EXPECT_NEAR(gelu->seconds_at(5e5), written.measured.computation(Precision::fp32, "gelu")->seconds_at(5e5), 1e-7);
}

// Each number of a calibration affects the predicted step.
TEST(CalibrationFiles, PredictWithCurvesHopsAndSteps) {
  config::Experiment e = predicted("global_batch_size: 4, layout: {tensor_parallel: 2}");
  const program::Layout layout{{program::Axis::tensor, 2}};
  const program::ProgramSet set = workloads::build_programs(e.model, e.baseline, layout);
  const auto with = [&](const auto& change) {
    config::Experiment other = e;
    change(*other.calibration);
    return sim::Simulation(set, e.baseline, other, sim::network_of(e, {0, 0})).step_s();
  };
  const config::Curve slow({{1, 1.0}});
  const double plain_s = with([](config::Calibration&) {});
  EXPECT_NEAR(with([](config::Calibration& c) { c.software.step_s += 1; }), plain_s + 1, 1e-6);
  EXPECT_GT(with([](config::Calibration& c) { c.software.hop_s += 1; }), plain_s + 2);  // to a collective and back
  EXPECT_GT(with([&](config::Calibration& c) {
              c.measured.computations[{Precision::fp32, "gelu"}] = slow;
            }),
            plain_s + 1);
  EXPECT_GT(with([&](config::Calibration& c) {
              c.measured.ranks = 2;
              c.measured.communications["all_reduce"] = slow;
            }),
            plain_s + 1);
}

// A curve of fused attention does not apply to attention with its probabilities in memory.
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

TEST(CalibrationFiles, ARankOfARingHasAPartOfTheQueriesAndAllKeys) {
  config::Experiment e = predicted("global_batch_size: 4, layout: {context_parallel: 2}");
  e.calibration->measured.computations[{Precision::fp32, "attention"}] = config::Curve({{1, 1e-6}, {1e9, 1e3}});
  const auto step_s = [&](int ranks) {
    config::Settings settings = e.baseline;
    settings.layout[program::Axis::context] = ranks;
    const program::ProgramSet set = workloads::build_programs(e.model, settings, {{program::Axis::data, ranks}});
    return sim::Simulation(set, settings, e, sim::network_of(e, {0, 0})).step_s();
  };
  EXPECT_NEAR(step_s(2) / step_s(1), 0.5, 0.01);
}

/// A job of one GPU whose worker only reports `identity`.
class ProbedJob : public test::PlayedJob {
 public:
  explicit ProbedJob(NameValues identity) : identity_(std::move(identity)) {}
  job::BlockOutcome run(const job::BlockOnSet& block) override {
    ++blocks_run;
    job::BlockOutcome outcome;
    outcome.ok = std::holds_alternative<job::Probe>(block.request.task) && block.last;
    outcome.reason = "only asked";
    outcome.samples.emplace_back().task = job::ProbeSamples{identity_, "", 0};
    return outcome;
  }

  int blocks_run = 0;

 private:
  NameValues identity_;
};

TEST(CalibratedDevice, IsWhatAGpuSaysOfItself) {
  ProbedJob job({{"device", "NVIDIA X1"}, {"compute_capability", "10.3"}, {"multiprocessors", "148"}});
  const Device device = device_of(job, usual(config::BackendKind::cuda));
  EXPECT_EQ(device.name, "NVIDIA X1");
  EXPECT_EQ(device.compute_capability, 103);
  EXPECT_EQ(device.sms, 148);
  EXPECT_EQ(device.memory_bytes, 0);  // not reported
  EXPECT_EQ(job.blocks_run, 1);
}

// A prediction can read a hardware file that lacks unreported values.
TEST(CalibratedDevice, WithoutMemoryItsFileHasNone) {
  Measured m;
  m.device = {.name = "NVIDIA X1", .sms = 148, .compute_capability = 103};
  m.peak_flops[config::Precision::bf16] = 1e15;
  Calibrated found;
  found.memory_bytes_per_s = 8e12;
  const test::TemporaryFolder folder;
  folder.write("x.yaml", hardware_text(m, found));
  const config::Hardware read = config::hardware_named(folder / "x.yaml");
  EXPECT_EQ(read.memory_bytes, 0);
  EXPECT_EQ(read.sms, 148);
  EXPECT_EQ(read.compute_capability, 103);
  EXPECT_FALSE(read.nvswitch);
}

}  // namespace

}  // namespace harness::calibrate
