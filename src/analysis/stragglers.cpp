#include "analysis/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/places.h"
#include "analysis/statistics.h"

namespace harness {
namespace {

constexpr double least_share = 0.02;  // of the step: less is nobody's fault
constexpr double often = 2.0 / 3;     // of the cases' profiled steps
constexpr double beyond_scatter = 3;  // times the others' median deviation
constexpr double chance = 0.05;       // that any rank is the latest so often where lateness falls on ranks at random
// One step is enough if the others agree as closely as this and the late one is as far off.
constexpr double flagrant_share = 0.1, flagrant_scatter = 10;

// ---- timed steps ----------------------------------------------------------------------------------------------------

struct Lasts {
  std::vector<float> excess_s, excess_share;
};

class TimedSteps {
 public:
  explicit TimedSteps(const Result& result) : result_(result), lasts_(static_cast<std::size_t>(result.ranks)) {
    for (std::size_t block = 0; block < result.rank_seconds.size() && block < result.blocks.size(); ++block) {
      if (result.blocks[block].status == BlockStatus::ok) look_at(block);
    }
  }
  HeatMap heat(std::size_t rows) const;

  std::int64_t steps = 0;
  std::optional<std::size_t> worst_block;
  const std::vector<Lasts>& lasts() const { return lasts_; }

 private:
  const float* step_of(std::size_t block, std::size_t step) const {
    return result_.rank_seconds[block].data() + step * static_cast<std::size_t>(result_.ranks);
  }
  // The median of those that are numbers; NaN with fewer than two.
  float median_of(const float* seconds) const {
    scratch_.clear();
    for (std::int32_t r = 0; r < result_.ranks; ++r) {
      if (std::isfinite(seconds[r])) scratch_.push_back(seconds[r]);
    }
    if (scratch_.size() < 2) return std::numeric_limits<float>::quiet_NaN();
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>((scratch_.size() - 1) / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    return *middle;  // the lower of two: with two ranks the excess is over the other
  }
  void look_at(std::size_t block);

  const Result& result_;
  std::vector<Lasts> lasts_;
  mutable std::vector<float> scratch_;
  double worst_ = 0;
};

void TimedSteps::look_at(std::size_t block) {
  const auto ranks = static_cast<std::size_t>(result_.ranks);
  for (auto step = static_cast<std::size_t>(result_.warmup_steps);
       ranks > 0 && (step + 1) * ranks <= result_.rank_seconds[block].size(); ++step) {
    const float* seconds = step_of(block, step);
    const float median_s = median_of(seconds);
    if (!(median_s > 0)) continue;
    std::size_t last = 0;
    for (std::size_t r = 1; r < ranks; ++r) {
      if (!std::isfinite(seconds[last]) || seconds[r] > seconds[last]) last = r;
    }
    const float excess_s = seconds[last] - median_s, share = excess_s / median_s;
    ++steps;
    lasts_[last].excess_s.push_back(excess_s);
    lasts_[last].excess_share.push_back(share);
    if (worst_block && share <= worst_) continue;
    worst_ = share;
    worst_block = block;
  }
}

HeatMap TimedSteps::heat(std::size_t rows) const {
  HeatMap map;
  const std::size_t block = *worst_block;
  map.block = static_cast<std::int32_t>(block);
  map.case_index = result_.blocks[block].case_index;
  const auto ranks = static_cast<std::size_t>(result_.ranks), most = std::max<std::size_t>(rows, 1);
  const std::size_t per_row = (ranks + most - 1) / most;
  map.ranks_per_row = static_cast<std::int32_t>(per_row);
  const auto first_step = static_cast<std::size_t>(result_.warmup_steps);
  const std::size_t all_steps = result_.rank_seconds[block].size() / ranks;
  for (std::size_t first = 0; first < ranks; first += per_row) {
    map.first_rank.push_back(static_cast<std::int32_t>(first));
    auto& row = map.seconds.emplace_back();
    for (std::size_t step = first_step; step < all_steps; ++step) {
      float slowest = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t r = first; r < std::min(first + per_row, ranks); ++r) {
        const float s = step_of(block, step)[r];
        if (!(s <= slowest) && std::isfinite(s)) slowest = s;
      }
      row.push_back(slowest);
    }
  }
  for (std::size_t step = first_step; step < all_steps; ++step) map.median.push_back(median_of(step_of(block, step)));
  return map;
}

// ---- profiled steps -------------------------------------------------------------------------------------------------

struct Own {
  double total = 0, compute_s = 0, idle_s = 0;
};

struct Late {
  std::int32_t cases = 0, late_cases = 0;
  std::int32_t among_several = 0, flagrant_cases = 0;  // of cases with others to agree with each other
  double expected = 0;  // sum over cases of the chance to be the latest of those that do the same
  double late_s = 0, share = 0, compute_s = 0, idle_s = 0;  // sums over cases
};

template <class Field>
double median_without(const std::vector<Own>& all, std::size_t left_out, Field field) {
  std::vector<double> values;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != left_out) values.push_back(field(all[i]));
  }
  return median(values);
}

// One stage of one case: ranks that do the same.
void compare_stage(const std::vector<Own>& all, std::size_t first_rank, double step_s, std::vector<Late>& late) {
  // The median of the others is that of all but for the middle ones: one pass for many ranks.
  const auto total = [](const Own& o) { return o.total; };
  const auto at = static_cast<std::size_t>(std::ranges::max_element(all, {}, &Own::total) - all.begin());
  std::vector<double> totals, computes, idles;
  for (const Own& o : all) {
    totals.push_back(o.total);
    computes.push_back(o.compute_s);
    idles.push_back(o.idle_s);
  }
  const double middle = median(totals), middle_compute = median(computes), middle_idle = median(idles);
  std::vector<double> deviations;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != at) deviations.push_back(std::abs(all[i].total - middle));
  }
  const double scatter = all.size() > 2 ? median(deviations) : 0;
  constexpr std::size_t few = 64;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Late& l = late[first_rank + i];
    const bool exact = i == at || all.size() <= few;
    const double late_s = all[i].total - (exact ? median_without(all, i, total) : middle);
    ++l.cases;
    l.expected += 1 / static_cast<double>(all.size());
    l.among_several += all.size() > 2;
    l.late_s += late_s;
    l.share += late_s / step_s;
    l.compute_s +=
        all[i].compute_s - (exact ? median_without(all, i, [](const Own& o) { return o.compute_s; }) : middle_compute);
    l.idle_s += all[i].idle_s - (exact ? median_without(all, i, [](const Own& o) { return o.idle_s; }) : middle_idle);
    if (i != at || late_s <= least_share * step_s || late_s <= beyond_scatter * scatter) continue;
    ++l.late_cases;
    if (all.size() > 2 && late_s > flagrant_share * step_s && late_s > flagrant_scatter * scatter) ++l.flagrant_cases;
  }
}

// P(Binomial(n, p) >= k).
double tail(int n, int k, double p) {
  double sum = 0;
  for (int i = k; i <= n; ++i) {
    const double ways = std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0);
    sum += std::exp(ways + i * std::log(p) + (n - i) * std::log1p(-p));
  }
  return sum;
}

// Often enough, and not by chance or not by a little.
bool named(const Late& late, std::int32_t ranks) {
  if (late.late_cases < often * late.cases || late.share <= least_share * late.cases) return false;
  if (late.flagrant_cases > 0 && late.flagrant_cases >= often * late.among_several) return true;
  const double by_chance = tail(late.cases, late.late_cases, late.expected / late.cases);
  return ranks * by_chance < chance;
}

std::vector<Late> profiled(const Result& result, std::int32_t& cases) {
  std::vector<Late> late(static_cast<std::size_t>(result.ranks));
  std::map<int, std::vector<const ResultSplit*>> by_case;
  for (const ResultSplit& s : result.splits) by_case[s.case_index].push_back(&s);
  for (const auto& [case_index, splits] : by_case) {
    const Places places(result.cases[static_cast<std::size_t>(case_index)]);
    const auto stage_ranks = static_cast<std::size_t>(places.stage_ranks());
    std::vector<const ResultSplit*> by_rank(static_cast<std::size_t>(places.ranks));
    double step_s = 0;
    for (const ResultSplit* s : splits) {
      if (s->rank < 0 || s->rank >= places.ranks || s->rank >= result.ranks) continue;
      by_rank[static_cast<std::size_t>(s->rank)] = s;
      step_s = std::max(step_s, s->step_s);
    }
    if (stage_ranks < 2 || !(step_s > 0) || places.ranks > result.ranks) continue;
    if (std::ranges::count(by_rank, nullptr) > 0) continue;
    ++cases;
    for (std::size_t first = 0; first < by_rank.size(); first += stage_ranks) {
      std::vector<Own> all;
      for (std::size_t r = first; r < first + stage_ranks; ++r) {
        all.push_back({by_rank[r]->compute_s + by_rank[r]->idle_s, by_rank[r]->compute_s, by_rank[r]->idle_s});
      }
      compare_stage(all, first, step_s, late);
    }
  }
  return late;
}

std::string evidence_of(const Stragglers& s) {
  const auto timed = [&] {
    return s.steps > 0 ? fmt::format("{} timed steps (who was last)", s.steps) : std::string("no timed steps");
  };
  if (s.cases == 0) {
    return fmt::format(
        "From {} alone: no profiled step of several ranks that do the same is in the file. Ranks of a synchronous step "
        "wait for each other, so step times rarely tell who was late.",
        timed());
  }
  return fmt::format(
      "From the profiled steps of {} {}: how long each rank was busy or idle on its own, beyond the median of the "
      "other "
      "ranks that do the same; those that are early wait in communication for those that are late. And from {}.",
      s.cases, s.cases == 1 ? "case" : "cases", timed());
}

}  // namespace

Stragglers find_stragglers(const Result& result, std::size_t most, std::size_t heat_rows) {
  Stragglers found;
  if (result.ranks < 2) {
    found.evidence = "One rank has nobody to wait for.";
    return found;
  }
  const TimedSteps timed(result);
  found.steps = timed.steps;
  const std::vector<Late> late = profiled(result, found.cases);
  for (std::size_t r = 0; r < late.size(); ++r) {
    Straggler s;
    s.rank = static_cast<std::int32_t>(r);
    const Lasts& lasts = timed.lasts()[r];
    s.last_steps = static_cast<std::int64_t>(lasts.excess_s.size());
    if (s.last_steps > 0) {
      s.last_excess_s = median(std::vector<double>(lasts.excess_s.begin(), lasts.excess_s.end()));
      s.last_excess_share = median(std::vector<double>(lasts.excess_share.begin(), lasts.excess_share.end()));
    }
    if (late[r].cases > 0) {
      const double n = late[r].cases;
      s.late_cases = late[r].late_cases;
      s.late_s = late[r].late_s / n;
      s.late_share = late[r].share / n;
      s.compute_s = late[r].compute_s / n;
      s.idle_s = late[r].idle_s / n;
      s.named = named(late[r], result.ranks);
    }
    // Where ranks do not wait for each other, step times do tell.
    s.named = s.named || (static_cast<double>(s.last_steps) > often * static_cast<double>(timed.steps) &&
                          s.last_excess_share > least_share);
    if (s.last_steps > 0 || late[r].cases > 0) found.ranks.push_back(s);
  }
  const auto worse = [](const Straggler& a, const Straggler& b) {
    return std::tuple(a.named, a.late_s, a.last_steps) > std::tuple(b.named, b.late_s, b.last_steps);
  };
  const auto kept = std::min(most, found.ranks.size());
  std::partial_sort(found.ranks.begin(), found.ranks.begin() + static_cast<std::ptrdiff_t>(kept), found.ranks.end(),
                    worse);
  found.ranks.resize(kept);
  for (Straggler& s : found.ranks) {
    for (const ResultRank& row : result.rank_table) {
      if (row.rank == s.rank) s.host = row.host, s.device = row.device;
    }
  }
  found.evidence = evidence_of(found);
  if (timed.worst_block) found.heat = timed.heat(heat_rows);
  return found;
}

}  // namespace harness
