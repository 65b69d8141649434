// Pipeline schedules as Programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "gpt_jobs.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/lower.h"
#include "program/saved.h"
#include "program/verify.h"

namespace harness::workloads {
namespace {

using config::PipelineSchedule;

const config::Model nine_layers{"m", 9, 64, 8, 256, 16};

program::ProgramSet scheduled(PipelineSchedule schedule, int tp, int pp, int dp, std::int64_t micro_batches,
                              int chunks = 0, const config::Model& of = nine_layers) {
  Job j = job(of, tp, pp, dp, micro_batches);
  j.settings.pipeline_schedule = schedule;
  j.settings.virtual_pipeline = chunks;
  j.settings.bucket_size_bytes = 32 << 10;
  EXPECT_EQ(workload_of(j.settings).why_impossible(j.model, j.settings), "");
  EXPECT_EQ(workload_of(j.settings).why_impossible_on(j.model, j.settings, j.layout), "");
  return build(j);
}

constexpr std::array all_schedules{PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe,
                                   PipelineSchedule::interleaved};

TEST(Pipelines, OfEveryScheduleVerifyByRoleAndByRankUpTo64Ranks) {
  for (const PipelineSchedule schedule : all_schedules) {
    for (const auto& [tp, pp, dp, m] :
         {std::array{1, 2, 1, 2}, std::array{1, 2, 1, 8}, std::array{1, 3, 1, 9}, std::array{2, 2, 2, 4},
          std::array{1, 4, 2, 8}, std::array{4, 4, 4, 12}, std::array{8, 4, 2, 4}}) {
      const auto set = scheduled(schedule, tp, pp, dp, m);
      EXPECT_EQ(texts(program::verify(set)), "");
      EXPECT_EQ(texts(program::verify(program::expand(set))), "");
      EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
    }
  }
  for (const int chunks : {3, 4}) {
    const auto set = scheduled(PipelineSchedule::interleaved, 1, 2, 2, 6, chunks);
    EXPECT_EQ(texts(program::verify(program::expand(set))), "");
  }
}

// An update must not come before the last pass that reads the weight or adds to its gradient, in whatever order.
TEST(Pipelines, OfEveryScheduleVerifyWithUpdatesBesideThem) {
  for (const PipelineSchedule schedule : all_schedules) {
    for (const auto& [tp, pp, dp] : {std::array{1, 2, 1}, std::array{1, 3, 2}, std::array{2, 4, 2}}) {
      Job j = job(nine_layers, tp, pp, dp, 12);
      j.settings.pipeline_schedule = schedule;
      j.settings.bucket_size_bytes = 8 << 10;
      j.settings.overlap_optimizer = true;
      EXPECT_EQ(texts(program::verify(program::expand(build(j)))), "");
    }
  }
}

// Two messages of one size between the same stages: which is which shows in the layer at the border.
TEST(Pipelines, WhoseChunksReceiveEachOthersInputsAreFound) {
  auto set = scheduled(PipelineSchedule::interleaved, 1, 2, 1, 2);
  std::vector<program::Operation*> received;
  for (program::Operation& op : set.roles[1].step) {
    if (std::holds_alternative<program::Receive>(op.action) && op.label.phase == program::Phase::forward)
      received.push_back(&op);
  }
  ASSERT_EQ(received.size(), 4u);
  EXPECT_NE(received[0]->label.layer, received[2]->label.layer);
  std::swap(received[1]->label, received[2]->label);
  EXPECT_NE(texts(program::verify(set)), "");
}

TEST(Pipelines, SendEveryBorderOfEveryChunkOnceInEachDirection) {
  const int m = 8, p = 4;
  const double bytes = 16 * 64 * 4;
  for (const PipelineSchedule schedule : all_schedules) {
    const int v = schedule == PipelineSchedule::interleaved ? 2 : 1;
    const auto set = scheduled(schedule, 1, p, 1, m);
    for (int stage = 0; stage < p; ++stage) {
      const program::Traffic up = traffic_of(set, stage, "pipeline+1", "send"),
                             down = traffic_of(set, stage, "pipeline-1", "send");
      EXPECT_EQ(up.messages, m * v - (stage == p - 1 ? m : 0));
      EXPECT_EQ(down.messages, m * v - (stage == 0 ? m : 0));
      EXPECT_DOUBLE_EQ(up.bytes, static_cast<double>(up.messages) * bytes);
      EXPECT_DOUBLE_EQ(down.bytes, static_cast<double>(down.messages) * bytes);
    }
  }
}

TEST(Pipelines, DoTheSameWorkWhateverTheirSchedule) {
  const auto flop = [](PipelineSchedule schedule) {
    return program::total_flop(scheduled(schedule, 1, 4, 1, 8)).model;
  };
  for (const PipelineSchedule schedule : all_schedules) EXPECT_DOUBLE_EQ(flop(schedule), flop(all_schedules[0]));
}

std::int64_t kept(const program::ProgramSet& set) {
  std::int64_t sum = 0;
  for (const program::Program& role : set.roles) {
    for (const auto& [pass, bytes] : program::saved_bytes(role)) sum += bytes;
  }
  return sum;
}

TEST(Pipelines, KeepTheSameOfEveryForwardPass) {
  const std::int64_t whole = kept(scheduled(PipelineSchedule::one_forward_one_backward, 1, 4, 1, 8));
  EXPECT_EQ(kept(scheduled(PipelineSchedule::gpipe, 1, 4, 1, 8)), whole);
  EXPECT_EQ(kept(scheduled(PipelineSchedule::interleaved, 1, 4, 1, 8)), whole);
}

std::int64_t peak(PipelineSchedule schedule, int stage, std::int64_t micro_batches,
                  const config::Model& of = nine_layers) {
  return program::plan_arena(scheduled(schedule, 1, 4, 1, micro_batches, 0, of).roles[stage]).transient_bytes;
}

TEST(Pipelines, NeedTheMemoryOfWhatIsInFlight) {
  using enum PipelineSchedule;
  const auto near = [](double ratio, double of) { EXPECT_NEAR(ratio / of, 1, 0.1); };
  for (int stage = 0; stage < 4; ++stage) {
    near(static_cast<double>(peak(gpipe, stage, 32)) / static_cast<double>(peak(gpipe, stage, 8)), 4);
    for (const PipelineSchedule schedule : {one_forward_one_backward, interleaved})
      EXPECT_LE(static_cast<double>(peak(schedule, stage, 32)),
                static_cast<double>(peak(schedule, stage, 8)) * 1.12);  // holes
  }
}

std::string refusal(PipelineSchedule schedule, int pp, std::int64_t micro_batches, int chunks = 0) {
  Job j = job(nine_layers, 1, pp, 1, micro_batches);
  j.settings.pipeline_schedule = schedule;
  j.settings.virtual_pipeline = chunks;
  const Workload& gpt = workload_of(j.settings);
  const std::string why = gpt.why_impossible(j.model, j.settings);
  return why.empty() ? gpt.why_impossible_on(j.model, j.settings, j.layout) : why;
}

TEST(Pipelines, ThatCannotBeInterleavedAreRefusedWithWhatWouldDo) {
  EXPECT_EQ(refusal(PipelineSchedule::interleaved, 4, 6),
            "pipeline_schedule interleaved takes micro-batches in groups of pipeline_parallel 4, which does not divide "
            "the 6 of a replica; nearest numbers: 4 or 8");
  EXPECT_EQ(
      refusal(PipelineSchedule::interleaved, 4, 8, 3),
      "pipeline_parallel 4 * virtual_pipeline 3 is more than layers 9: a chunk of a stage has at least one layer");
  EXPECT_EQ(refusal(PipelineSchedule::interleaved, 4, 8, 2), "");
  EXPECT_EQ(refusal(PipelineSchedule::gpipe, 4, 6), "");
}

}  // namespace
}  // namespace harness::workloads
