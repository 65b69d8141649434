#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "support/soak.h"
#include "trained.h"

namespace harness {
namespace {

using config::Sharding;
using test::layout_of;
using test::LocalJob;

const config::Model four_layers{"tiny", 4, 64, 4, 128, 32};
// Of all replicas together: for 2, 3 or 4 of them, or for 2 and 4 where a step takes long.
constexpr std::int64_t sequences = test::few_cells ? 8 : 24;

struct TrainedShards : test::Trained {
  test::Gradients weights;  // after the last step
};

config::Settings sharded_settings(const program::Layout& layout, Sharding sharding) {
  config::Settings s;
  s.sharding = sharding;
  s.global_batch_size = sequences;
  s.micro_batch_size = sequences / layout[program::Axis::data] / 4;  // four of them
  s.bucket_size_bytes = 64 << 10;                                    // cuts layers
  return s;
}

TrainedShards train_shards(const config::Settings& s, const program::Layout& layout,
                           const config::Model& model = four_layers) {
  LocalJob job(model, s, layout);
  TrainedShards trained{test::train(job, model, s, layout, test::emulated ? 2 : 3), {}};
  trained.weights = test::gathered_gradients(job, model, s, layout, 1e-6, "master");
  return trained;
}

// Two replicas add two numbers, in whatever order: to the last bit the same. More add up in another order, and AdamW's
// first steps make much of the sign of a gradient that is almost zero, and bf16 of what lies near the middle between
// two numbers.
void expect_same_training(const TrainedShards& ours, const TrainedShards& whole, const program::Layout& layout,
                          const std::string& what, bool one_reduction = true,
                          config::Precision precision = config::Precision::fp32) {
  if (layout[program::Axis::data] == 2 && one_reduction && !test::emulated) {
    EXPECT_EQ(ours.losses, whole.losses) << what;
    EXPECT_EQ(ours.gradients, whole.gradients) << what;
    EXPECT_EQ(ours.weights, whole.weights) << what;
    return;
  }
  ASSERT_EQ(ours.losses.size(), whole.losses.size()) << what;
  const bool half = precision == config::Precision::bf16;
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(ours.losses[i] / whole.losses[i], 1, half ? 1e-4 : 1e-6) << what;
  }
  test::expect_equal(ours.gradients, whole.gradients, 1e-5, what);
  test::expect_equal(ours.weights, whole.weights, half ? 2e-2 : 1e-4, what);
}

struct ShardedCell {
  int tp, pp, dp;
};

// A few that meet every axis, or with HARNESS_SOAK all.
std::vector<ShardedCell> cells(const std::vector<ShardedCell>& few) {
  if (test::emulated) return {few.front()};
  if (!test::soaking()) return few;
  std::vector<ShardedCell> all;
  for (const int tp : {1, 2}) {
    for (const int pp : {1, 2}) {
      for (const int dp : {2, 3}) all.push_back({tp, pp, dp});
    }
  }
  return all;
}

TEST(Sharding, OfTheOptimizerTrainsAsEachReplicaAloneDoes) {
  for (const auto& [tp, pp, dp] : cells({{1, 2, 2}, {1, 1, 3}, {2, 2, 2}})) {
    const program::Layout layout = layout_of(tp, pp, dp);
    for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
      if (test::emulated && precision == config::Precision::fp32) continue;
      config::Settings s = sharded_settings(layout, Sharding::none);
      s.precision = precision;
      const TrainedShards whole = train_shards(s, layout);
      s.sharding = Sharding::optimizer;
      const std::string what = fmt::format("{}, {}", program::text_of(layout), config::name_of(precision));
      expect_same_training(train_shards(s, layout), whole, layout, what, true, precision);
    }
  }
}

// Micro-batches add up after the replicas' sum instead of before.
TEST(Sharding, OfGradientsAndParametersTrainsAsEachReplicaAloneDoes) {
  for (const auto& [tp, pp, dp] : cells({{1, 1, 2}, {2, 1, 3}})) {
    if (pp > 1) continue;  // refused
    const program::Layout layout = layout_of(tp, pp, dp);
    for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
      if (test::emulated && precision == config::Precision::fp32) continue;
      config::Settings s = sharded_settings(layout, Sharding::none);
      s.precision = precision;
      const TrainedShards whole = train_shards(s, layout);
      for (const Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
        s.sharding = sharding;
        const std::string what = fmt::format("sharding {}, {}, {}", static_cast<int>(sharding),
                                             program::text_of(layout), config::name_of(precision));
        expect_same_training(train_shards(s, layout), whole, layout, what, false, precision);
      }
    }
  }
}

// Four replicas on two nodes: the parts that the two of a node have are summed up with their copies on the other.
TEST(Sharding, InsideANodeTrainsAsEachReplicaAloneDoes) {
  for (const int tp : test::emulated ? std::vector{1} : std::vector{1, 2}) {
    program::Layout layout = layout_of(tp, 1, 4);
    layout.replicas_of_node = 2;
    config::Settings s = sharded_settings(layout, Sharding::none);
    s.micro_batch_size = sequences / 8;  // two of each replica
    const TrainedShards whole = train_shards(s, layout);
    s.sharding_group = config::ShardingGroup::node;
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      if (test::emulated && sharding != Sharding::parameters) continue;
      for (const bool overlap : {true, false}) {
        if (test::emulated && !overlap) continue;
        s.sharding = sharding;
        s.overlap_grad_reduce = s.overlap_optimizer = s.overlap_param_gather = overlap;
        const std::string what = fmt::format("sharding {} {}, {}", static_cast<int>(sharding),
                                             overlap ? "overlapped" : "at the ends", program::text_of(layout));
        expect_same_training(train_shards(s, layout), whole, layout, what, false);
      }
    }
  }
}

// A head of its own shares a bucket with the final norm where a bucket is a layer, and the table is only added to.
TEST(Sharding, OfAModelWithAHeadOfItsOwnTrainsAsEachReplicaAloneDoes) {
  config::Model llama = four_layers;
  llama.kv_heads = 2;
  llama.ffn = 96;
  llama.activation = config::Activation::swiglu;
  llama.norm = config::NormKind::rms_norm;
  llama.positions = config::Positions::rotary;
  llama.tied_embeddings = llama.biases = false;
  for (const int tp : test::emulated ? std::vector{1} : std::vector{1, 2}) {
    const program::Layout layout = layout_of(tp, 1, 2);
    config::Settings s = sharded_settings(layout, Sharding::none);
    const TrainedShards whole = train_shards(s, layout, llama);
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      if (test::few_cells && sharding != Sharding::parameters) continue;
      s.sharding = sharding;
      const std::string what = fmt::format("sharding {}, {}", static_cast<int>(sharding), program::text_of(layout));
      expect_same_training(train_shards(s, layout, llama), whole, layout, what, sharding == Sharding::optimizer);
    }
  }
}

TEST(Sharding, OfParametersGoesTogetherWithOtherLevers) {
  if (test::emulated) GTEST_SKIP() << "slow, and each of the levers has a test of its own";
  struct Setting {
    const char* name;
    void (*set)(config::Settings&);
  };
  const std::array<Setting, 7> all{{
      {"recompute", [](config::Settings& s) { s.recompute = config::Recompute::full; }},
      {"sequence_parallel", [](config::Settings& s) { s.sequence_parallel = true; }},
      {"nothing ahead", [](config::Settings& s) { s.prefetch_layers = 0; }},
      {"all ahead", [](config::Settings& s) { s.prefetch_layers = 3; }},
      {"gpipe", [](config::Settings& s) { s.pipeline_schedule = config::PipelineSchedule::gpipe; }},
      {"overlap_optimizer", [](config::Settings& s) { s.overlap_optimizer = true; }},
      {"nothing overlapped",
       [](config::Settings& s) {
         s.overlap_grad_reduce = false;
         s.fusion = false;
       }},
  }};
  const program::Layout layout = layout_of(2, 1, 2);
  const TrainedShards whole = train_shards(sharded_settings(layout, Sharding::none), layout);
  for (const Setting& setting : all) {
    config::Settings s = sharded_settings(layout, Sharding::parameters);
    setting.set(s);
    expect_same_training(train_shards(s, layout), whole, layout, setting.name, false);
  }
}

TEST(Sharding, GoesTogetherWithOtherLevers) {
  if (test::emulated) GTEST_SKIP() << "slow, and each of the levers has a test of its own";
  struct Pair {
    const char* name;
    program::Layout layout;
    void (*set)(config::Settings&);
  };
  const std::array<Pair, 6> pairs{{
      {"sequence_parallel", layout_of(2, 1, 2), [](config::Settings& s) { s.sequence_parallel = true; }},
      {"interleaved, tied", layout_of(1, 2, 2),
       [](config::Settings& s) { s.pipeline_schedule = config::PipelineSchedule::interleaved; }},
      {"recompute", layout_of(1, 1, 2), [](config::Settings& s) { s.recompute = config::Recompute::full; }},
      {"overlap_optimizer", layout_of(1, 2, 2), [](config::Settings& s) { s.overlap_optimizer = true; }},
      {"no overlap_grad_reduce", layout_of(1, 2, 2),
       [](config::Settings& s) {
         s.overlap_optimizer = true;
         s.overlap_grad_reduce = false;
       }},
      {"no fusion", layout_of(2, 1, 2), [](config::Settings& s) { s.fusion = false; }},
  }};
  for (const Pair& pair : pairs) {
    config::Settings s = sharded_settings(pair.layout, Sharding::none);
    pair.set(s);
    const TrainedShards whole = train_shards(s, pair.layout);
    s.sharding = Sharding::optimizer;
    expect_same_training(train_shards(s, pair.layout), whole, pair.layout, pair.name);
  }
}

TEST(Sharding, GatheringBehindTheLayersTrainsAsGatheringBeforeThem) {
  const program::Layout layout = layout_of(1, test::emulated ? 1 : 2, 2);
  config::Settings s = sharded_settings(layout, Sharding::optimizer);
  s.overlap_optimizer = true;
  const TrainedShards before = train_shards(s, layout);
  s.overlap_param_gather = true;
  const TrainedShards behind = train_shards(s, layout);
  if (test::emulated) {
    EXPECT_NEAR(behind.losses.back() / before.losses.back(), 1, 1e-5);
    return;  // where embeddings' gradients add up in any order
  }
  EXPECT_EQ(behind.losses, before.losses);
  EXPECT_EQ(behind.weights, before.weights);
}

// Each number that travels is rounded to 8 bits: a relative error of 2^-9 at most, with either sign. Of sums over d
// replicas the ring rounds d - 1 times more. The bound is docs/method.md's.
TEST(GradReducePrecision, Bf16TrainsAlmostAsFp32Does) {
  for (const auto& [tp, pp, dp] : cells({{1, 2, 2}, {2, 1, 3}})) {
    const program::Layout layout = layout_of(tp, pp, dp);
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
      if (sharding == Sharding::parameters && (pp > 1 || test::emulated)) continue;
      for (const bool beside : {false, true}) {
        if (test::emulated && (beside || sharding == Sharding::none)) continue;
        config::Settings s = sharded_settings(layout, sharding);
        s.overlap_optimizer = beside;
        const TrainedShards full = train_shards(s, layout);
        s.grad_reduce_type = program::DType::bf16;
        const TrainedShards half = train_shards(s, layout);
        const std::string what = fmt::format("{}, sharding {}", program::text_of(layout), static_cast<int>(sharding));
        EXPECT_NEAR(half.losses[0] / full.losses[0], 1, test::emulated ? 1e-6 : 0) << what;
        EXPECT_NE(half.losses.back(), full.losses.back()) << what;
        EXPECT_NEAR(half.losses.back() / full.losses.back(), 1, 1e-3) << what;
        test::expect_equal(half.gradients, full.gradients, 5e-3, what);
        for (const auto& [name, values] : full.gradients) {
          EXPECT_GT(test::distance(half.gradients.at(name), values), 1e-4) << what << ", " << name;
        }
      }
    }
  }
}

// What a rank does not update itself is what the others made of it a step before, as its step began with.
TEST(Sharding, EveryReplicaGathersWhatTheOthersUpdated) {
  const program::Layout layout = layout_of(1, test::emulated ? 1 : 2, 2);
  const config::Settings s = sharded_settings(layout, Sharding::optimizer);
  LocalJob job(four_layers, s, layout);
  job.run(1);
  test::Gradients owned = test::gathered_gradients(job, four_layers, s, layout, 1e-6, "master");
  job.run(1);
  int compared = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const program::Coordinates at = layout.coordinates(rank);
    const auto list = gpt::parameters(four_layers, s, layout, at[program::Axis::pipeline]);
    const auto buckets = gpt::bucket_places(list, 2);
    for (const gpt::Parameter& p : list) {
      const std::vector<float>& before = owned.at(p.name);
      const auto now = job.read(rank, "master", p.view.offset, p.count());
      const gpt::OwnRange own = gpt::own_range(p, buckets, 2, at);
      const std::int64_t first = own.first - p.view.offset;
      std::int64_t stale = 0;
      for (std::int64_t i = 0; i < p.count(); ++i) {
        const bool updated_here = i >= first && i < first + own.count;
        if (!updated_here && now[i] != before[i]) ++stale;
      }
      EXPECT_EQ(stale, 0) << p.name << " on rank " << rank;
      compared += own.count < p.count() ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace harness
