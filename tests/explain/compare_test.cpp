#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>
#include <variant>
#include <vector>

#include "base/random.h"
#include "diagnosed.h"
#include "explain/explain.h"
#include "sim/costs.h"

namespace harness::explain {
namespace {

using program::OperationId;

double sum_of(const analysis::CaseCompared& compared, bool measured) {
  double sum = 0;
  for (const analysis::KindCompared& row : compared.kinds) sum += measured ? row.measured_owns_s : row.predicted_owns_s;
  for (const analysis::PartCompared& row : compared.parts) sum += measured ? row.measured_s : row.predicted_s;
  return sum;
}

analysis::CaseCompared compared(const store::Result& result) {
  const analysis::Explanation found = explain(result);
  EXPECT_EQ(found.cases.size(), 1u) << found.why_none;
  return found.cases.front();
}

TEST(Compare, AHealthyStepIsAsPredicted) {
  for (const analysis::KindCompared& row : compared(test::measured({}, {})).kinds) {
    EXPECT_DOUBLE_EQ(row.measured_takes_s, row.predicted_takes_s) << row.kind;
    EXPECT_DOUBLE_EQ(row.measured_owns_s, row.predicted_owns_s) << row.kind;
  }
}

TEST(Compare, AddsUpToTheStepOnBothSides) {
  config::Faults faults;
  faults.acs_on = true;
  faults.slow_gpus = {{3, 0.7}};
  for (const test::Job& job : {test::Job(), test::Job{.layout = "tensor_parallel: 4, pipeline_parallel: 2"},
                               test::Job{.layout = "tensor_parallel: 1", .overlaps = true}}) {
    const analysis::CaseCompared found = compared(test::measured(job, faults));
    EXPECT_GT(found.measured_s, found.predicted_s);
    EXPECT_NEAR(sum_of(found, true), found.measured_s, 1e-6 * found.measured_s) << job.layout;
    EXPECT_NEAR(sum_of(found, false), found.predicted_s, 1e-6 * found.predicted_s) << job.layout;
  }
}

// The waiting for a slow rank has a line of its own: what others communicate with it does not take longer.
TEST(Compare, TellsCommunicatingFromWaiting) {
  config::Faults faults;
  faults.slow_gpus = {{3, 0.5}};
  const analysis::CaseCompared found = compared(test::measured({}, faults));
  for (const analysis::KindCompared& row : found.kinds) {
    if (row.group.empty()) continue;
    EXPECT_NEAR(row.measured_takes_s, row.predicted_takes_s, 0.02 * row.predicted_takes_s) << row.group;
  }
  const auto& most = found.parts.front();
  EXPECT_EQ(most.part, Part::waiting);
  EXPECT_GT(most.excess_s(), 0.1 * found.predicted_s);
}

TEST(Compare, TheLargestExcessIsFirst) {
  config::Faults faults;
  faults.no_gpudirect = true;
  const analysis::CaseCompared found = compared(test::measured({.nodes = 4}, faults));
  EXPECT_EQ(found.kinds.front().kind, "all_reduce");
  EXPECT_EQ(found.kinds.front().group, "data");
  const double times = found.kinds.front().measured_takes_s / found.kinds.front().predicted_takes_s;
  EXPECT_GT(times, 2);
  EXPECT_LT(times, 720.0 / 300);  // what a collective takes before its bytes move stays the same
}

TEST(Compare, WhatOnlyOneSideHasCostsNothingOnTheOther) {
  analysis::Breakdown measured, predicted;
  measured.kinds = {{"matmul", "", false, 2, 2}};
  predicted.kinds = {{"attention", "", false, 1, 1}};
  const analysis::CaseCompared found = compare_with_prediction(measured, predicted);
  ASSERT_EQ(found.kinds.size(), 2u);
  EXPECT_EQ(found.kinds[0].predicted_owns_s, 0);
  EXPECT_EQ(found.kinds[1].measured_owns_s, 0);
  EXPECT_EQ(found.kinds[1].excess_s(), -1);
}

// A healthy step whose operations all take a little more or less, each its own: no cause.

// What tells an operation apart from all others of the job, the same on all that take part in it: who they are, and how
// many of theirs came before.
using Name = std::tuple<int, int, int, int>;

class Names {
 public:
  explicit Names(const program::ProgramSet& set) : set_(set) {}

  // Of the operations of a rank's step, in order.
  std::vector<Name> of_rank(int rank) const {
    const program::Coordinates at = set_.layout.coordinates(rank);
    std::map<Name, int> met;
    std::vector<Name> names;
    for (const program::Operation& op : set_.roles[set_.role_of(at)].step) {
      Name circle{-1, rank, 0, 0};
      if (const program::GroupId group = program::group_of(op.action); group >= 0) {
        circle = {group, set_.groups[group].members(set_.layout, at).front(), 0, 0};
      } else if (const auto* send = std::get_if<program::Send>(&op.action)) {
        circle = {-2, rank, set_.layout.neighbour(rank, send->peer.axis, send->peer.offset), 0};
      } else if (const auto* receive = std::get_if<program::Receive>(&op.action)) {
        circle = {-2, set_.layout.neighbour(rank, receive->peer.axis, receive->peer.offset), rank, 0};
      }
      const int before = met[circle]++;
      std::get<3>(circle) = before;
      names.push_back(circle);
    }
    return names;
  }

 private:
  const program::ProgramSet& set_;
};

// Of a name, in [1 - size, 1 + size].
double factor_of(const Name& name, std::uint64_t seed, double size) {
  const auto [a, b, c, d] = name;
  const auto pair = [](int high, int low) {
    return static_cast<std::uint64_t>(high + 2) << 32 | static_cast<std::uint32_t>(low);
  };
  return 1 + size * (2 * uniform_open(philox(seed, pair(a, b), pair(c, d))[0]) - 1);
}

// The sweep with a profiled step in which each operation takes up to `size` more or less.
store::Result noisy(const test::Job& job, std::uint64_t seed, double size, const config::Faults& faults = {}) {
  store::Result result = test::unmeasured(job, test::experiment_of(job));
  const Reference reference = reference_of(result);
  const CaseModel model(reference, result, 0);
  const config::Experiment& e = reference.experiment;
  const sim::Network network = sim::network_of(e, reference.node_of);
  const program::ProgramSet set = program::lower(model.set(), config::fused_for(e, model.settings()));
  std::vector<int> ranks(static_cast<std::size_t>(job.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const sim::RankClasses classes(set, ranks);
  EXPECT_EQ(classes.list().size(), ranks.size());
  const sim::Device device{e.hardware->peak_flops(model.settings().precision), e.hardware->memory_bytes_per_s,
                           e.hardware->sms};
  const sim::Condition condition = sim::condition_of(faults, *e.hardware, network);
  sim::Costs costs(classes, device, network, *e.calibration, model.settings(), condition);
  std::vector<std::vector<Name>> names;
  for (const sim::RankClass& one : classes.list()) names.push_back(Names(set).of_rank(one.first_rank));
  const sim::SimulatedStep step = simulate(classes, [&](int c, OperationId id) {
    sim::Cost cost = costs(c, id);
    cost.alone = sim::ticks_of(sim::seconds_of(cost.alone) * factor_of(names[c][id], seed, size));
    return cost;
  });
  std::vector<job::Samples> samples(ranks.size());
  for (int c = 0; std::cmp_less(c, classes.list().size()); ++c) {
    const program::Program& program = classes.program(c);
    std::vector<program::Interval> intervals;
    for (OperationId id = 0; std::cmp_less(id, program.step.size()); ++id) {
      const sim::OperationTimes& times = step.times[c][id];
      intervals.push_back({id, program.step[id].stream, sim::seconds_of(times.ready), sim::seconds_of(times.end)});
    }
    job::TimelineSamples summed{job::sum_up(program, intervals, job.ranks()), {}, {}, {}};
    const int rank = classes.list()[c].first_rank;
    if (set.first_rank(classes.list()[c].role) == rank) summed.timeline = intervals;
    samples[static_cast<std::size_t>(rank)].task = std::move(summed);
  }
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const program::Coordinates at = set.layout.coordinates(rank);
    result.roles.push_back({0, rank, set.role_of(at), at});
  }
  program::LeastTimes no_limits(set, reference.node_of, {});
  sweep::add_timeline(result, 0, set, samples, no_limits);
  return result;
}

TEST(Noise, IsNoCause) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const test::Job& job : {test::Job(), test::Job{.nodes = 4, .layout = "tensor_parallel: 1", .overlaps = true},
                                 test::Job{.layout = "tensor_parallel: 4, pipeline_parallel: 2", .sequences = 8}}) {
      const analysis::Explanation found = explain(noisy(job, seed, 0.05));
      ASSERT_TRUE(found.diagnosis) << found.why_none;
      EXPECT_NE(found.diagnosis->measured_s, found.diagnosis->healthy_s);
      EXPECT_TRUE(found.diagnosis->causes.empty()) << found.diagnosis->causes.front().words;
    }
  }
}

TEST(Noise, HidesNoCause) {
  config::Faults slow_gpu, slow_link, no_gpudirect, socket_fallback;
  slow_gpu.slow_gpus = {{5, 0.7}};
  slow_link.slow_links = {{1, 0.25}};
  no_gpudirect.no_gpudirect = true;
  socket_fallback.socket_bytes_per_s = 4e9;
  const test::Job job{.nodes = 4};
  const auto first_cause = [&](const config::Faults& faults, std::uint64_t seed) {
    const analysis::Explanation found = explain(noisy(job, seed, 0.05, faults));
    return found.diagnosis && !found.diagnosis->causes.empty() ? found.diagnosis->causes.front().fault : "none";
  };
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(first_cause(slow_gpu, seed), "slow_gpu");
    EXPECT_EQ(first_cause(slow_link, seed), "slow_link");
    EXPECT_EQ(first_cause(no_gpudirect, seed), "no_gpudirect");
    EXPECT_EQ(first_cause(socket_fallback, seed), "socket_fallback");
  }
}

}  // namespace
}  // namespace harness::explain
