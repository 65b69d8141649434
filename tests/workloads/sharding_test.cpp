// What the replicas divide among them, and that of the state of the optimizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "config/registry.h"
#include "program/happens_before.h"
#include "program/lower.h"
#include "sharded_job.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

TEST(Sharding, BucketsAreEqualPartsThatBeginWhereAVectorLoadMay) {
  for (const int dp : {2, 3, 8}) {
    for (const int stage : {0, 1}) {
      for (const std::int64_t bytes : {1024, 64 << 10, 1 << 30}) {
        Job j = sharded(2, 2, dp);
        j.model.hidden = 20;  // leaves gaps between the parameters
        j.settings.bucket_size_bytes = bytes;
        const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
        const auto buckets = gpt::bucket_places(list, dp);
        std::int64_t end = 0;
        for (std::size_t i = buckets.size(); i-- > 0;) {
          EXPECT_EQ(buckets[i].offset, end);
          EXPECT_EQ(buckets[i].count % (32 * dp), 0);
          end = buckets[i].offset + buckets[i].count;
        }
        for (const auto& p : list) {
          EXPECT_GE(p.view.offset, buckets[p.bucket].offset) << p.name;
          EXPECT_LE(p.view.offset + p.view.count, buckets[p.bucket].offset + buckets[p.bucket].count) << p.name;
        }
      }
    }
  }
}

// Both stages cut it alike, so that a rank and its partner have the same part.
TEST(Sharding, ATiedTableIsABucket) {
  std::int64_t count = 0;
  for (const int stage : {0, 1}) {
    const Job j = sharded(2, 2, 3);
    const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
    const auto table = std::ranges::find(list, gpt::ParameterId{gpt::word_embeddings}, &gpt::Parameter::id);
    EXPECT_EQ(std::ranges::count(list, table->bucket, &gpt::Parameter::bucket), 1);
    const program::View bucket = gpt::bucket_places(list, 3)[table->bucket];
    EXPECT_EQ(bucket.offset, table->view.offset);
    if (stage == 0) count = bucket.count;
    EXPECT_EQ(bucket.count, count);
  }
}

// ZeRO (Rajbhandari et al. 2020), stage 1. Bytes per parameter: bf16 2 of the weight, 4 of the gradient, 12 / d of
// master weight and moments; fp32 4 + 4 + 8 / d, where the weight is its own master.
TEST(Sharding, MemoryEqualsClosedFormula) {
  for (const int dp : {2, 4}) {
    Job j = sharded(1, 1, dp);
    const Elements n = elements_of(j);
    EXPECT_LT(n.flat - n.parameters, n.buckets * 32 * dp);  // the parameters themselves leave no gaps
    EXPECT_EQ(bytes_of_model(build(j).roles[0]), n.flat * 6 + n.flat * 12 / dp);
    j.settings.precision = config::Precision::fp32;
    EXPECT_EQ(bytes_of_model(build(j).roles[0]), n.flat * 8 + n.flat * 8 / dp);
  }
}

// Once per step: a reduce-scatter of the f32 gradients and an all-gather of the weights in their own type, a message
// for each bucket; and of the tied table the own part between the stages.
TEST(Sharding, TrafficEqualsClosedFormula) {
  for (const int dp : {2, 4}) {
    for (const auto& [tp, pp] : {std::array{1, 1}, std::array{2, 1}, std::array{1, 2}, std::array{2, 2}}) {
      for (const auto& [precision, bytes] :
           {std::pair{config::Precision::bf16, 2}, std::pair{config::Precision::fp32, 4}}) {
        Job j = sharded(tp, pp, dp);
        j.settings.precision = precision;
        const auto set = build(j);
        for (int stage = 0; stage < pp; ++stage) {
          const Elements n = elements_of(j, stage);
          const auto scatter = traffic_of(set, stage, "data", "reduce_scatter"),
                     gather = traffic_of(set, stage, "gather", "all_gather"),
                     tied = traffic_of(set, stage, "embedding", "all_reduce");
          EXPECT_GT(n.buckets, 2);
          EXPECT_EQ(scatter.messages, n.buckets);
          EXPECT_EQ(scatter.bytes, static_cast<double>(4 * n.flat));
          EXPECT_EQ(gather.messages, n.buckets);
          EXPECT_EQ(gather.bytes, static_cast<double>(bytes * n.flat));
          EXPECT_EQ(traffic_of(set, stage, "data", "all_reduce").messages, 0);
          EXPECT_EQ(tied.messages, pp > 1 ? 1 : 0);
          EXPECT_EQ(tied.bytes, pp > 1 ? 4.0 * 256 * 64 / (tp * dp) : 0);
        }
      }
    }
  }
}

TEST(Sharding, EveryBucketIsUpdatedOnceInItsOwnPart) {
  for (const bool beside : {false, true}) {
    Job j = sharded(1, 2, 4);
    j.settings.overlap_optimizer = beside;
    const auto set = build(j);
    for (int stage = 0; stage < 2; ++stage) {
      const Elements n = elements_of(j, stage);
      std::map<std::int64_t, std::int64_t> moments;
      for (const program::Operation& op : set.roles[stage].step) {
        const auto* update = std::get_if<program::AdamW>(&op.action);
        if (update == nullptr) continue;
        EXPECT_EQ(op.stream, beside ? optimizer_stream : compute_stream);
        EXPECT_EQ(update->gradient.parts, 4);
        EXPECT_EQ(update->weights.parts, 4);
        EXPECT_EQ(update->gradient.offset, 4 * update->moment1.offset);
        EXPECT_EQ(update->weights.offset, update->gradient.offset);
        EXPECT_EQ(update->master.offset, update->moment2.offset);
        EXPECT_TRUE(moments.emplace(update->moment1.offset, update->moment1.count).second);
      }
      std::int64_t covered = 0;
      for (const auto& [first, count] : moments) {
        EXPECT_EQ(first, covered);
        covered += count;
      }
      EXPECT_EQ(covered, n.flat / 4);
    }
  }
}

std::string without_waits(const program::Program& p, program::Operation op) {
  op.waits.clear();
  return program::describe(p, op);
}

// Off, everything waits for the last of them; on, each layer for its own.
TEST(Sharding, OverlappedGatheringIsADifferenceOfWaitsAlone) {
  Job j = sharded(2, 2, 2);
  const program::ProgramSet before = build(j);
  j.settings.overlap_param_gather = true;
  const program::ProgramSet behind = build(j);
  for (std::size_t r = 0; r < before.roles.size(); ++r) {
    const program::Program &off = before.roles[r], &on = behind.roles[r];
    ASSERT_EQ(off.step.size(), on.step.size());
    const program::HappensBefore order_off(off.step, off.streams.size()), order_on(on.step, on.streams.size());
    int waited_for = 0, not_waited_for = 0;
    program::OperationId first_product = -1;
    for (std::size_t i = 0; i < off.step.size(); ++i) {
      EXPECT_EQ(without_waits(off, off.step[i]), without_waits(on, on.step[i]));
      const bool product = std::holds_alternative<program::Matmul>(off.step[i].action);
      if (product && first_product < 0) first_product = static_cast<program::OperationId>(i);
    }
    for (std::size_t i = 0; i < off.step.size(); ++i) {
      if (!std::holds_alternative<program::AllGather>(off.step[i].action) || off.step[i].stream != gather_stream)
        continue;
      const auto gather = static_cast<program::OperationId>(i);
      EXPECT_TRUE(order_off.ordered(gather, gather_stream, first_product));
      ++(order_on.ordered(gather, gather_stream, first_product) ? waited_for : not_waited_for);
    }
    EXPECT_GE(waited_for, 1);
    EXPECT_GE(not_waited_for, 2);
  }
}

TEST(Sharding, NoWeightIsReadBeforeItIsGathered) {
  Job j = sharded(1, 2, 2);
  j.settings.overlap_param_gather = true;
  const auto of_gathering = [](const program::Operation& op, const program::Operation& awaited) {
    return awaited.stream == gather_stream && op.label.phase != program::Phase::finish;
  };
  // As many as buckets, but for those whose layers begin together.
  for (const int stage : {0, 1}) EXPECT_GE(needed_waits(build(j), stage, of_gathering), 3);
}

TEST(Sharding, GatheringAheadNeedsSomethingToGather) {
  config::Settings s;
  s.overlap_param_gather = true;
  const auto* row = config::find_variable("overlap_param_gather");
  EXPECT_THAT(row->conflict(s), HasSubstr("overlap_param_gather needs weights that replicas gather"));
  s.sharding = config::Sharding::optimizer;
  EXPECT_EQ(row->conflict(s), "");
}

TEST(Sharding, OnOneReplicaTheProgramIsTheSame) {
  Job j = sharded(2, 2, 1);
  const auto with = program::hash(build(j));
  j.settings.sharding = config::Sharding::none;
  EXPECT_EQ(program::hash(build(j)), with);
}

TEST(Sharding, VerifiesByRoleAndByRank) {
  for (const auto& [tp, pp, dp] :
       {std::array{1, 1, 2}, std::array{2, 1, 3}, std::array{2, 2, 2}, std::array{1, 4, 4}}) {
    for (const bool overlap : {true, false}) {
      Job j = sharded(tp, pp, dp, 4);
      j.settings.sequence_parallel = true;
      j.settings.overlap_optimizer = overlap;
      j.settings.overlap_grad_reduce = overlap;
      const auto set = build(j);
      EXPECT_EQ(texts(program::verify(set)), "");
      EXPECT_EQ(texts(program::verify(program::expand(set))), "");
      EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
    }
  }
}

TEST(Sharding, IsRefusedWithoutAnyOneOfItsWaits) {
  Job j = sharded(1, 2, 2);
  j.settings.overlap_optimizer = true;
  const auto own = [](const program::Operation& op, const program::Operation& /*awaited*/) {
    return std::holds_alternative<program::AdamW>(op.action) ||
           std::holds_alternative<program::ReduceScatter>(op.action);
  };
  for (const int stage : {0, 1}) EXPECT_GE(needed_waits(build(j), stage, own), 8);
}

}  // namespace
}  // namespace harness::workloads
