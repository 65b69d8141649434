// From Programs of random layouts to the breakdown of their steps, on an imaginary machine that knows the truth.
#include "sweep/timeline_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/breakdown.h"
#include "program/lower.h"
#include "simulated_step.h"
#include "store/result_file.h"
#include "support/temporary_folder.h"
#include "workloads/workload.h"

namespace harness::sweep {
namespace {

program::ProgramSet random_set(std::mt19937_64& random, store::ResultCase& row) {
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + std::uniform_int_distribution<>(0, static_cast<int>(of.size()) - 1)(random));
  };
  const config::Model model{"small", 4, 64, 4, 256, 32};
  config::Settings settings;
  program::Layout layout;
  const int tensor = pick({1, 2, 4}), pipeline = pick({1, 2, 4}), data = pick({1, 2, 3}),
            micro_batches = pick({1, 3, 6});
  settings.layout = {{program::Axis::tensor, tensor}, {program::Axis::pipeline, pipeline}};
  settings.micro_batch_size = pick({1, 2});
  settings.global_batch_size = settings.micro_batch_size * micro_batches * data;
  settings.overlap_grad_reduce = pick({0, 1}) == 1;
  settings.bucket_size_bytes = pick({1, 64}) * 1024;
  layout.size = {tensor, 1, data, pipeline};
  row.name = "baseline";
  row.ranks = layout.ranks();
  row.layout[program::Axis::tensor] = tensor;
  row.layout[program::Axis::pipeline] = pipeline;
  row.layout[program::Axis::data] = data;
  return program::lower(workloads::build_programs(model, settings, layout),
                        pick({0, static_cast<int>(program::all_fused)}));
}

TEST(TimelineRows, WaitingIsWhatItWasAndThePartsAreTheStep) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    store::Result result;
    result.cases.resize(1);
    const program::ProgramSet set = random_set(random, result.cases[0]);
    result.ranks = set.layout.ranks();
    const test::samples::SimulatedStep step(set, seed);
    ASSERT_TRUE(step.finished()) << seed;
    program::LeastTimes limits(set, std::vector<int>(static_cast<std::size_t>(result.ranks), 0),
                               {1e9, 0, false, false});
    std::vector<job::Samples> samples = step.samples();
    const bool all_ranks = seed % 2 == 0;
    for (int rank = 0; rank < result.ranks && !all_ranks; ++rank) {
      const int role = set.role_of(set.layout.coordinates(rank));
      if (set.first_rank(role) == rank) continue;
      std::get<job::TimelineSamples>(samples[static_cast<std::size_t>(rank)].task).timeline.clear();
    }
    add_timeline(result, 0, set, samples, limits);
    for (const store::ResultOperations& row : result.operations) {
      EXPECT_EQ(row.limit_s > 0, !row.group.empty() && result.ranks > 1) << row.kind;
    }

    for (const store::ResultInterval& x : result.timeline) {
      const auto& truth = step.times(x.rank)[static_cast<std::size_t>(x.operation)];
      if (std::isnan(x.waiting_s)) continue;
      ASSERT_NEAR(x.waiting_s, truth.waiting_s, 1e-8) << seed << " " << x.kind << " " << x.what;
      ASSERT_NEAR(x.bubble_s, truth.bubble_s, 1e-8) << seed << " " << x.kind << " " << x.what;
    }
    for (const store::ResultSplit& s : result.splits) {
      double waiting_s = 0, bubble_s = 0;
      for (const auto& t : step.times(s.rank)) {
        waiting_s += t.waiting_s;
        bubble_s += t.bubble_s;
      }
      EXPECT_NEAR(s.waiting_s, waiting_s, 1e-6) << seed;
      EXPECT_NEAR(s.bubble_s, bubble_s, 1e-6) << seed;
    }
    const auto all = analysis::break_down(result);
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].ranks.size(), all_ranks ? static_cast<std::size_t>(result.ranks) : set.roles.size());
    const store::ResultCase& row = result.cases[0];
    // The mean is of all ranks, not of those that have a timeline.
    double compute_s = 0, idle_s = 0, step_s = 0;
    for (const store::ResultSplit& s : result.splits) {
      compute_s += s.compute_s / result.ranks;
      idle_s += s.idle_s / result.ranks;
      step_s += s.step_s / result.ranks;
    }
    const analysis::Breakdown& mean = all[0].mean;
    EXPECT_NEAR(mean.parts.computation(), compute_s, 1e-9) << seed;
    EXPECT_NEAR(mean[Part::idle].value_or(0) + mean[Part::loading].value_or(0), idle_s, 1e-9) << seed;
    EXPECT_NEAR(mean.step_s, step_s, 1e-9) << seed;
    EXPECT_NEAR(mean.parts.sum(), step_s, 1e-9) << seed;
    if (all_ranks) {
      for (const Part part : all_parts) {
        double seconds = 0;
        for (const analysis::Breakdown& b : all[0].ranks) seconds += b[part].value_or(0) / result.ranks;
        EXPECT_NEAR(mean[part].value_or(0), seconds, 1e-9) << seed;
      }
      EXPECT_EQ(all[0].ranks[all[0].critical].rank, all[0].critical_rank) << seed;
    }
    for (const analysis::Breakdown& b : all[0].ranks) {
      EXPECT_NEAR(b.parts.sum(), b.step_s, 1e-9) << seed;
      EXPECT_EQ(b[Part::tensor].has_value(), row.layout[program::Axis::tensor] > 1) << seed;
      EXPECT_EQ(b[Part::data].has_value(), row.layout[program::Axis::data] > 1) << seed;
      EXPECT_EQ(b[Part::bubble].has_value(), row.layout[program::Axis::pipeline] > 1) << seed;
      EXPECT_EQ(b[Part::waiting].has_value(), row.layout[program::Axis::tensor] * row.layout[program::Axis::data] > 1)
          << seed;
      // Exposed or hidden, nothing else than communication is waited in.
      EXPECT_LE(b[Part::waiting].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].waiting_s + 1e-6) << seed;
      EXPECT_LE(b[Part::bubble].value_or(0), result.splits[static_cast<std::size_t>(b.rank)].bubble_s + 1e-6) << seed;
    }
  }
}

template <std::size_t... I>
std::vector<std::string> all_kinds(std::index_sequence<I...>) {
  return {std::string(std::variant_alternative_t<I, program::Action>::name)...};
}

// What tells a row's operation apart must come back from the file whole.
TEST(TimelineRows, NamesFitTheirColumns) {
  const config::Model model{"small", 4, 64, 4, 256, 32};
  config::Settings settings;
  settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  settings.global_batch_size = 4;
  program::Layout layout;
  layout.size = {2, 1, 2, 2};
  std::vector<store::ResultInterval> rows;
  const auto kinds = all_kinds(std::make_index_sequence<std::variant_size_v<program::Action>>());
  const auto streams = workloads::build_programs(model, settings, layout).roles[0].streams;
  for (std::size_t i = 0; i < std::max({kinds.size(), streams.size(), std::size_t{6}}); ++i) {
    store::ResultInterval row;
    row.kind = kinds[i % kinds.size()];
    row.stream = streams[i % streams.size()];
    row.phase = program::name_of(static_cast<program::Phase>(i % 6));
    rows.push_back(row);
  }
  store::Result plan;
  plan.ranks = 1;
  plan.cases.resize(1);
  plan.cases[0].name = "baseline";
  const test::TemporaryFolder folder;
  const std::string path = folder / "names.h5";
  store::ResultFile::create(path, plan, {.intervals = static_cast<std::int64_t>(rows.size()), .totals = 1}, true)
      ->add_timeline(rows);
  const store::Result got = store::read_result(path);
  ASSERT_EQ(got.timeline.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(got.timeline[i].kind, rows[i].kind);
    EXPECT_EQ(got.timeline[i].stream, rows[i].stream);
    EXPECT_EQ(got.timeline[i].phase, rows[i].phase);
  }
}

}  // namespace
}  // namespace harness::sweep
