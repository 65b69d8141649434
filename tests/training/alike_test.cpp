// Levers change how a step is computed, not what it trains: compares each with the same training without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "support/settings.h"
#include "support/soak.h"
#include "trained.h"

namespace harness::alike {
namespace {

using config::Precision;
using config::Settings;
using program::Layout;

// Stages and chunks have different numbers of layers.
const config::Model five_layers =
    test::few_cells ? config::Model{"tiny", 5, 32, 4, 64, 16} : config::Model{"tiny", 5, 64, 4, 128, 32};
// Untied: with a bucket per layer, head and final norm share one, and the embedding table is only accumulated into.
const config::Model llama = test::tiny_llama(4, 32);

// Sequences of all replicas together: divisible by 2, 3 and 4 replicas, or by 2 and 4 where a step is slow.
constexpr std::int64_t sequences = test::few_cells ? 8 : 24;

struct WithWeights : test::Trained {
  test::Gradients weights;  // after the last step
};

WithWeights train(const config::Model& model, const Settings& s, const Layout& layout) {
  test::LocalJob job(model, s, layout);
  WithWeights trained{test::train(job, model, s, layout, test::emulated ? 2 : 3), {}};
  trained.weights = test::gathered_gradients(job, model, s, layout, 1e-6, "master");
  return trained;
}

// Largest relative differences of losses, and of each parameter's gradients and weights; 0: bitwise equal.
struct Agreement {
  double losses, gradients, weights;
};
constexpr Agreement exact{0, 0, 0};
// For sums in another order. AdamW's first steps amplify the sign of a gradient near zero, and rounding to bf16
// amplifies differences near the midpoint of two numbers.
constexpr Agreement reordered{1e-6, 1e-5, 1e-4}, reordered_half{1e-4, 1e-5, 2e-2};
// Other kernels round elsewhere, so weights are not compared.
constexpr Agreement rounded{1e-5, 1e-4, std::numeric_limits<double>::infinity()};

// The emulated device sums embedding gradients in any order, and has a separate kernel for a norm without a residual
// sum.
Agreement at_least(const Agreement& wanted, Precision precision) {
  const bool half = precision == Precision::bf16;
  const Agreement order = half ? reordered_half : reordered;
  if (test::emulated)
    return {std::max(wanted.losses, half ? 1e-4 : 1e-5), std::max(wanted.gradients, 1e-4),
            std::max(wanted.weights, order.weights)};
  if (wanted.losses == 0) return wanted;
  return {std::max(wanted.losses, order.losses), wanted.gradients, std::max(wanted.weights, order.weights)};
}

void expect_agree(const WithWeights& ours, const WithWeights& theirs, const Agreement& agreement,
                  const std::string& what) {
  if (agreement.losses == 0) {
    EXPECT_EQ(ours.losses, theirs.losses) << what;
    EXPECT_TRUE(ours.gradients == theirs.gradients) << what;  // too long to print
    EXPECT_TRUE(ours.weights == theirs.weights) << what;
    return;
  }
  ASSERT_EQ(ours.losses.size(), theirs.losses.size()) << what;
  for (std::size_t i = 0; i < theirs.losses.size(); ++i)
    EXPECT_NEAR(ours.losses[i] / theirs.losses[i], 1, agreement.losses) << what;
  test::expect_equal(ours.gradients, theirs.gradients, agreement.gradients, what);
  test::expect_equal(ours.weights, theirs.weights, agreement.weights, what);
}

enum Flags : unsigned {
  halves = 1,       // also in bf16
  on_emulated = 2,  // also on the emulated device, on the first layout
  on_nodes = 4,     // two replicas share a node
  of_llama = 8
};

struct Row {
  std::vector<std::array<int, 3>> layouts;  // tensor, pipeline, data
  const char* both;                         // settings of both runs
  const char* change;                       // further settings of the second run
  Agreement agreement;
  unsigned flags = 0;
};

const std::vector<Row> rows{
    {{{2, 1, 1}, {1, 1, 1}, {2, 2, 2}}, "", "recompute=full", exact, halves | on_emulated},
    {{{2, 2, 2}}, "", "recompute=full recompute_layers=1", exact, halves},
    {{{1, 1, 1}, {2, 2, 1}}, "attention=unfused", "recompute=selective", exact, on_emulated},
    {{{2, 2, 1}}, "attention=unfused", "recompute=full", exact},
    {{{1, 1, 1}, {2, 2, 1}}, "", "attention=unfused", rounded},
    {{{2, 1, 1}, {1, 1, 1}, {2, 2, 2}}, "", "fusion=false", rounded, on_emulated},
    {{{2, 1, 2}, {4, 1, 1}, {2, 2, 1}}, "", "sequence_parallel=true", rounded, on_emulated},
    {{{2, 2, 2}}, "recompute=full overlap_grad_reduce=false", "sequence_parallel=true", rounded},
    {{{2, 1, 1}}, "", "sequence_parallel=true recompute=full", rounded, of_llama | on_emulated},
    {{{2, 1, 1}}, "attention=unfused", "fusion=false recompute=selective", rounded, of_llama},
    {{{1, 1, 4}, {2, 1, 2}}, "", "allreduce_algorithm=halving_doubling", rounded},
    {{{1, 2, 1}, {2, 2, 1}, {1, 4, 1}}, "", "pipeline_schedule=gpipe", exact, on_emulated},
    // At the end of a chunk, a separate kernel computes a bias gradient.
    {{{1, 2, 1}, {2, 2, 1}}, "", "pipeline_schedule=interleaved", reordered, on_emulated},
    {{{2, 2, 2}},
     "sequence_parallel=true attention=unfused recompute=selective",
     "pipeline_schedule=interleaved",
     reordered},
    // The update of an element does not depend on when others are updated. A missing or premature update changes
    // weights by a percent.
    {{{1, 1, 2}, {1, 1, 1}, {1, 2, 1}, {2, 2, 2}}, "", "overlap_optimizer=true", exact, halves | on_emulated},
    {{{1, 1, 2}, {2, 2, 2}}, "overlap_grad_reduce=false", "overlap_optimizer=true", exact},
    {{{2, 1, 2}}, "sequence_parallel=true", "overlap_optimizer=true", exact},
    {{{1, 1, 2}, {1, 2, 2}},
     "sharding=optimizer overlap_optimizer=true",
     "overlap_param_gather=true",
     exact,
     on_emulated},

    // A sum over two replicas is bitwise equal in either order. A sum over more replicas has another order, and so have
    // micro-batches that are reduced one by one.
    {{{1, 1, 2}, {1, 2, 2}, {2, 2, 2}}, "", "sharding=optimizer", exact, halves | on_emulated},
    {{{1, 1, 3}}, "", "sharding=optimizer", reordered, halves},
    {{{1, 1, 2}, {2, 1, 3}}, "", "sharding=gradients", reordered, halves | on_emulated},
    {{{1, 1, 2}, {2, 1, 3}}, "", "sharding=parameters", reordered, halves | on_emulated},
    {{{1, 1, 2}, {2, 1, 2}}, "", "sharding=optimizer", exact, of_llama},
    {{{2, 1, 2}}, "", "sharding=gradients", reordered, of_llama},
    {{{1, 1, 2}, {2, 1, 2}}, "", "sharding=parameters", reordered, of_llama | on_emulated},
    // The shards on the two replicas of a node are all-reduced with their copies on the other node.
    {{{1, 1, 4}, {2, 1, 4}},
     "overlap_optimizer=true",
     "sharding=optimizer sharding_group=node overlap_param_gather=true",
     reordered,
     on_nodes},
    {{{1, 1, 4}, {2, 1, 4}},
     "overlap_optimizer=true",
     "sharding=gradients sharding_group=node overlap_param_gather=true",
     reordered,
     on_nodes},
    {{{1, 1, 4}, {2, 1, 4}},
     "overlap_optimizer=true",
     "sharding=parameters sharding_group=node overlap_param_gather=true",
     reordered,
     on_nodes | on_emulated},
    {{{2, 1, 4}}, "overlap_grad_reduce=false", "sharding=optimizer sharding_group=node", reordered, on_nodes},
    {{{2, 1, 4}}, "overlap_grad_reduce=false", "sharding=parameters sharding_group=node", reordered, on_nodes},

    // At ratio 1, two replicas add the same two numbers as without compression.
    {{{1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}, "", "grad_compression=topk grad_compression_ratio=1", exact, halves},
    {{{1, 1, 2}, {2, 2, 2}}, "overlap_optimizer=true", "grad_compression=topk grad_compression_ratio=1", exact},
    {{{2, 1, 2}},
     "sequence_parallel=true overlap_grad_reduce=false",
     "grad_compression=topk grad_compression_ratio=1",
     exact},
    {{{1, 1, 3}}, "", "grad_compression=topk grad_compression_ratio=1", reordered},

    {{{2, 1, 2}}, "sequence_parallel=true", "sharding=optimizer", exact},
    {{{1, 2, 2}}, "pipeline_schedule=interleaved", "sharding=optimizer", exact},
    {{{1, 1, 2}}, "recompute=full", "sharding=optimizer", exact},
    {{{1, 2, 2}}, "overlap_optimizer=true", "sharding=optimizer", exact},
    {{{1, 2, 2}}, "overlap_optimizer=true overlap_grad_reduce=false", "sharding=optimizer", exact},
    {{{2, 1, 2}}, "fusion=false", "sharding=optimizer", exact},
    {{{2, 1, 2}}, "sequence_parallel=true", "sharding=parameters", reordered},
    {{{2, 1, 2}}, "recompute=full", "sharding=parameters", reordered},
    {{{2, 1, 2}}, "", "sharding=parameters prefetch_layers=0", reordered},
    {{{2, 1, 2}}, "", "sharding=parameters prefetch_layers=4", reordered},
    {{{2, 1, 2}}, "pipeline_schedule=gpipe overlap_optimizer=true", "sharding=parameters", reordered},
    {{{2, 1, 2}}, "overlap_grad_reduce=false fusion=false", "sharding=parameters", reordered},
};

bool has(const Row& row, Flags flag) {
  return (row.flags & flag) != 0;
}

// Every row runs on the cpu backend at -O2.
std::vector<std::size_t> chosen_rows() {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool left_out = (test::emulated && !has(rows[i], on_emulated)) || (test::sanitized && i % 3 != 0);
    if (!left_out) chosen.push_back(i);
  }
  return chosen;
}

class Alike : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Rows, Alike, ::testing::ValuesIn(chosen_rows()));

TEST_P(Alike, ALeverTrainsAsWithoutIt) {
  const Row& row = rows[GetParam()];
  const config::Model& model = has(row, of_llama) ? llama : five_layers;
  for (const auto& [tp, pp, dp] : row.layouts) {
    if ((test::emulated || test::sanitized) && std::array{tp, pp, dp} != row.layouts.front()) continue;
    Layout layout = test::layout_of(tp, pp, dp);
    if (has(row, on_nodes)) layout.replicas_of_node = 2;
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      if (precision == Precision::bf16 && !has(row, halves)) continue;
      if (test::few_cells && precision == Precision::fp32 && has(row, halves)) continue;
      Settings s = test::settings_on(layout, sequences, has(row, on_nodes) ? 2 : 4);
      s.precision = precision;
      test::set(s, row.both);
      const WithWeights without = train(model, s, layout);
      test::set(s, row.change);
      expect_agree(train(model, s, layout), without, at_least(row.agreement, precision),
                   fmt::format("{} with {} and {}, {}", program::text_of(layout), row.change,
                               *row.both == '\0' ? "nothing else" : row.both, config::name_of(precision)));
    }
  }
}

}  // namespace
}  // namespace harness::alike
