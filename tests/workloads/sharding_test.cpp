// What the replicas divide among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/registry.h"
#include "gpt_jobs.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/happens_before.h"
#include "program/lower.h"
#include "program/saved.h"
#include "small_gpt.h"
#include "workloads/gpt/parameters.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

Job sharded(int tp, int pp, int dp, int micro_batches = 2) {
  Job j = job(small_gpt, tp, pp, dp, micro_batches, small_batch);
  j.settings.precision = config::Precision::bf16;
  j.settings.sharding = config::Sharding::optimizer;
  j.settings.bucket_size_bytes = 64 << 10;
  return j;
}

// Elements of the flat buffers of a stage, with what fills the buckets up; and without.
struct Elements {
  std::int64_t flat = 0, parameters = 0, buckets = 0;
};
Elements elements_of(const Job& j, int stage = 0) {
  const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
  const auto buckets = gpt::bucket_places(list, gpt::shards_of(j.settings, j.layout));
  Elements n{buckets.front().offset + buckets.front().count, 0, std::ssize(buckets)};
  for (const auto& p : list) n.parameters += p.count();
  return n;
}

// Of a bucket, by number: where layers are buckets, 0 is the final norm and 1 the last layer.
std::int64_t of_unit(const Job& j, int bucket) {
  const auto list = gpt::parameters(j.model, j.settings, j.layout, 0);
  return gpt::bucket_places(list, gpt::shards_of(j.settings, j.layout))[bucket].count;
}

program::Traffic traffic_of(const program::ProgramSet& set, int role, const std::string& group,
                            const std::string& kind) {
  const auto traffic = program::count(set, set.roles[role], set.roles[role].step).traffic;
  const auto it = traffic.find({group, kind});
  return it == traffic.end() ? program::Traffic{} : it->second;
}

std::int64_t bytes_of_model(const program::Program& p) {
  std::int64_t bytes = 0;
  for (const char* name : {"master", "weights", "moment1", "moment2", "gradient"}) {
    const auto found = std::ranges::find(p.buffers, name, &program::Buffer::name);
    if (found != p.buffers.end()) bytes += found->bytes();
  }
  return bytes;
}

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

// Stages 2 and 3: bf16 2 + 16 / d and 18 / d, fp32 4 + 12 / d and 16 / d; and of stage 3 the weights of the layers that
// are there, prefetch_layers + 1 of them.
TEST(Sharding, MemoryOfWhatIsKeptForNoLongerThanAPassEqualsClosedFormula) {
  for (const int dp : {2, 4}) {
    Job j = sharded(1, 1, dp);
    for (const auto& [precision, bytes] :
         {std::pair{config::Precision::bf16, 2}, std::pair{config::Precision::fp32, 4}}) {
      j.settings.precision = precision;
      j.settings.sharding = config::Sharding::gradients;
      const std::int64_t state = bytes == 2 ? 12 : 8;
      const std::int64_t flat = elements_of(j).flat;
      EXPECT_EQ(bytes_of_model(build(j).roles[0]), flat * bytes + flat * (4 + state) / dp);
      j.settings.sharding = config::Sharding::parameters;
      for (const int ahead : {0, 1, 2}) {
        j.settings.prefetch_layers = ahead;
        const program::Program p = build(j).roles[0];
        EXPECT_EQ(bytes_of_model(p), elements_of(j).flat * (bytes + 4 + state) / dp);
        std::int64_t room = 0;
        for (const auto& buffer : p.buffers) room += buffer.name == "layer_weights" ? buffer.bytes() : 0;
        EXPECT_EQ(room, (ahead + 1) * bytes * of_unit(j, 1));
      }
    }
  }
}

// Every micro-batch is reduced by itself. With stage 3 its passes gather all weights forward and backward, but backward
// neither the last layer nor what the head reads, which are there; and the table at both ends of a forward pass.
TEST(Sharding, TrafficOfEachMicroBatchEqualsClosedFormula) {
  for (const int m : {1, 3}) {
    for (const int tp : {1, 2}) {
      Job j = sharded(tp, 1, 2, m);
      j.settings.sharding = config::Sharding::gradients;
      Elements n = elements_of(j);
      auto set = build(j);
      EXPECT_EQ(traffic_of(set, 0, "data", "reduce_scatter").messages, m * n.buckets);
      EXPECT_EQ(traffic_of(set, 0, "data", "reduce_scatter").bytes, static_cast<double>(m * 4 * n.flat));
      EXPECT_EQ(traffic_of(set, 0, "gather", "all_gather").bytes, static_cast<double>(2 * n.flat));
      j.settings.sharding = config::Sharding::parameters;
      n = elements_of(j);
      EXPECT_EQ(n.buckets, 4 + 2);
      set = build(j);
      EXPECT_EQ(traffic_of(set, 0, "data", "reduce_scatter").messages, m * n.buckets);
      EXPECT_EQ(traffic_of(set, 0, "data", "reduce_scatter").bytes, static_cast<double>(m * 4 * n.flat));
      const auto gather = traffic_of(set, 0, "gather", "all_gather");
      EXPECT_EQ(gather.messages, m * (2 * n.buckets - 2));
      EXPECT_EQ(gather.bytes, static_cast<double>(m * 2 * (2 * n.flat - of_unit(j, 1) - of_unit(j, 0))));
    }
  }
}

// The product that follows a gathering in the list belongs to its layer where nothing is gathered ahead.
TEST(Sharding, LayersAreGatheredAheadOfTheirUse) {
  for (const int ahead : {0, 1, 3}) {
    Job j = sharded(1, 1, 2, 2);
    j.settings.sharding = config::Sharding::parameters;
    j.settings.prefetch_layers = ahead;
    const program::Program p = build(j).roles[0];
    const program::HappensBefore before(p.step, p.streams.size());
    int gathers = 0, hidden = 0;
    for (std::size_t i = 0; i < p.step.size(); ++i) {
      if (p.step[i].stream != gather_stream || p.step[i].label.layer < 0) continue;
      const auto next = std::find_if(p.step.begin() + static_cast<std::ptrdiff_t>(i), p.step.end(),
                                     [](const auto& op) { return std::holds_alternative<program::Matmul>(op.action); });
      ASSERT_NE(next, p.step.end());
      ++gathers;
      hidden += before.ordered(static_cast<program::OperationId>(i), gather_stream,
                               static_cast<program::OperationId>(next - p.step.begin()))
                    ? 0
                    : 1;
    }
    EXPECT_EQ(gathers, 2 * (2 * 4 - 1));
    // Ahead of a step's first layer is nothing, and one unit ahead of a micro-batch's first is the embedding.
    const std::array<int, 4> expected{0, gathers - 2, gathers - 1, gathers - 1};
    EXPECT_EQ(hidden, expected.at(static_cast<std::size_t>(ahead))) << ahead;
  }
}

// Layers take turns in their places: who reads a place finds the weights of its own layer there. With tensor
// parallelism a layer's last bias is added by the norm of the next.
TEST(Sharding, EachLayerReadsItsOwnWeights) {
  for (const int tp : {1, 2}) {
    for (const int ahead : {0, 1, 2}) {
      for (const auto recompute : {config::Recompute::none, config::Recompute::full}) {
        Job j = sharded(tp, 1, 2, 2);
        j.settings.sharding = config::Sharding::parameters;
        j.settings.prefetch_layers = ahead;
        j.settings.recompute = recompute;
        const program::Program p = build(j).roles[0];
        std::map<program::BufferId, int> layer_in;  // of a place, in the order of the list
        int reads = 0;
        for (const program::Operation& op : p.step) {
          program::visit_accesses(op.action, [&](program::Access access, const program::View& view) {
            if (p.buffer_of(view).name != "layer_weights") return;
            if (access == program::Access::write) {
              layer_in[view.buffer] = op.label.layer;
            } else {
              EXPECT_EQ(layer_in.at(view.buffer), op.label.layer) << program::title(op);
              ++reads;
            }
          });
        }
        EXPECT_GT(reads, 100);
      }
    }
  }
}

TEST(Sharding, OfGradientsAndParametersVerifies) {
  for (const auto sharding : {config::Sharding::gradients, config::Sharding::parameters}) {
    for (const bool overlap : {true, false}) {
      for (const int ahead : {0, 1, 3}) {
        for (const auto schedule :
             {config::PipelineSchedule::one_forward_one_backward, config::PipelineSchedule::gpipe}) {
          Job j = sharded(2, 1, 3, 3);
          j.model.hidden = 20;  // leaves gaps between the parameters
          j.settings.sharding = sharding;
          j.settings.prefetch_layers = ahead;
          j.settings.sequence_parallel = overlap;
          j.settings.recompute = overlap ? config::Recompute::full : config::Recompute::none;
          j.settings.overlap_optimizer = overlap;
          j.settings.overlap_grad_reduce = overlap;
          j.settings.overlap_param_gather = overlap;
          j.settings.pipeline_schedule = schedule;
          j.settings.grad_reduce_type = ahead == 3 ? program::DType::bf16 : program::DType::f32;
          const auto set = build(j);
          EXPECT_EQ(texts(program::verify(set)), "");
          EXPECT_EQ(texts(program::verify(program::expand(set))), "");
          EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
        }
      }
    }
  }
}

TEST(Sharding, OfGradientsAndParametersIsRefusedWithoutAnyOneOfItsWaits) {
  for (const auto sharding : {config::Sharding::gradients, config::Sharding::parameters}) {
    Job j = sharded(1, 1, 2, 2);
    j.settings.sharding = sharding;
    j.settings.overlap_param_gather = true;
    const auto sound = build(j);
    const auto& step = sound.roles[0].step;
    int waits = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step[i].label.phase == program::Phase::finish) continue;
      for (const program::OperationId dropped : step[i].waits) {
        auto set = sound;
        std::erase(set.roles[0].step[i].waits, dropped);
        EXPECT_THAT(texts(program::verify(set)), HasSubstr("a wait is missing"))
            << program::title(step[i]) << " without " << program::title(step[dropped]);
        ++waits;
      }
    }
    EXPECT_GE(waits, 30);
  }
}

// Of the gradients of a pass there are at once: those of the table from the head to the embedding, of the layer that
// runs and of what is under way, with what arrives of it.
TEST(Sharding, GradientsOfAPassTakeTurnsInTheirMemory) {
  for (const auto sharding : {config::Sharding::gradients, config::Sharding::parameters}) {
    for (const bool beside : {false, true}) {
      Job j = sharded(1, 1, 2, 2);
      j.model.layers = 16;
      j.settings.overlap_optimizer = beside;
      const auto transient = [&] { return program::plan_arena(build(j).roles[0]).transient_bytes; };
      j.settings.sharding = config::Sharding::none;
      const std::int64_t without = transient();
      j.settings.sharding = sharding;
      const auto list = gpt::parameters(j.model, j.settings, j.layout, 0);
      std::int64_t layer = 0, ends = 0;
      for (const auto& p : list) (p.id.layer == 3 ? layer : ends) += p.id.layer == 3 || p.id.layer < 0 ? p.count() : 0;
      EXPECT_LT(transient() - without, 4 * (ends + 5 * layer)) << static_cast<int>(sharding) << beside;
    }
  }
}

// Gathered weights are no activations.
TEST(Sharding, KeepsNoMoreOfAForwardPassThanWithout) {
  Job j = sharded(1, 1, 2, 2);
  const auto saved = program::saved_bytes(build(j).roles[0]);
  j.settings.sharding = config::Sharding::parameters;
  EXPECT_EQ(program::saved_bytes(build(j).roles[0]), saved);
}

TEST(Sharding, WhatIsReducedByMicroBatchIsRefusedInAPipeline) {
  for (const auto sharding : {config::Sharding::gradients, config::Sharding::parameters}) {
    Job j = sharded(1, 2, 2);
    j.settings.sharding = sharding;
    EXPECT_THAT(gpt_workload().why_impossible_on(j.model, j.settings, j.layout),
                HasSubstr("and pipeline_parallel 2 do not go together"));
    j = sharded(1, 2, 1);
    j.settings.sharding = sharding;
    EXPECT_EQ(gpt_workload().why_impossible_on(j.model, j.settings, j.layout), "");
    j = sharded(1, 1, 2);
    j.settings.sharding = sharding;
    EXPECT_EQ(gpt_workload().why_impossible_on(j.model, j.settings, j.layout), "");
  }
  Job j = sharded(1, 1, 2);
  j.settings.sharding = config::Sharding::parameters;
  j.settings.prefetch_layers = 4;
  EXPECT_THAT(gpt_workload().why_impossible_on(j.model, j.settings, j.layout),
              HasSubstr("prefetch_layers 4 is more than the 3 other layers"));
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
  const auto sound = build(j);
  for (std::size_t r = 0; r < sound.roles.size(); ++r) {
    const auto& step = sound.roles[r].step;
    int waits = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      for (const program::OperationId awaited : step[i].waits) {
        if (step[awaited].stream != gather_stream || step[i].label.phase == program::Phase::finish) continue;
        auto set = sound;
        std::erase(set.roles[r].step[i].waits, awaited);
        EXPECT_THAT(texts(program::verify(set)), HasSubstr("a wait is missing")) << program::title(step[i]);
        ++waits;
      }
    }
    EXPECT_GE(waits, 3);  // as many as buckets, but for those whose layers begin together
  }
}

TEST(Sharding, GatheringAheadNeedsSomethingToGather) {
  config::Settings s;
  s.overlap_param_gather = true;
  const auto* row = config::find_variable("overlap_param_gather");
  EXPECT_THAT(row->conflict(s), HasSubstr("overlap_param_gather needs weights that replicas gather"));
  s.sharding = config::Sharding::optimizer;
  EXPECT_EQ(row->conflict(s), "");
}

// Half the bytes; what is exchanged within a replica stays what it is.
TEST(GradReducePrecision, HalvesWhatReplicasSend) {
  for (const auto sharding : {config::Sharding::none, config::Sharding::optimizer}) {
    const bool whole = sharding == config::Sharding::none;
    const char* kind = whole ? "all_reduce" : "reduce_scatter";
    Job j = sharded(2, 2, 2);
    j.settings.sharding = sharding;
    j.settings.sequence_parallel = true;
    const program::ProgramSet full = build(j);
    j.settings.grad_reduce_type = program::DType::bf16;
    const program::ProgramSet half = build(j);
    for (int stage = 0; stage < 2; ++stage) {
      EXPECT_EQ(traffic_of(half, stage, "data", kind).messages, traffic_of(full, stage, "data", kind).messages);
      EXPECT_EQ(traffic_of(half, stage, "data", kind).bytes, traffic_of(full, stage, "data", kind).bytes / 2);
      EXPECT_EQ(traffic_of(half, stage, "data", kind).bytes, static_cast<double>(2 * elements_of(j, stage).flat));
      for (const char* group : {"tensor", "embedding"}) {
        EXPECT_EQ(traffic_of(half, stage, group, "all_reduce").bytes,
                  traffic_of(full, stage, group, "all_reduce").bytes);
      }
    }
  }
}

TEST(GradReducePrecision, VerifiesAndIsRefusedWithoutAnyOneOfItsWaits) {
  for (const auto sharding : {config::Sharding::none, config::Sharding::optimizer}) {
    for (const bool beside : {false, true}) {
      for (const bool overlap : {false, true}) {
        Job j = sharded(1, 2, 2);
        j.settings.sharding = sharding;
        j.settings.overlap_optimizer = beside;
        j.settings.overlap_grad_reduce = overlap;
        j.settings.grad_reduce_type = program::DType::bf16;
        const auto sound = build(j);
        EXPECT_EQ(texts(program::verify(sound)), "");
        EXPECT_EQ(texts(program::verify(program::expand(sound))), "");
        int waits = 0;
        for (std::size_t i = 0; i < sound.roles[0].step.size(); ++i) {
          const program::Operation& op = sound.roles[0].step[i];
          if (!std::holds_alternative<program::Convert>(op.action)) continue;
          for (const program::OperationId dropped : op.waits) {
            auto set = sound;
            std::erase(set.roles[0].step[i].waits, dropped);
            EXPECT_THAT(texts(program::verify(set)), HasSubstr("a wait is missing")) << program::title(op);
            ++waits;
          }
        }
        EXPECT_GE(waits, 2);
      }
    }
  }
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
  const auto sound = build(j);
  for (std::size_t r = 0; r < sound.roles.size(); ++r) {
    int waits = 0;
    for (std::size_t i = 0; i < sound.roles[r].step.size(); ++i) {
      const program::Operation& op = sound.roles[r].step[i];
      const bool own = std::holds_alternative<program::AdamW>(op.action) ||
                       std::holds_alternative<program::ReduceScatter>(op.action);
      if (!own) continue;
      for (const program::OperationId dropped : op.waits) {
        auto set = sound;
        std::erase(set.roles[r].step[i].waits, dropped);
        EXPECT_THAT(texts(program::verify(set)), HasSubstr("a wait is missing")) << program::title(op);
        ++waits;
      }
    }
    EXPECT_GE(waits, 8);
  }
}

}  // namespace
}  // namespace harness::workloads
