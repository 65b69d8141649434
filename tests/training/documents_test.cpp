// Documents shorter than a sequence train alike packed and padded, in every layout.
#include <gtest/gtest.h>

#include <string>

#include "config/registry.h"
#include "support/settings.h"
#include "trained.h"
#include "workloads/gpt/documents.h"

namespace harness::documents {
namespace {

using config::Settings;
using program::Layout;
using test::layout_of;

// Attention blocks have 64 positions. The second model has rotary positions and grouped queries.
const config::Model gpt{"tiny", test::emulated ? 1 : 3, 64, 4, 128, 160};
const config::Model llama = test::tiny_llama(test::emulated ? 1 : 2, 160);

Settings packed_settings(const Layout& layout, std::int64_t rows, std::int64_t micro_batches) {
  Settings s = test::settings_on(layout, rows, micro_batches);
  config::find_variable("sequences")->parse(s, "{distribution: lognormal, median: 40, sigma: 0.8}");
  s.batching = config::Batching::packed;
  return s;
}

// A position attends only to its document, is numbered within it, and counts once in the loss, wherever it lies.
TEST(Documents, PackedTrainsAsPadded) {
  for (const config::Model& model : {gpt, llama}) {
    constexpr std::int64_t rows = test::emulated ? 2 : 4;
    const Settings packed = packed_settings({}, rows, 2);
    Settings padded = packed;
    padded.batching = config::Batching::padded;
    padded.global_batch_size = std::ssize(gpt::Documents(packed, model.sequence, rows, 1).of_step(0));
    ASSERT_GE(padded.global_batch_size, 2 * rows);
    padded.micro_batch_size = 1;
    const test::Trained ours = test::train(model, packed, {}, 1), theirs = test::train(model, padded, {}, 1);
    EXPECT_NEAR(ours.losses[0] / theirs.losses[0], 1, 1e-5) << model.name;
    test::expect_equal(ours.gradients, theirs.gradients, 1e-5, model.name);
  }
}

struct Way {
  Layout layout;
  const char* settings;
};

TEST(Documents, EveryLayoutAndLeverTrainsAsOneRank) {
  if (test::emulated) return;
  for (const Way& way :
       {Way{layout_of(2, 1, 1), ""}, Way{layout_of(2, 1, 1), "sequence_parallel=true"}, Way{layout_of(1, 2, 1), ""},
        Way{layout_of(1, 1, 2), "sharding=optimizer"}, Way{layout_of(1, 1, 1), "recompute=full"},
        Way{layout_of(1, 1, 1), "attention=unfused"}, Way{layout_of(2, 2, 2), "recompute=full"}}) {
    for (const char* batching : {"batching=packed", "batching=padded"}) {
      Settings s = packed_settings(way.layout, 8, 2);
      test::set(s, batching);
      test::set(s, way.settings);
      test::expect_trains_as_one_rank(gpt, s, way.layout, fmt::format("{} {}", batching, way.settings));
    }
  }
}

}  // namespace
}  // namespace harness::documents
