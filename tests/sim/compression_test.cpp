// Compressed gradients take the time of what is sent.
#include <gtest/gtest.h>

#include "config/registry.h"
#include "sim/simulation.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

// A step on two nodes of eight GPUs with 100 Gb/s each, after whose backward pass 16 replicas exchange their gradients.
double predicted_s(const char* precision, const char* compression, const char* ratio = "1 %") {
  config::Experiment e;
  e.backend = config::BackendKind::sim;
  e.hardware = config::hardware_named("dgx-h100");
  e.calibration = config::calibration_named("megatron-2025");
  const config::Model model{"gpt", 4, 1024, 8, 8192, 1024};
  config::Settings s;
  config::find_variable("precision")->parse(s, precision);
  config::find_variable("grad_compression")->parse(s, compression);
  config::find_variable("grad_compression_ratio")->parse(s, ratio);
  s.overlap_grad_reduce = false;
  s.bucket_size_bytes = std::int64_t{1} << 30;  // no step of many messages
  std::vector<int> node_of;
  for (int rank = 0; rank < 16; ++rank) node_of.push_back(rank / 8);
  const program::Layout layout{{program::Axis::data, 16}};
  Network network = network_of(e, node_of);
  network.node_bytes_per_s = 12.5e9;
  return predict(Simulation(gpt::programs(model, s, layout), s, e, network)).step_s;
}

TEST(PredictedCompression, SavesBelowOneInTheNumberOfReplicas) {
  const double whole = predicted_s("bf16", "none");
  EXPECT_LT(predicted_s("bf16", "topk", "0.1 %"), predicted_s("bf16", "topk", "1 %"));
  EXPECT_LT(predicted_s("bf16", "topk", "1 %"), whole);
  EXPECT_GT(predicted_s("bf16", "topk", "10 %"), whole);
}

// Weights of fewer bits are gathered as bytes; gathered gradients are not weights.
TEST(PredictedCompression, SendsAsMuchInEveryPrecision) {
  const auto more = [](const char* precision) {
    return predicted_s(precision, "topk", "100 %") - predicted_s(precision, "none");
  };
  EXPECT_NEAR(more("fp8"), more("bf16"), 1e-2 * more("bf16"));
}

}  // namespace
}  // namespace harness::sim
