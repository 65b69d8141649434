#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "program/timeline.h"
#include "sim/critical_path.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

using program::Axis;
using program::OperationId;

const config::Model two_layers{"custom", 2, 16, 4, 32, 8};

struct Walked {
  SimulatedStep step;
  CriticalPath path;
};

Walked walk(const program::ProgramSet& set, const CostOf& cost, const std::vector<int>& marks = {}) {
  const RankClasses classes(set, marks);
  Walked walked{simulate(classes, cost), {}};
  walked.path = critical_path(walked.step, classes, cost);
  return walked;
}

program::ProgramSet training(const program::Layout& layout, int micro_batches, bool overlap_optimizer = true) {
  config::Settings settings;
  settings.micro_batch_size = 1;
  settings.global_batch_size = static_cast<std::int64_t>(micro_batches) * layout[Axis::data];
  settings.layout = layout;
  settings.bucket_size_bytes = 4096;
  settings.overlap_optimizer = overlap_optimizer;
  return gpt::programs(two_layers, settings, layout);
}

// All operations slow each other, and the host is sometimes late: the parts still add up to the step, to the tick.
TEST(CriticalPath, AddsUpToTheStep) {
  for (const program::Layout& layout :
       {program::Layout{}, program::Layout{{Axis::data, 4}}, program::Layout{{Axis::tensor, 2}, {Axis::pipeline, 2}},
        program::Layout{{Axis::tensor, 2}, {Axis::data, 2}, {Axis::pipeline, 2}}}) {
    const program::ProgramSet set = training(layout, 4);
    for (const Ticks host : {0, 300, 3000}) {
      const RankClasses classes(set);
      const Walked walked = walk(set, [&](int c, OperationId id) {
        const bool communicates = program::is_communication(classes.program(c).step[id].action);
        if (communicates) return Cost{.alone = 1500, .host = host, .takes = 0.13, .keeps = 0.7};
        return Cost{.alone = 700 + 13 * (id % 17), .host = host};
      });
      EXPECT_EQ(walked.path.length(), walked.step.length) << text_of(layout) << ", host " << host;
      EXPECT_GE(walked.path.slowed, 0);
      EXPECT_EQ(walked.path.host > walked.step.length / 2, host == 3000);
    }
  }
}

// One replica computes twice as long: the path is its computation. With a slow network, it is the communication.
TEST(CriticalPath, GoesOnWithTheMemberThatCameLast) {
  const program::ProgramSet set = training({{Axis::data, 2}}, 1);
  const std::vector<int> marks{0, 1};
  const RankClasses classes(set, marks);
  ASSERT_EQ(classes.list().size(), 2U);
  const auto path_with = [&](Ticks communication) {
    return walk(
               set,
               [&](int c, OperationId id) {
                 if (program::is_communication(classes.program(c).step[id].action)) return Cost{.alone = communication};
                 return Cost{.alone = c == 1 ? 2000 : 1000};
               },
               marks)
        .path;
  };
  const CriticalPath computes = path_with(1);
  EXPECT_EQ(computes.host, 0);
  EXPECT_GT(computes[Part::matrix_products], 0);
  EXPECT_EQ((computes[Part::matrix_products] + computes[Part::attention] + computes[Part::other_compute]) % 2000, 0);
  EXPECT_LE(computes[Part::data], 10);
  const CriticalPath sends = path_with(1'000'000'000);
  EXPECT_EQ(sends[Part::world], 1'000'000'000);
  EXPECT_GT(sends[Part::data] + sends[Part::world], 0.99 * static_cast<double>(sends.length()));
  EXPECT_EQ(sends[Part::waiting], 0);
}

TEST(CriticalPath, IsSaidWithTheLargestShareFirst) {
  CriticalPath path;
  path[Part::matrix_products] = 610;
  path[Part::data] = 200;
  path.host = 190;
  EXPECT_EQ(in_words(path), "matrix products 61.0 %, data communication 20.0 %, host 19.0 %");
}

// A computation that is held up while a communication takes the device does not count as computing.

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

// A case with a closed solution: one stream of computations, and all-reduces over tensor ranks that take the whole
// device. The step is the sum of all operations, compute the sum of the computations, and the rest is exposed. No time
// counts as slowed, and the time of the all-reduces is on the path.
TEST(Held, LeavesOfAStepItsComputationsAndItsCommunication) {
  const program::ProgramSet set = training({{Axis::tensor, 2}}, 2, false);
  const RankClasses classes(set);
  ASSERT_EQ(classes.list().size(), 1U);
  const std::vector<program::Operation>& list = set.roles[0].step;
  const auto communicates = [&](OperationId id) { return program::is_communication(list[id].action); };
  constexpr Ticks compute = 1'000'000;
  const CostOf cost = [&](int, OperationId id) {
    return communicates(id) ? Cost{.alone = 3'000'000, .takes = Cost::all_of_it} : Cost{.alone = compute};
  };
  const SimulatedStep step = simulate(classes, cost);
  const std::vector<std::vector<Held>> of_class{held(step, classes, cost, 0)};
  const auto computations =
      std::ranges::count_if(list, [](const program::Operation& op) { return !program::is_communication(op.action); });
  const double computing_s = seconds_of(compute * computations);
  const program::StepSplit split =
      program::split_step(intervals_of(step, classes, of_class[0], 0), communicates, seconds_of(step.length));
  // Beside a communication, a computation runs at a ten thousandth of its speed.
  EXPECT_NEAR(split.compute_s, computing_s, 1e-3 * split.step_s);
  EXPECT_NEAR(split.exposed_s, seconds_of(step.length) - computing_s, 1e-3 * split.step_s);
  EXPECT_EQ(split.overlapped_s, 0);

  const CriticalPath path = critical_path(step, classes, cost, of_class);
  EXPECT_EQ(path.length(), step.length);
  Ticks communication = 0;
  for (const Held& h : of_class[0]) communication += h.to - h.from;
  EXPECT_EQ(path[Part::tensor] + path[Part::world], communication);
  EXPECT_LE(path.slowed, communication / 1000);
  EXPECT_GT(critical_path(step, classes, cost).slowed, 0) << "nothing was held up, so this shows nothing";
}

}  // namespace
}  // namespace harness::sim
