// Predictions of whole steps. A step with folded passes takes as long as the same step with all operations.
#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "machine/conditions.h"
#include "support/drawn_steps.h"
#include "support/errors.h"
#include "support/soak.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness::sim {
namespace {

config::Experiment experiment(const std::string& calibration, const std::string& hardware) {
  config::Experiment e;
  e.backend = config::BackendKind::sim;
  e.hardware = config::hardware_named(hardware);
  e.calibration = config::calibration_named(calibration);
  return e;
}

struct Both {
  Prediction whole, folded;
  double error() const { return std::abs(folded.step_s / whole.step_s - 1); }
};

// Returns nothing if the step cannot be folded because the host may be late.
std::optional<Both> both_ways(const test::DrawnStep& step, const config::Experiment& e) {
  const Network network = network_of(e, machine::Topology::node_by_node(step.layout.ranks(), 4).node_of);
  Both both;
  both.whole =
      Simulation(gpt::programs(step.model, step.settings, step.layout), step.settings, e, network).prediction();
  program::FoldedStep folded = gpt::folded(step.model, step.settings, step.layout);
  if (!can_fold(folded, step.settings, e, network)) return {};
  both.folded = Simulation(std::move(folded), step.settings, e, network).prediction();
  return both;
}

TEST(FoldedPasses, TakeAsLongAsTheirOperations) {
  const std::vector<config::Experiment> experiments{experiment("megatron-2025", "dgx-h100"),
                                                    experiment("megatron-2022", "dgx-a100"),
                                                    experiment("harness", "gb200-nvl72")};
  test::StepDraw draw(1);
  const int drawn = test::times(220, 66, 220);
  int folded = 0;
  for (int i = 0; i < drawn; ++i) {
    const test::DrawnStep step = draw.next();
    const auto both = both_ways(step, experiments[i % experiments.size()]);
    if (!both) continue;
    ++folded;
    // The rate of an overlapping operation is rounded to picoseconds, once for each operation.
    EXPECT_LE(both->error(), step.layout[program::Axis::tensor] > 1 ? 0.002 : 1e-8) << step.text();
    EXPECT_NEAR(both->folded.split.compute_s, both->whole.split.compute_s, 0.005 * both->whole.step_s) << step.text();
    EXPECT_NEAR(both->folded.split.exposed_s, both->whole.split.exposed_s, 0.005 * both->whole.step_s) << step.text();
    EXPECT_EQ(both->folded.largest_message_bytes, both->whole.largest_message_bytes) << step.text();
    EXPECT_NEAR(seconds_of(both->folded.critical_path.length()), both->folded.step_s, 1e-11) << step.text();
  }
  EXPECT_GE(folded, drawn * 10 / 11);
}

// Steps are not folded if ranks that share a layer differ, or if the host is late.
TEST(FoldedPasses, AreLeftWhereTheyWouldNotHold) {
  const config::Experiment e = experiment("megatron-2025", "dgx-h100");
  test::StepDraw draw(3);
  test::DrawnStep step = draw.next();
  while (step.layout[program::Axis::tensor] != 4) step = draw.next();
  const program::FoldedStep folded = gpt::folded(step.model, step.settings, step.layout);
  const auto on = [&](const config::Experiment& x, int per_node) {
    const auto topology = machine::Topology::node_by_node(step.layout.ranks(), per_node);
    return can_fold(folded, step.settings, x, network_of(x, topology.node_of));
  };
  EXPECT_TRUE(on(e, 4));
  config::Experiment slow = e, late = e;
  slow.faults.slow_gpus = {{.rank = 1, .speed = 0.5}};
  EXPECT_FALSE(on(slow, 4));
  late.calibration->software.host_s = 1e-6;
  late.calibration->software.host_power = 0;
  EXPECT_FALSE(on(late, 4));
}

// Compressed gradients take the time of the bytes sent.

// A step on two nodes of eight GPUs with 100 Gb/s a node, where 16 replicas reduce gradients after the backward pass.
double compressed_s(const char* compression, const char* ratio = "1 %") {
  const config::Experiment e = experiment("megatron-2025", "dgx-h100");
  const config::Model model{"gpt", 4, 1024, 8, 8192, 1024};
  config::Settings s;
  s.precision = config::Precision::bf16;
  config::find_variable("grad_compression")->parse(s, compression);
  config::find_variable("grad_compression_ratio")->parse(s, ratio);
  s.overlap_grad_reduce = false;
  s.bucket_size_bytes = std::int64_t{1} << 30;  // few messages
  const program::Layout layout{{program::Axis::data, 16}};
  Network network = network_of(e, machine::Topology::node_by_node(16, 8).node_of);
  network.node_bytes_per_s = 12.5e9;
  return Simulation(gpt::programs(model, s, layout), s, e, network).step_s();
}

TEST(PredictedCompression, SavesBelowOneInTheNumberOfReplicas) {
  const double whole = compressed_s("none");
  EXPECT_LT(compressed_s("topk", "0.1 %"), compressed_s("topk", "1 %"));
  EXPECT_LT(compressed_s("topk", "1 %"), whole);
  EXPECT_GT(compressed_s("topk", "10 %"), whole);
}

// Ranks that share a sequence pass each other keys and values over whatever links them.

// Two ranks with a network of 12.5 GB/s a node, each on a node of its own or both on one.
double of_two_ranks_s(int context, const std::vector<int>& node_of, const config::Faults& faults,
                      config::Precision precision = config::Precision::bf16) {
  config::Experiment e = experiment("megatron-2025", "dgx-h100");
  e.faults = faults;
  config::Model model{"llama", 2, 1024, 8, 8192, 16384};
  model.positions = config::Positions::rotary;
  config::Settings s;
  s.precision = precision;
  s.global_batch_size = 2;
  s.layout[program::Axis::context] = context;
  s.overlap_grad_reduce = false;
  const program::Layout layout{{program::Axis::data, 2}};
  Network network = network_of(e, node_of);
  network.node_bytes_per_s = 12.5e9;
  return Simulation(gpt::programs(model, s, layout), s, e, network).step_s();
}

TEST(PredictedContext, PassesKeysOverTheLinksThatFaultsLeave) {
  config::Faults slow, dealt;
  slow.slow_links = {{.node = 1, .share = 0.25}};
  const auto lost_s = [&](int context, config::Precision precision) {
    return of_two_ranks_s(context, {0, 1}, slow, precision) - of_two_ranks_s(context, {0, 1}, {}, precision);
  };
  using enum config::Precision;
  EXPECT_GT(lost_s(2, bf16), 1.5 * lost_s(1, bf16));  // more than the gradients lose
  EXPECT_GT(lost_s(2, fp32), lost_s(2, bf16));        // twice the bytes
  dealt.tensor_across_nodes = true;
  const std::vector<int> pairs{0, 0, 1, 1};  // the job has the first two ranks
  EXPECT_GT(of_two_ranks_s(2, pairs, dealt), 1.2 * of_two_ranks_s(1, pairs, dealt));
}

// The layout may describe a model's step beside an operation that each rank repeats by itself.
TEST(PredictedContext, LeavesARepeatedOperationAlone) {
  const config::Experiment e = experiment("harness", "dgx-h100");
  const auto step_s = [&](int context) {
    config::Settings s;
    s.workload = "attention";
    s.precision = config::Precision::bf16;
    s.layout[program::Axis::context] = context;
    const program::ProgramSet set = workloads::build_programs({}, s, {{program::Axis::data, 2}});
    return Simulation(set, s, e, network_of(e, {0, 0})).step_s();
  };
  EXPECT_EQ(step_s(2), step_s(1));
}

// One byte a second instead of one gigabyte: years, which would not fit in virtual time.
TEST(Prediction, OfAStepThatNeverEndsIsRefused) {
  config::Faults slow;
  slow.socket_bytes_per_s = 1;
  EXPECT_THAT(test::error_of([&] { of_two_ranks_s(1, {0, 1}, slow); }), ::testing::HasSubstr("more than 278 h"));
}

// Padding takes as long as tokens, and packed documents as long as sequences of their length.

double of_documents_s(std::int64_t sequence, std::int64_t rows, const char* sequences, config::Batching batching) {
  const config::Experiment e = experiment("megatron-2025", "dgx-h100");
  config::Model model{"llama", 4, 1024, 8, 8192, sequence};
  model.positions = config::Positions::rotary;
  config::Settings s;
  s.precision = config::Precision::bf16;
  s.global_batch_size = s.micro_batch_size = rows;
  config::find_variable("sequences")->parse(s, sequences);
  s.batching = batching;
  return Simulation(gpt::programs(model, s, {}), s, e, network_of(e, {0})).step_s();
}

TEST(PredictedDocuments, CostWhatTheyCompute) {
  using enum config::Batching;
  constexpr const char* halves = "{distribution: uniform, min: 4096, max: 4096}";
  const double full = of_documents_s(8192, 1, "full", packed), short_ones = of_documents_s(4096, 2, "full", packed);
  ASSERT_LT(short_ones, 0.95 * full);
  EXPECT_NEAR(of_documents_s(8192, 1, halves, padded), full, 1e-5 * full);  // also reads the scale of the loss
  EXPECT_NEAR(of_documents_s(8192, 1, halves, packed), short_ones, 1e-4 * short_ones);
}

}  // namespace
}  // namespace harness::sim
