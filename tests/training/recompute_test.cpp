#include <gtest/gtest.h>

#include <algorithm>

#include "gathered_gradients.h"
#include "local_job.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;

const config::Model two_layers{"tiny", 2, 64, 4, 128, 32};

// By rank: the losses of three steps, and the gradients of the last one.
std::vector<std::vector<float>> trained(const config::Settings& settings, const program::Layout& layout) {
  LocalJob job(two_layers, settings, layout);
  job.run(3);
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const auto& buffers = job.program(rank).buffers;
    const auto gradient = std::ranges::find(buffers, "gradient", &program::Buffer::name);
    all.push_back(job.losses(rank));
    all.push_back(job.read(rank, "gradient", 0, gradient->count));
  }
  return all;
}

// To the last bit on cpu: the same operations read the same numbers, a norm the rounded sum that it made itself. The
// cuda backend has another kernel for a norm that sums nothing, and adds the gradients of embeddings up in any order.
TEST(Recompute, TrainsAsKeepingDoes) {
  for (const auto& layout : {layout_of(1, 1, 1), layout_of(2, 1, 1), layout_of(2, 2, 2)}) {
    for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
      if (test::emulated && (layout.ranks() != 2 || precision != config::Precision::fp32)) continue;
      config::Settings s;
      s.global_batch_size = 8;
      s.micro_batch_size = 2;
      s.precision = precision;
      const auto kept = trained(s, layout);
      s.recompute = config::Recompute::full;
      for (const int layers : {0, 1}) {
        s.recompute_layers = layers;
        const auto recomputed = trained(s, layout);
        for (std::size_t i = 0; i < kept.size(); ++i) {
          const double apart = test::distance(recomputed[i], kept[i]);
          EXPECT_LE(apart, test::emulated ? 1e-4 : 0) << layout.ranks() << " ranks, " << layers << " layers";
        }
      }
    }
  }
}

}  // namespace
}  // namespace harness
