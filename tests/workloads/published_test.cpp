// Published memory (docs/method.md, "Memory"), recomputed from Programs.

#include <gtest/gtest.h>

#include <cmath>

#include "gpt_jobs.h"
#include "program/saved.h"
#include "workloads/gpt/parameters.h"

namespace harness::workloads {
namespace {

constexpr double gib = 1 << 30;

/// Korthikanti et al. 2022, table 3, and the memory of figure 1: 16-bit numbers, tensor and sequence parallelism over 8
/// ranks, selective recomputation, vocabulary 51200, sequence 2048.
struct Published {
  const char* name;
  std::int64_t layers, hidden, heads;
  int pipeline, chunks;  // of a stage, with the interleaved schedule; 1: without
  std::int64_t micro_batch_size;
  double activations_gib, parameters_gib;
};
constexpr Published published[] = {{"22B", 48, 6144, 64, 1, 1, 4, 9.56, 45.6},
                                   {"175B", 96, 12288, 96, 8, 3, 1, 12.35, 45.6},
                                   {"530B", 105, 20480, 128, 35, 3, 1, 23.08, 31.6},
                                   {"1T", 128, 25600, 160, 64, 1, 1, 26.56, 33.0}};

/// Memory of one rank of a stage in the middle, in GiB: for 22B, of the only one.
struct Planned {
  double activations = 0;  // of as many layers as the first stage keeps at once, 1F1B
  double parameters = 0;   // weights, gradients and optimizer state of its layers
};

Planned planned(const Published& p) {
  Job j = job({p.name, p.layers, p.hidden, p.heads, 51200, 2048}, 8, p.pipeline, 1, 1, p.micro_batch_size);
  j.settings.precision = config::Precision::bf16;
  j.settings.sequence_parallel = true;
  j.settings.attention = config::AttentionKind::unfused;
  j.settings.recompute = config::Recompute::selective;
  const int stage = p.pipeline / 2;
  const program::Program program = gpt::programs(j.model, j.settings, j.layout).roles[static_cast<std::size_t>(stage)];
  Planned out;
  // A layer that another one of the stage follows and precedes keeps whole what it keeps. The first stage keeps p
  // micro-batches of L / p layers: those of L layers, whatever p.
  const auto layer = static_cast<std::int32_t>(stage * (p.layers / p.pipeline) + 1);
  out.activations = static_cast<double>(p.layers * program::saved_bytes(program).at({0, layer})) / gib;
  for (const program::Buffer& buffer : program.buffers) {
    const bool state = buffer.name == "master" || buffer.name == "weights" || buffer.name == "gradient" ||
                       buffer.name == "moment1" || buffer.name == "moment2";
    if (state) out.parameters += static_cast<double>(buffer.bytes()) / gib;
  }
  for (const gpt::Parameter& parameter : gpt::parameters(j.model, j.settings, j.layout, stage)) {
    if (parameter.id.layer < 0) out.parameters -= 18 * static_cast<double>(parameter.count()) / gib;  // embeddings
  }
  return out;
}

TEST(PublishedMemory, IsThatOfProgramsAfterTheStatedDifferences) {
  for (const Published& p : published) {
    const Planned ours = planned(p);
    const double interleaving = p.chunks == 1 ? 1 : 1 + (p.pipeline - 1.0) / (p.pipeline * p.chunks);
    const double compared = ours.activations * 34 / 32 * interleaving;
    EXPECT_NEAR(compared / p.activations_gib, 1, 0.01) << p.name;
    EXPECT_NEAR(ours.parameters / p.parameters_gib, 1, 0.01) << p.name;
  }
}

}  // namespace
}  // namespace harness::workloads
