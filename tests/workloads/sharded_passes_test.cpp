// Gradients and weights that a rank keeps for no longer than a pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "program/arena.h"
#include "program/happens_before.h"
#include "program/lower.h"
#include "program/saved.h"
#include "sharded_job.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

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
    const auto within_step = [](const program::Operation& op, const program::Operation& /*awaited*/) {
      return op.label.phase != program::Phase::finish;
    };
    EXPECT_GE(needed_waits(build(j), 0, within_step), 30);
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

}  // namespace
}  // namespace harness::workloads
