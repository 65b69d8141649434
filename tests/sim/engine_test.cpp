#include "sim/engine.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "program/program.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

using config::PipelineSchedule;
using program::Axis;
using program::OperationId;

config::Settings settings_of(int micro_batches, int data = 1) {
  config::Settings settings;
  settings.micro_batch_size = 1;
  settings.global_batch_size = static_cast<std::int64_t>(micro_batches) * data;
  return settings;
}

program::ProgramSet programs_of(int layers, config::Settings settings, const program::Layout& layout) {
  settings.layout = layout;
  return gpt::programs({"custom", layers, 16, 4, 32, 8}, settings, layout);
}

// A layer's forward pass takes one tick, in attention. Its backward pass takes one tick in attention for input
// gradients, and one in the last product for weight gradients. Nothing else takes time.
Cost of_passes(const program::Operation& op) {
  constexpr Ticks tick = 1000;
  if (std::holds_alternative<program::Attention>(op.action)) return {.alone = tick};
  if (std::holds_alternative<program::AttentionBackward>(op.action)) return {.alone = tick};
  if (std::string_view(op.label.what) == "qkv weight gradient") return {.alone = tick};
  return {};
}

TEST(Simulate, EachScheduleTakesWhatItsFormulaSays) {
  for (const auto schedule :
       {PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe, PipelineSchedule::interleaved}) {
    for (const int stages : {2, 3, 4, 8}) {
      for (const int chunks : {1, 2, 3}) {
        if ((schedule == PipelineSchedule::interleaved) != (chunks > 1)) continue;
        const int micro_batches = 2 * stages, layers_of_chunk = 2;
        config::Settings settings = settings_of(micro_batches);
        settings.pipeline_schedule = schedule;
        settings.virtual_pipeline = schedule == PipelineSchedule::interleaved ? chunks : 0;
        const program::ProgramSet set =
            programs_of(stages * chunks * layers_of_chunk, settings, {{Axis::pipeline, stages}});
        ASSERT_TRUE(program::verify(set).empty());
        const RankClasses classes(set);
        const SimulatedStep step =
            simulate(classes, [&](int c, OperationId id) { return of_passes(classes.program(c).step[id]); });
        const int ticks =
            3 * (micro_batches * chunks + stages - 1);  // docs/method.md: the bubble is (p - 1)(F + B + W)
        EXPECT_EQ(step.length, Ticks{1000} * layers_of_chunk * ticks)
            << "schedule " << static_cast<int>(schedule) << ", p " << stages << ", v " << chunks;
      }
    }
  }
}

TEST(Simulate, ASlowRankHoldsUpWhoWaitsForIt) {
  const program::ProgramSet set = programs_of(2, settings_of(2, 2), {{Axis::data, 2}});
  const auto length = [&](const std::vector<int>& marks) {
    const RankClasses classes(set, marks);
    const SimulatedStep step = simulate(classes, [&](int c, OperationId id) {
      const bool slow = !marks.empty() && marks[classes.list()[c].first_rank] != 0;
      if (program::is_communication(classes.program(c).step[id].action)) return Cost{};
      return Cost{.alone = slow ? 300 : 200};
    });
    return step.length;
  };
  EXPECT_EQ(length({0, 1}) * 2, length({}) * 3);
}

program::Operation compute(program::StreamId stream, std::vector<OperationId> waits = {}) {
  program::Operation op;
  op.action = program::Fill{{0, 0, 1}, 0};
  op.stream = stream;
  op.waits = std::move(waits);
  return op;
}

program::Operation all_reduce(program::StreamId stream, std::vector<OperationId> waits = {}) {
  program::Operation op = compute(stream, std::move(waits));
  op.action = program::AllReduce{0, {0, 0, 1}};
  return op;
}

program::ProgramSet set_of(std::vector<program::Operation> step) {
  program::ProgramSet set;
  set.layout = {{Axis::data, 2}};
  set.groups = {{"data", program::AxisSet::of({Axis::data}), {}}};
  set.roles.resize(1);
  set.roles[0].streams = {"compute", "data"};
  set.roles[0].buffers = {{"x", program::DType::f32, 8, program::BufferKind::persistent}};
  set.roles[0].step = std::move(step);
  return set;
}

SimulatedStep run(const program::ProgramSet& set, const std::vector<Cost>& costs) {
  const RankClasses classes(set);
  return simulate(classes, [&](int, OperationId id) { return costs[static_cast<std::size_t>(id)]; });
}

// The reduction takes a fifth of the device and keeps half its speed beside a computation. 100 ticks of computation
// take 125 beside it; by then the reduction has done 62.5 of its 200, and it does the rest alone.
TEST(Simulate, ComputationAndCommunicationSlowEachOther) {
  const auto set = set_of({compute(0), all_reduce(1)});
  const SimulatedStep step = run(set, {{.alone = 100}, {.alone = 200, .takes = 0.2, .keeps = 0.5}});
  EXPECT_EQ(step.times[0][0].end, 125);
  EXPECT_EQ(step.times[0][1].end, 263);  // 125 + 137.5, rounded up
  EXPECT_EQ(step.length, 263);
}

// The computation waits for all of them, and does not end before it began.
TEST(Simulate, SeveralCommunicationsMayHoldTheDevice) {
  auto set = set_of({compute(0), all_reduce(1), all_reduce(2), all_reduce(3)});
  set.roles[0].streams = {"compute", "data", "gather", "tensor"};
  constexpr Ticks long_one = 10'000'000'000;  // 10 ms
  const Cost holds{.alone = 1000, .takes = Cost::all_of_it};
  const SimulatedStep step = run(set, {{.alone = long_one}, holds, holds, holds});
  EXPECT_EQ(step.times[0][0].end, 1000 + long_one);
  EXPECT_EQ(step.length, 1000 + long_one);
}

TEST(Simulate, ComputationsAtOnceShareTheDevice) {
  const auto set = set_of({compute(0), compute(1)});
  const SimulatedStep step = run(set, {{.alone = 100}, {.alone = 300}});
  EXPECT_EQ(step.times[0][0].end, 200);
  EXPECT_EQ(step.times[0][1].end, 400);
}

TEST(Simulate, AnOperationStartsWhenTheHostHasIssuedIt) {
  const auto set = set_of({compute(0), compute(0), compute(0)});
  const SimulatedStep step = run(set, {{.alone = 5, .host = 10}, {.alone = 50, .host = 10}, {.alone = 5, .host = 10}});
  EXPECT_EQ(step.times[0][0].start, 10);
  EXPECT_EQ(step.times[0][1].start, 20);
  EXPECT_EQ(step.times[0][1].after, -1);
  EXPECT_EQ(step.times[0][2].start, 70);  // by now the host is ahead of the GPU
  EXPECT_EQ(step.times[0][2].after, 1);
}

}  // namespace
}  // namespace harness::sim
