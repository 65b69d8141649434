#include "workloads/gpt/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace harness::gpt {
namespace {

using ::testing::StartsWith;

// Returns "F0 F1 B0 …"; with several chunks "F0a F0b …".
std::string text(const Passes& passes, int chunks = 1) {
  std::string all;
  for (const Pass& pass : passes) {
    if (!all.empty()) all += ' ';
    all += (pass.forward() ? "F" : "B") + std::to_string(pass.micro_batch);
    if (chunks > 1) all += static_cast<char>('a' + pass.chunk);
  }
  return all;
}

using enum config::PipelineSchedule;

// Expects that the passes of each stage begin with order[stage].
void expect_order(config::PipelineSchedule schedule, const Pipeline& of, const std::vector<std::string>& order) {
  for (int stage = 0; stage < std::ssize(order); ++stage)
    EXPECT_THAT(text(passes_of(schedule, of, stage), of.chunks), StartsWith(order[stage])) << "stage " << stage;
}

TEST(Schedules, HaveTheOrderOfTheirPublications) {
  expect_order(one_forward_one_backward, {3, 1, 4},
               {"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"});
  expect_order(one_forward_one_backward, {1, 1, 3}, {"F0 B0 F1 B1 F2 B2"});  // gradient accumulation
  expect_order(one_forward_one_backward, {4, 1, 2}, {"F0 F1 B0 B1"});
  expect_order(gpipe, {2, 1, 3}, {"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"});
  expect_order(interleaved, {2, 2, 2}, {"F0a F1a F0b F1b B0b B1b B0a B1a", "F0a F1a F0b B0b F1b B1b B0a B1a"});
  // Figure 4 of Narayanan et al. 2021: four stages of two chunks, eight micro-batches.
  expect_order(interleaved, {4, 2, 8}, {"F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b F4b B2b"});
  EXPECT_EQ(text(passes_of(interleaved, {4, 2, 8}, 3), 2),
            "F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b F4a B0a F5a B1a F6a B2a F7a B3a F4b B4b F5b B5b F6b B6b "
            "F7b B7b B4a B5a B6a B7a");
}

// Visits every schedule on every pipeline that it supports up to these sizes.
template <class Visit>
void each_schedule(int most_stages, int most_chunks, const Visit& visit) {
  for (const auto schedule : {one_forward_one_backward, gpipe, interleaved}) {
    const bool has_chunks = schedule == interleaved;
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

TEST(Schedules, RunEveryPassOfEveryMicroBatchOnceAndMarkTheEndsOfEachKind) {
  each_schedule(5, 3, [](config::PipelineSchedule schedule, const Pipeline& of) {
    for (int stage = 0; stage < of.stages; ++stage) {
      Passes passes = passes_of(schedule, of, stage);
      for (const Pass& pass : passes) {
        EXPECT_EQ(pass.first, !pass.forward() && pass.micro_batch == 0);
        EXPECT_EQ(pass.last, !pass.forward() && pass.micro_batch == of.micro_batches - 1);
      }
      EXPECT_EQ(passes.size(), std::size_t{2} * of.chunks * of.micro_batches);
      std::ranges::sort(passes);
      EXPECT_TRUE(std::ranges::adjacent_find(passes) == passes.end());
    }
  });
}

// (p - 1)(F + B + W) for every schedule; with v chunks, passes are v times shorter than those of whole stages.
TEST(Schedules, HaveTheBubbleOfTheirFormula) {
  constexpr int forward_and_backward = 3;
  each_schedule(8, 3, [](config::PipelineSchedule schedule, const Pipeline& of) {
    int end = 0;
    for (const auto& passes : timetable(schedule, of)) end = std::max(end, passes.back().end);
    EXPECT_EQ(end, (of.micro_batches * of.chunks + of.stages - 1) * forward_and_backward);
  });
}

// Returns the largest number of forward passes that wait for their backward pass.
int in_flight(const Passes& passes) {
  int now = 0, most = 0;
  for (const Pass& pass : passes) {
    now += pass.forward() ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

TEST(Schedules, KeepAsManyPassesInFlightAsTheyPromise) {
  for (int p = 2; p <= 8; ++p) {
    const int m = 3 * p;
    for (int s = 0; s < p; ++s) {
      EXPECT_EQ(in_flight(passes_of(one_forward_one_backward, {p, 1, m}, s)), p - s);
      EXPECT_EQ(in_flight(passes_of(gpipe, {p, 1, m}, s)), m);
      for (int v = 2; v <= 3; ++v) {
        EXPECT_EQ(in_flight(passes_of(interleaved, {p, v, m}, s)), 2 * (p - s - 1) + (v - 1) * p + 1);
      }
    }
  }
}

// Messages (gpt.cpp) relies on this: no stage sends another one two messages in one tick, and an input arrives before
// its pass begins.
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

TEST(Timetable, RefusesPassesThatWaitForNoneThatComes) {
  std::vector<Passes> passes{passes_of(gpipe, {2, 1, 2}, 0), passes_of(gpipe, {2, 1, 2}, 1)};
  std::swap(passes[0].front(), passes[0].back());
  EXPECT_THROW(timetable({2, 1, 2}, passes), Error);
}

// Returns "0-1 4-5": the layers of each chunk, with [ and ] at the ends of the model.
std::string layers_of(int layers, int stages, int stage, int chunks, bool embedding_as_layer = false) {
  config::Model model;
  model.layers = layers;
  std::string all;
  config::Settings settings;
  settings.embedding_as_layer = embedding_as_layer;
  settings.virtual_pipeline = chunks;
  for (const Chunk& c : chunks_of(model, settings, {{program::Axis::pipeline, stages}}, stage)) {
    if (!all.empty()) all += ' ';
    if (c.first) all += '[';
    all += std::to_string(c.first_layer) + '-' + std::to_string(c.end() - 1);
    if (c.last) all += ']';
  }
  return all;
}

TEST(Chunks, GoToTheStagesInTurnAndAreALayerLongerAtTheBeginning) {
  EXPECT_EQ(layers_of(4, 1, 0, 1), "[0-3]");
  EXPECT_EQ(layers_of(4, 1, 0, 2), "[0-1 2-3]");
  EXPECT_EQ(layers_of(8, 2, 1, 1), "4-7]");
  EXPECT_EQ(layers_of(8, 2, 0, 2), "[0-1 4-5");
  EXPECT_EQ(layers_of(8, 2, 1, 2), "2-3 6-7]");
  EXPECT_EQ(layers_of(10, 4, 0, 1), "[0-2");
  EXPECT_EQ(layers_of(10, 4, 1, 1), "3-5");
  EXPECT_EQ(layers_of(10, 4, 2, 1), "6-7");
  EXPECT_EQ(layers_of(10, 4, 3, 1), "8-9]");
  EXPECT_EQ(layers_of(5, 2, 0, 2), "[0-1 3-3");
  EXPECT_EQ(layers_of(5, 2, 1, 2), "2-2 4-4]");
}

// Includes Llama 3.1 405B: its 126 layers and both ends on 8 stages of 4 chunks.
TEST(Chunks, EmbeddingAndLossMayCountAsALayer) {
  EXPECT_EQ(layers_of(6, 4, 0, 1, true), "[0-0");
  EXPECT_EQ(layers_of(6, 4, 1, 1, true), "1-2");
  EXPECT_EQ(layers_of(6, 4, 3, 1, true), "5-5]");
  EXPECT_EQ(layers_of(126, 8, 0, 4, true), "[0-2 31-34 63-66 95-98");
  EXPECT_EQ(layers_of(126, 8, 7, 4, true), "27-30 59-62 91-94 123-125]");
  EXPECT_EQ(layers_of(2, 4, 0, 1, true), "[0--1");  // the embedding alone
}

}  // namespace
}  // namespace harness::gpt
