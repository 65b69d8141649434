// Top-k compression of gradients: the applied gradients, and the residual that each replica keeps.
#include <gtest/gtest.h>

#include <vector>

#include "trained.h"

namespace harness::compression {
namespace {

using config::Settings;
using program::Layout;
using test::layout_of;
using test::LocalJob;

const config::Model tiny{"tiny", test::emulated ? 1 : 5, 64, 4, 128, 32};

Settings compressed_settings(const Layout& layout, double ratio) {
  Settings s = test::settings_on(layout, 8, 8 / layout[program::Axis::data]);
  s.grad_compression = config::GradCompression::top_k;
  s.grad_compression_ratio = ratio;
  return s;
}

std::vector<float> flat(LocalJob& job, int rank, const char* name) {
  return job.read(rank, name, 0, workloads::find_buffer(job.program(rank), name).count);
}

std::vector<float> reduced_gradients(const Settings& s, const Layout& layout) {
  LocalJob job(tiny, s, layout);
  job.run(1);
  return flat(job, 0, gpt::gradient_buffer);
}

std::int64_t not_zero(const std::vector<float>& values) {
  return std::ranges::count_if(values, [](float x) { return x != 0; });
}

// After one step, applied gradients plus all residuals equal the gradients reduced without compression.
TEST(Compression, LosesNoGradient) {
  for (const Layout& layout : {layout_of(1, 1, 2), layout_of(1, 1, 4)}) {
    for (const bool overlap : {true, false}) {
      if (test::emulated && (!overlap || layout.ranks() > 2)) continue;
      Settings s = compressed_settings(layout, 0.05);
      s.overlap_grad_reduce = overlap;
      Settings whole = s;
      whole.grad_compression = config::GradCompression::none;
      const std::vector<float> reduced = reduced_gradients(whole, layout);
      LocalJob compressed(tiny, s, layout);
      compressed.run(1);
      const std::vector<float> applied = flat(compressed, 0, gpt::gradient_buffer);
      std::vector<float> sum = applied;
      for (int rank = 0; rank < layout.ranks(); ++rank) {
        EXPECT_EQ(flat(compressed, rank, gpt::gradient_buffer), applied) << "rank " << rank;
        const std::vector<float> kept = flat(compressed, rank, "residual");
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += kept[i];
      }
      EXPECT_LT(test::distance(sum, reduced), 1e-6);
      EXPECT_GT(test::distance(applied, reduced), 0.05);  // the residual is not empty
      const auto n = static_cast<double>(applied.size());
      EXPECT_GT(static_cast<double>(not_zero(applied)), 0.045 * n);
      EXPECT_LE(static_cast<double>(not_zero(applied)), 0.051 * n * layout.ranks());
    }
  }
}

// Replicas stay equal, and the loss falls as it does without compression.
TEST(Compression, TrainsInEveryLayout) {
  if (test::emulated) return;
  for (const Layout& layout : {layout_of(1, 1, 2), layout_of(2, 2, 2), layout_of(1, 1, 4)}) {
    for (const bool overlap_optimizer : {false, true}) {
      Settings s = compressed_settings(layout, 0.1);
      s.overlap_optimizer = overlap_optimizer;
      s.sequence_parallel = layout[program::Axis::tensor] > 1;
      constexpr int steps = 8;
      LocalJob job(tiny, s, layout);
      const test::Trained ours = test::train(job, tiny, s, layout, steps);
      test::gathered_gradients(job, tiny, s, layout, 1e-6, "master");  // checks that replicas agree
      s.grad_compression = config::GradCompression::none;
      const test::Trained whole = test::train(tiny, s, layout, steps);
      EXPECT_EQ(ours.losses[0], whole.losses[0]);  // before the first update
      EXPECT_NE(ours.losses[2], whole.losses[2]);
      EXPECT_NEAR(ours.losses.back() / whole.losses.back(), 1, 0.05) << program::text_of(layout);
    }
  }
}

}  // namespace
}  // namespace harness::compression
