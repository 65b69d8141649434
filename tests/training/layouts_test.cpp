#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string_view>

#include "config/registry.h"
#include "trained.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;

using test::emulated;
using test::few_cells;
const config::Model tiny{"tiny", 2, 64, 4, 128, 32};

std::vector<float> train(const config::Settings& settings, const program::Layout& layout, int steps = 3) {
  LocalJob job(tiny, settings, layout);
  job.run(steps);
  const auto losses = job.losses(0);
  for (int rank = 1; rank < layout.ranks(); ++rank) EXPECT_EQ(job.losses(rank), losses) << "rank " << rank;
  return losses;
}

void expect_equal(const std::vector<float>& a, const std::vector<float>& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i] / b[i], 1, tolerance) << what << ", step " << i;
}

// As blocks that follow each other in a process do.
TEST(Connections, OfAnEarlierJobServeTheNextOneAsNewOnesWould) {
  config::Settings settings;
  settings.global_batch_size = 8;
  settings.micro_batch_size = 2;
  const program::Layout layout = layout_of(2, 2, 2);
  LocalJob first(tiny, settings, layout);
  first.run(2);
  const std::vector<float> losses = first.losses(0);
  EXPECT_GT(first.messages(), 0);
  test::KeptConnections kept = first.release();
  for (int time = 0; time < 2; ++time) {
    LocalJob next(tiny, settings, layout, 1, kept);
    EXPECT_EQ(next.messages(), 0);
    next.run(2);
    EXPECT_EQ(next.losses(0), losses);
    kept = next.release();
  }
}

// What joins other ranks than before is made anew, and the rest is found again.
TEST(Connections, OfAnotherLayoutAreMadeAnew) {
  config::Settings settings;
  settings.global_batch_size = 8;
  settings.micro_batch_size = 2;
  LocalJob first(tiny, settings, layout_of(2, 1, 2));
  first.run(1);
  LocalJob next(tiny, settings, layout_of(1, 2, 2), 1, first.release());
  EXPECT_GT(next.messages(), 0);
  next.run(2);
  const std::vector<float> losses = next.losses(0);
  LocalJob fresh(tiny, settings, layout_of(1, 2, 2));
  fresh.run(2);
  EXPECT_EQ(losses, fresh.losses(0));
}

TEST(Layouts, AllTrainAlike) {
  config::Settings base;
  base.global_batch_size = 8;
  base.micro_batch_size = 8;
  const int steps = emulated ? 2 : 3;
  const auto reference = train(base, {}, steps);
  for (const int tp : {1, 2}) {
    for (const int pp : {1, 2}) {
      for (const int dp : {1, 2}) {
        for (const std::int64_t micro_batches : {1, 4}) {
          if (emulated && micro_batches == 1) continue;
          if (few_cells && tp * pp * dp != 8) continue;
          for (const bool overlap : {true, false}) {
            if (few_cells && !overlap) continue;
            config::Settings s = base;
            s.layout = {{program::Axis::tensor, tp}, {program::Axis::pipeline, pp}};
            s.micro_batch_size = 8 / dp / micro_batches;
            s.overlap_grad_reduce = overlap;
            s.bucket_size_bytes = 64 << 10;
            expect_equal(
                train(s, test::layout_of(tp, pp, dp), steps), reference, 1e-5,
                fmt::format("TP{} PP{} DP{}, {} micro-batches, overlap {}", tp, pp, dp, micro_batches, overlap));
          }
        }
      }
    }
  }
}

// Groups add up in the order of coordinates, whatever the numbers of the ranks: not a bit may differ.
TEST(Layouts, InEveryRankOrderTheLossesAreTheSame) {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  s.bucket_size_bytes = 64 << 10;
  const config::Variable& rank_order = *config::find_variable("rank_order");
  std::vector<float> usual;
  for (const char* order : {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"}) {
    if (emulated && std::string_view(order) != "tp-dp-pp" && std::string_view(order) != "pp-dp-tp") continue;
    rank_order.parse(s, order);
    program::Layout layout = s.layout;
    for (const program::Axis axis : program::told_axes) layout[axis] = 2;
    const std::vector<float> losses = train(s, layout, 2);
    if (usual.empty()) usual = losses;
    EXPECT_EQ(losses, usual) << order;
  }
}

// Where a loss would move by 1e-4 only, such as for a sum over ranks that a norm's gradient lacks.
TEST(Layouts, EveryGradientIsThatOfOneRank) {
  config::Settings base;
  base.global_batch_size = 8;
  base.micro_batch_size = 8;
  const test::Gradients reference = test::train(tiny, base, {}, 1).gradients;
  for (const auto& [tp, pp, dp] : {std::array{2, 1, 1}, std::array{1, 2, 1}, std::array{1, 1, 2}, std::array{2, 2, 1},
                                   std::array{2, 1, 2}, std::array{1, 2, 2}, std::array{2, 2, 2}}) {
    if (emulated && (tp != 2 || pp != 2 || dp != 1)) continue;
    config::Settings s = base;
    s.layout = {{program::Axis::tensor, tp}, {program::Axis::pipeline, pp}};
    s.micro_batch_size = 2;
    s.bucket_size_bytes = 64 << 10;
    test::expect_equal(test::train(tiny, s, layout_of(tp, pp, dp), 1).gradients, reference, 1e-4,
                       fmt::format("TP{} PP{} DP{}", tp, pp, dp));
  }
}

// To the last bit on cpu: the update of an element does not depend on when others are updated. On cuda the gradients of
// embeddings add up in any order, and AdamW's first steps make much of the sign of a gradient that is almost zero. An
// update that is missing or comes too early changes weights by a percent.
TEST(Layouts, UpdatesBesideTheBackwardPassAreThoseAfterIt) {
  const auto weights_after = [](config::Settings s, const program::Layout& layout, bool overlap_optimizer) {
    s.overlap_optimizer = overlap_optimizer;
    LocalJob job(tiny, s, layout);
    job.run(3);
    std::vector<std::vector<float>> all;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto& buffers = job.program(rank).buffers;
      const auto master = std::ranges::find(buffers, "master", &program::Buffer::name);
      all.push_back(job.read(rank, "master", 0, master->count));
      all.push_back(job.losses(rank));
    }
    return all;
  };
  for (const auto& layout : {layout_of(1, 1, 1), layout_of(1, 1, 2), layout_of(1, 2, 1), layout_of(2, 2, 2)}) {
    for (const bool overlap_grad_reduce : {true, false}) {
      if (emulated && (layout.ranks() > 2 || !overlap_grad_reduce)) continue;
      for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
        const bool half = precision == config::Precision::bf16;
        if (few_cells && layout != (half ? layout_of(1, 2, 1) : layout_of(1, 1, 2))) continue;
        config::Settings s;
        s.global_batch_size = 8;
        s.micro_batch_size = 4 / layout[program::Axis::data];
        s.bucket_size_bytes = 16 << 10;
        s.overlap_grad_reduce = overlap_grad_reduce;
        s.precision = precision;
        const auto beside = weights_after(s, layout, true), after = weights_after(s, layout, false);
        ASSERT_EQ(beside.size(), after.size());
        for (std::size_t i = 0; i < after.size(); ++i) {
          const double apart = test::distance(beside[i], after[i]);
          EXPECT_LE(apart, emulated ? 1e-4 : 0)
              << fmt::format("{} ranks, overlap_grad_reduce {}", layout.ranks(), overlap_grad_reduce);
        }
      }
    }
  }
}

TEST(Layouts, WithoutFusionTheSameIsComputed) {
  for (const auto& layout : {layout_of(1, 1, 1), layout_of(2, 1, 1), layout_of(2, 2, 2)}) {
    if (emulated && layout.ranks() > 2) continue;
    config::Settings s;
    s.global_batch_size = 8;
    s.micro_batch_size = 2;
    const auto fused = train(s, layout);
    s.fusion = false;
    expect_equal(train(s, layout), fused, 1e-6, fmt::format("{} ranks", layout.ranks()));
  }
}

TEST(Layouts, AllReduceAlgorithmsTrainAlike) {
  if (test::tested_backend != config::BackendKind::cpu) GTEST_SKIP() << "algorithms of Gloo";
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  const auto reference = train(s, test::layout_of(1, 1, 4));
  s.allreduce_algorithm = config::AllReduceAlgorithm::halving_doubling;
  expect_equal(train(s, test::layout_of(1, 1, 4)), reference, 1e-5, "DP 4");
  expect_equal(train(s, test::layout_of(2, 1, 2)), reference, 1e-5, "TP 2 DP 2");
}

TEST(Layouts, Bf16TrainsAlikeWithinItsPrecision) {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  const auto reference = train(s, {});
  s.precision = config::Precision::bf16;
  expect_equal(train(s, {}), reference, 2e-2, "one rank");
  expect_equal(train(s, test::layout_of(2, 2, 1)), reference, 2e-2, "TP2 PP2");
  expect_equal(train(s, test::layout_of(1, 2, 2)), reference, 2e-2, "PP2 DP2");
}

TEST(Layouts, LossFallsOnARepeatedBatch) {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  for (const config::Precision p : {config::Precision::fp32, config::Precision::bf16}) {
    s.precision = p;
    LocalJob job(tiny, s, test::layout_of(1, 1, 2));
    job.repeat_batch();
    job.run(emulated ? 12 : 40);
    const auto losses = job.losses(0);
    EXPECT_NEAR(losses.front(), std::log(128.0), 0.3);
    EXPECT_LT(losses.back(), losses.front() - (emulated ? 0.3 : 1.0));
  }
}

}  // namespace
}  // namespace harness
