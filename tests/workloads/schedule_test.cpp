#include "workloads/gpt/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "workloads/gpt/schedule_text.h"

namespace harness::gpt {
namespace {

using ::testing::HasSubstr;
using Kind = Pass::Kind;

// "F0 F1 B0 …"; with split backward passes I0 and W0; of several chunks F0a F0b.
std::string text(const Passes& passes, int chunks = 1) {
  std::string all;
  for (const Pass& pass : passes) {
    if (!all.empty()) all += ' ';
    all += "FBIW"[static_cast<int>(pass.kind)] + std::to_string(pass.micro_batch);
    if (chunks > 1) all += static_cast<char>('a' + pass.chunk);
  }
  return all;
}

TEST(OneForwardOneBackward, RunsAheadByTheStagesBehind) {
  const Pipeline of{3, 1, 4};
  EXPECT_EQ(text(one_forward_one_backward(of, 0)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(one_forward_one_backward(of, 1)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(one_forward_one_backward(of, 2)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(OneForwardOneBackward, OfOneStageAccumulatesGradients) {
  EXPECT_EQ(text(one_forward_one_backward({1, 1, 3}, 0)), "F0 B0 F1 B1 F2 B2");
}

TEST(OneForwardOneBackward, WithFewerMicroBatchesThanStagesAllGoForwardFirst) {
  EXPECT_EQ(text(one_forward_one_backward({4, 1, 2}, 0)), "F0 F1 B0 B1");
}

TEST(GPipe, GoesForwardWithEverythingFirst) {
  for (int stage = 0; stage < 2; ++stage) EXPECT_EQ(text(gpipe({2, 1, 3}, stage)), "F0 F1 F2 B0 B1 B2");
}

// As figure 4 of Narayanan et al. 2021 has it, below: four stages of two chunks, eight micro-batches.
TEST(Interleaved, TakesAsManyMicroBatchesAsStagesThroughOneChunkAfterTheOther) {
  EXPECT_EQ(text(interleaved({2, 2, 2}, 0), 2), "F0a F1a F0b F1b B0b B1b B0a B1a");
  EXPECT_EQ(text(interleaved({2, 2, 2}, 1), 2), "F0a F1a F0b B0b F1b B1b B0a B1a");
  EXPECT_EQ(text(interleaved({4, 2, 8}, 3), 2),
            "F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b F4a B0a F5a B1a F6a B2a F7a B3a F4b B4b F5b B5b F6b B6b "
            "F7b B7b B4a B5a B6a B7a");
  EXPECT_THAT(text(interleaved({4, 2, 8}, 0), 2),
              HasSubstr("F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b F4b B2b"));
}

TEST(ZeroBubbleH1, PutsTheGradientsOfWeightsOffByTheNumberOfTheStage) {
  const Pipeline of{3, 1, 4};
  EXPECT_EQ(text(zero_bubble_h1(of, 0)), "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  EXPECT_EQ(text(zero_bubble_h1(of, 1)), "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  EXPECT_EQ(text(zero_bubble_h1(of, 2)), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  EXPECT_EQ(text(zero_bubble_h1({4, 1, 2}, 3)), "F0 I0 F1 I1 W0 W1");
}

constexpr config::PipelineSchedule all_schedules[] = {
    config::PipelineSchedule::one_forward_one_backward, config::PipelineSchedule::gpipe,
    config::PipelineSchedule::interleaved, config::PipelineSchedule::zero_bubble_h1};

// Of every schedule, on every pipeline that it has up to these sizes.
template <class Visit>
void each_schedule(int most_stages, int most_chunks, const Visit& visit) {
  for (const auto schedule : all_schedules) {
    const bool has_chunks = schedule == config::PipelineSchedule::interleaved;
    for (int stages = 2; stages <= most_stages; ++stages) {
      for (int chunks = has_chunks ? 2 : 1; chunks <= (has_chunks ? most_chunks : 1); ++chunks) {
        for (const int micro_batches : {1, 2, stages - 1, stages, 2 * stages, 3 * stages, 5 * stages + 1}) {
          if (has_chunks && micro_batches % stages != 0) continue;
          SCOPED_TRACE(
              fmt::format("schedule {}, p {}, v {}, m {}", static_cast<int>(schedule), stages, chunks, micro_batches));
          visit(schedule, Pipeline{stages, chunks, micro_batches});
        }
      }
    }
  }
}

int end_of(const std::vector<std::vector<TimedPass>>& timed) {
  int end = 0;
  for (const auto& stage : timed) end = std::max(end, stage.back().end);
  return end;
}

TEST(Schedules, RunEveryPassOfEveryMicroBatchOnceAndMarkTheEndsOfEachKind) {
  each_schedule(5, 3, [](config::PipelineSchedule schedule, const Pipeline& of) {
    for (int stage = 0; stage < of.stages; ++stage) {
      std::vector<std::pair<Kind, std::pair<int, int>>> seen;
      for (const Pass& pass : schedule_of(schedule).passes(of, stage)) {
        seen.push_back({pass.kind, {pass.chunk, pass.micro_batch}});
        const bool forward = pass.kind == Kind::forward;
        EXPECT_EQ(pass.first, !forward && pass.micro_batch == 0);
        EXPECT_EQ(pass.last, !forward && pass.micro_batch == of.micro_batches - 1);
      }
      const std::size_t kinds = schedule == config::PipelineSchedule::zero_bubble_h1 ? 3 : 2;
      EXPECT_EQ(seen.size(), kinds * of.chunks * of.micro_batches);
      std::ranges::sort(seen);
      EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end());
    }
  });
}

TEST(Schedules, HaveTheBubbleOfTheirFormula) {
  each_schedule(8, 3, [](config::PipelineSchedule schedule, const Pipeline& of) {
    // With fewer micro-batches than stages there are not enough gradients of weights to fill the bubble with.
    const bool fills_up = schedule != config::PipelineSchedule::zero_bubble_h1 || of.micro_batches >= of.stages;
    if (!fills_up) return;
    const int work = of.micro_batches * of.chunks * 3;
    EXPECT_EQ(end_of(timetable(schedule, of)) - work, schedule_of(schedule).bubble(of));
  });
  // As shares of the work: (p - 1) / m, divided by v, and a third of it.
  const auto bubble = [](config::PipelineSchedule schedule, int chunks) {
    return schedule_of(schedule).bubble({4, chunks, 8});
  };
  EXPECT_EQ(bubble(config::PipelineSchedule::one_forward_one_backward, 1), 9);
  EXPECT_EQ(bubble(config::PipelineSchedule::gpipe, 1), 9);
  EXPECT_EQ(bubble(config::PipelineSchedule::interleaved, 3), 9);  // of passes a third as long
  EXPECT_EQ(bubble(config::PipelineSchedule::zero_bubble_h1, 1), 3);
}

// Forward passes whose last gradients are not there yet.
int in_flight(const Passes& passes, Kind ends) {
  int now = 0, most = 0;
  for (const Pass& pass : passes) {
    if (pass.kind == Kind::forward) most = std::max(most, ++now);
    if (pass.kind == ends) --now;
  }
  return most;
}

TEST(Schedules, KeepAsManyPassesInFlightAsTheyPromise) {
  for (int p = 2; p <= 8; ++p) {
    const int m = 3 * p;
    for (int s = 0; s < p; ++s) {
      EXPECT_EQ(in_flight(one_forward_one_backward({p, 1, m}, s), Kind::backward), p - s);
      EXPECT_EQ(in_flight(gpipe({p, 1, m}, s), Kind::backward), m);
      EXPECT_EQ(in_flight(zero_bubble_h1({p, 1, m}, s), Kind::backward_weight), p);
      for (int v = 2; v <= 3; ++v) {
        EXPECT_EQ(in_flight(interleaved({p, v, m}, s), Kind::backward), 2 * (p - s - 1) + (v - 1) * p + 1);
      }
    }
  }
}

// What Messages (gpt.cpp) rests on: of two stages, neither sends the other two messages at one tick, and an input is
// there before its pass begins.
TEST(Schedules, EndOnePassOfAStageInATickAndNoInputComesLate) {
  each_schedule(8, 3, [](config::PipelineSchedule schedule, const Pipeline& of) {
    for (const auto& stage : timetable(schedule, of)) {
      for (std::size_t i = 0; i < stage.size(); ++i) {
        EXPECT_LE(stage[i].arrives, stage[i].begin);
        if (i > 0) {
          EXPECT_LT(stage[i - 1].end, stage[i].end);
        }
      }
    }
  });
}

TEST(Drawing, HasALineOfEachStageAndTheBubble) {
  EXPECT_EQ(
      draw(config::PipelineSchedule::one_forward_one_backward, {2, 1, 2}),
      "stage 0  F0 F1 .  .  B0--- .  B1---\n"
      "stage 1  .  F0 B0--- F1 B1--- .  .\n"
      "bubble: each stage has nothing to do for 3 of 9 ticks, 33.3 % of the step; (p - 1)(F + B + W), p = 2, with "
      "F = B = W = 1 tick\n");
  EXPECT_THAT(draw(config::PipelineSchedule::zero_bubble_h1, {2, 1, 2}), HasSubstr("stage 1  .  F0 I0 F1 I1 W0 W1\n"));
  EXPECT_THAT(draw(config::PipelineSchedule::interleaved, {2, 2, 2}),
              HasSubstr("(p - 1)(F + B + W) / v, p = 2, v = 2, with passes of a stage F = B = W = 2 ticks"));
  EXPECT_THAT(draw(config::PipelineSchedule::zero_bubble_h1, {4, 1, 2}), HasSubstr("it takes p micro-batches"));
}

TEST(Drawing, OfALongStepGoesOnBelowAndLeavesOutItsMiddle) {
  const std::string text = draw(config::PipelineSchedule::gpipe, {2, 1, 100}, 60);
  EXPECT_THAT(text, HasSubstr("\n\n(and so on)\n\n"));
  EXPECT_THAT(text, HasSubstr("B99--"));
  std::istringstream lines(text.substr(0, text.find("bubble")));
  int stages = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 60u);
    stages += line.starts_with("stage 0") ? 1 : 0;
  }
  EXPECT_EQ(stages, 4);
}

TEST(Timetable, RefusesPassesThatWaitForNoneThatComes) {
  std::vector<Passes> passes{gpipe({2, 1, 2}, 0), gpipe({2, 1, 2}, 1)};
  std::swap(passes[0].front(), passes[0].back());
  EXPECT_THROW(timetable(passes), Error);
}

}  // namespace
}  // namespace harness::gpt
