// "Stragglers" of docs/method.md: who was late, by how much and how often, recomputed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stragglers.h"
#include "base/random.h"
#include "method_page.h"
#include "support/sample_results.h"

namespace harness::method {
namespace {

struct PageLate {
  int steps = 0, latest = 0;                               // profiled steps that count; in which it is the latest
  int of_three = 0, flagrant = 0;                          // steps whose stages have three ranks or more
  double late = 0, share = 0, compute = 0, idle = 0;       // sums over the steps
  double by_chance = 0;                                    // sum of the probability to be the latest
  std::vector<double> last_excess_s, last_excess_share{};  // of the timed steps in which it was last
};

double late_by(const std::vector<double>& own, std::size_t which) {
  std::vector<double> others = own;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
  return own[which] - median(others);
}

// The ranks of one stage, in one profiled step.
void add_stage(const std::vector<const store::ResultSplit*>& stage, double step, std::map<int, PageLate>& late) {
  std::vector<double> own, compute, idle;
  for (const store::ResultSplit* s : stage) {
    own.push_back(s->compute_s + s->idle_s);
    compute.push_back(s->compute_s);
    idle.push_back(s->idle_s);
  }
  const auto latest = static_cast<std::size_t>(std::ranges::max_element(own) - own.begin());
  std::vector<double> off;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i != latest) off.push_back(std::abs(own[i] - median(own)));
  }
  const double deviation = own.size() > 2 ? median(off) : 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    PageLate& rank = late[stage[i]->rank];
    const double by = late_by(own, i);
    ++rank.steps;
    rank.late += by;
    rank.share += by / step;
    rank.compute += late_by(compute, i);
    rank.idle += late_by(idle, i);
    rank.by_chance += 1 / static_cast<double>(own.size());
    rank.of_three += own.size() > 2;
    if (i != latest || by <= 0.02 * step || by <= 3 * deviation) continue;
    ++rank.latest;
    rank.flagrant += own.size() > 2 && by > 0.1 * step && by > 10 * deviation;
  }
}

std::map<int, PageLate> lateness(const store::Result& file) {
  std::map<int, PageLate> late;
  for (int c = 0; c < file.case_count(); ++c) {
    std::map<int, const store::ResultSplit*> of_rank;
    double step = 0;
    for (const store::ResultSplit& s : file.splits) {
      if (s.case_index != c) continue;
      of_rank[s.rank] = &s;
      step = std::max(step, s.step_s);
    }
    const auto stage_ranks = static_cast<std::size_t>(file.cases[c].layout[program::Axis::tensor] *
                                                      file.cases[c].layout[program::Axis::data]);
    std::vector<const store::ResultSplit*> stage;
    for (const auto& [rank, split] : of_rank) {
      stage.push_back(split);
      if (stage.size() < stage_ranks) continue;
      if (stage_ranks > 1) add_stage(stage, step, late);
      stage.clear();
    }
  }
  return late;
}

// Which rank was last in each timed step, and by how much.
int add_timed_steps(const store::Result& file, std::map<int, PageLate>& late) {
  int steps = 0;
  const auto ranks = static_cast<std::size_t>(file.ranks);
  for (std::size_t block = 0; block < file.rank_seconds.size(); ++block) {
    if (file.blocks[block].status != store::BlockStatus::ok) continue;
    const std::vector<float>& all = file.rank_seconds[block];
    for (std::size_t from = ranks * static_cast<std::size_t>(file.warmup_steps); from < all.size(); from += ranks) {
      std::vector<float> seconds(all.begin() + static_cast<std::ptrdiff_t>(from),
                                 all.begin() + static_cast<std::ptrdiff_t>(from + ranks));
      const auto last = static_cast<int>(std::ranges::max_element(seconds) - seconds.begin());
      const double longest = seconds[static_cast<std::size_t>(last)];
      std::ranges::sort(seconds);
      const double middle = seconds[(ranks - 1) / 2];
      late[last].last_excess_s.push_back(longest - middle);
      late[last].last_excess_share.push_back((longest - middle) / middle);
      ++steps;
    }
  }
  return steps;
}

bool is_named(const PageLate& rank, int ranks, int timed_steps) {
  const double n = rank.steps;
  const auto timed = static_cast<double>(rank.last_excess_s.size());
  if (timed > 2.0 / 3 * timed_steps && median(rank.last_excess_share) > 0.02) return true;
  if (rank.steps == 0 || rank.latest < 2.0 / 3 * n || rank.share / n <= 0.02) return false;
  if (rank.flagrant > 0 && rank.flagrant >= 2.0 / 3 * rank.of_three) return true;
  return ranks * binomial_tail(rank.steps, rank.latest, rank.by_chance / n) < 0.05;
}

int expect_stragglers(const store::Result& file) {
  std::map<int, PageLate> late = lateness(file);
  const int steps = add_timed_steps(file, late);
  const analysis::Stragglers found = analysis::find_stragglers(file);
  EXPECT_EQ(found.steps, steps);
  EXPECT_EQ(found.ranks.size(), late.size());
  int named = 0;
  for (const analysis::Straggler& program : found.ranks) {
    SCOPED_TRACE(program.rank);
    const PageLate& page = late.at(program.rank);
    if (page.steps > 0) {
      EXPECT_EQ(found.cases, page.steps);
      EXPECT_NEAR(program.late_s, page.late / page.steps, 1e-12);
      EXPECT_NEAR(program.late_share, page.share / page.steps, 1e-12);
      EXPECT_NEAR(program.compute_s, page.compute / page.steps, 1e-12);
      EXPECT_NEAR(program.idle_s, page.idle / page.steps, 1e-12);
      EXPECT_EQ(program.late_cases, page.latest);
    }
    EXPECT_EQ(program.last_steps, static_cast<std::int64_t>(page.last_excess_s.size()));
    if (program.last_steps > 0) {
      EXPECT_NEAR(program.last_excess_s, median(page.last_excess_s), 1e-8);
      EXPECT_NEAR(program.last_excess_share, median(page.last_excess_share), 1e-6);
    }
    EXPECT_EQ(program.named, is_named(page, file.ranks, steps));
    named += program.named;
  }
  return named;
}

TEST(MethodStragglers, OfTheExampleAndOfASampleWithStages) {
  EXPECT_EQ(expect_stragglers(example()), 0);
  store::Result sample = test::samples::sweep({"layout={pipeline_parallel: 2}"}, {1, 1, 0.9});
  test::samples::add_profiled_steps(sample);
  expect_stragglers(sample);
}

// Six ranks in one to three stages, of which one is late by some amount in some of the steps, profiled or timed. In the
// other steps of every second sweep it is early.
TEST(MethodStragglers, OfSweepsWithALateRank) {
  int named = 0;
  constexpr int sweeps = 300;
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    SCOPED_TRACE(sweep);
    const auto uniform = [&](std::uint64_t i) { return uniform_open(philox(sweep, i)[0]); };
    store::Result file;
    file.ranks = 6;
    const int late_rank = static_cast<int>(6 * uniform(1));
    const double late_s = 0.2 * uniform(2), often = 0.5 + 0.5 * uniform(3), scatter = 0.04 * uniform(4);
    for (int c = 0; c < 2 + static_cast<int>(sweep % 7); ++c) {
      store::ResultCase of;
      of.ranks = 6;
      constexpr int stages[] = {1, 1, 2, 3, 1, 2, 1, 3};
      of.layout[program::Axis::pipeline] = stages[c];
      of.layout[program::Axis::data] = 6 / of.layout[program::Axis::pipeline];
      file.cases.push_back(of);
      const auto key = static_cast<std::uint64_t>(100 * c);
      const bool hit = uniform(key + 50) < often;
      for (int rank = 0; rank < 6; ++rank) {
        store::ResultSplit s;
        s.case_index = c;
        s.rank = rank;
        s.step_s = 1;
        s.compute_s = 0.5 + scatter * uniform(key + 10 + static_cast<std::uint64_t>(rank));
        s.idle_s = 0.1 + scatter * uniform(key + 20 + static_cast<std::uint64_t>(rank));
        if (rank == late_rank && hit) (c % 2 == 0 ? s.compute_s : s.idle_s) += late_s;
        if (rank == late_rank && !hit && sweep % 2 == 0) s.compute_s -= 0.1;
        s.exposed_s = 1 - s.compute_s - s.idle_s;
        file.splits.push_back(s);
      }
    }
    if (sweep % 3 == 0) {
      file.warmup_steps = 1;
      file.blocks.emplace_back().status = store::BlockStatus::ok;
      std::vector<float>& all = file.rank_seconds.emplace_back();
      for (std::uint64_t step = 0; step < 13; ++step) {
        for (int rank = 0; rank < 6; ++rank) {
          const bool last = rank == late_rank && uniform(3000 + step) < often;
          const double own = 1 + 0.001 * uniform(2000 + 6 * step + static_cast<std::uint64_t>(rank));
          all.push_back(static_cast<float>(own + (last ? late_s / 4 : 0)));
        }
      }
    }
    named += expect_stragglers(file);
  }
  EXPECT_GT(named, sweeps / 10);
  EXPECT_LT(named, sweeps * 4 / 5);
}

}  // namespace
}  // namespace harness::method
