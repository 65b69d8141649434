// A computation that stands still while a communication holds the device is not computing.
#include "sim/held.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "program/interval.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

using program::Axis;
using program::OperationId;
using Stretch = std::pair<Ticks, Ticks>;
using ::testing::ElementsAre;

OperationTimes ran(Ticks ready, Ticks end) {
  OperationTimes times;
  times.ready = times.start = ready;
  times.end = end;
  return times;
}

TEST(Held, CutsAComputationWhereItStoodStill) {
  const std::vector<Held> held{{10, 20, 1}, {30, 40, 2}};
  EXPECT_THAT(running(ran(0, 10), held), ElementsAre(Stretch{0, 10}));
  EXPECT_THAT(running(ran(0, 25), held), ElementsAre(Stretch{0, 10}, Stretch{20, 25}));
  EXPECT_THAT(running(ran(10, 25), held), ElementsAre(Stretch{20, 25}));
  EXPECT_THAT(running(ran(15, 50), held), ElementsAre(Stretch{20, 30}, Stretch{40, 50}));
  EXPECT_THAT(running(ran(12, 14), held), ElementsAre(Stretch{14, 14}));
  EXPECT_THAT(running(ran(41, 50), held), ElementsAre(Stretch{41, 50}));
  EXPECT_EQ(held_up(ran(0, 10), held), nullptr);
  EXPECT_EQ(held_up(ran(12, 14), held), nullptr);
  EXPECT_EQ(held_up(ran(41, 50), held), nullptr);
  ASSERT_NE(held_up(ran(0, 25), held), nullptr);
  EXPECT_EQ(held_up(ran(0, 25), held)->by, 1);
  EXPECT_EQ(held_up(ran(15, 50), held)->by, 2);
}

// The closed case: one stream of computations beside the gradient's products, and sums over tensor ranks that hold the
// device. The step is the sum of all, computing is the sum of the computations, and the rest is exposed.
TEST(Held, LeavesOfAStepItsComputationsAndItsCommunication) {
  const config::Model model{"custom", 2, 16, 4, 32, 8};
  config::Settings settings;
  settings.micro_batch_size = 1;
  settings.global_batch_size = 2;
  const program::Layout layout{{Axis::tensor, 2}};
  settings.layout = layout;
  const program::ProgramSet set = gpt::programs(model, settings, layout);
  const RankClasses classes(set);
  ASSERT_EQ(classes.list().size(), 1U);
  constexpr Ticks compute = 1'000'000, communicate = 3'000'000;
  const CostOf cost = [&](int c, OperationId id) {
    if (!program::is_communication(classes.program(c).step[id].action)) return Cost{.alone = compute};
    return Cost{.alone = communicate, .takes = Cost::all_of_it};
  };
  const SimulatedStep step = simulate(classes, cost);
  const std::vector<Held> held_up = held(step, classes, cost, 0);
  const std::vector<program::Operation>& list = set.roles[0].step;
  std::vector<program::Interval> intervals;
  Ticks computing = 0;
  for (OperationId id = 0; std::cmp_less(id, list.size()); ++id) {
    const OperationTimes& times = step.times[0][id];
    if (program::is_communication(list[id].action)) {
      intervals.push_back({id, list[id].stream, seconds_of(times.ready), seconds_of(times.end)});
      continue;
    }
    computing += compute;
    for (const auto& [from, to] : running(times, held_up))
      intervals.push_back({id, list[id].stream, seconds_of(from), seconds_of(to)});
  }
  const auto communicates = [&](OperationId id) { return program::is_communication(list[id].action); };
  const program::StepSplit split = program::split_step(intervals, communicates, seconds_of(step.length));
  // Beside a communication a computation goes on at a ten thousandth of its speed.
  EXPECT_NEAR(split.compute_s, seconds_of(computing), 1e-3 * split.step_s);
  EXPECT_NEAR(split.exposed_s, seconds_of(step.length - computing), 1e-3 * split.step_s);
  EXPECT_EQ(split.overlapped_s, 0);
}

}  // namespace
}  // namespace harness::sim
