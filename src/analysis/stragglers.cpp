#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "analysis/cases.h"
#include "analysis/statistics.h"
#include "base/median.h"
#include "base/text.h"
#include "config/backend.h"

namespace harness::analysis {
namespace {

constexpr std::size_t max_stragglers = 16, max_heat_rows = 64;
constexpr double min_late_share = 0.02;  // of the step: less is nobody's fault
constexpr double late_often = 2.0 / 3;   // of the steps looked at
constexpr double beyond_scatter = 3;     // times the others' median deviation
constexpr double chance = 0.05;          // that any rank is the latest so often where lateness falls on ranks at random
// One step is enough if the others agree as closely as this and the late one is as far off.
constexpr double flagrant_share = 0.1, flagrant_scatter = 10;

// ---- Timed steps: who was last in each.

// Whenever a rank was last: by how much it then exceeded the median rank.
struct TimesLast {
  std::vector<double> excess_s, excess_share;
};

// By Result::rank_seconds of all finished blocks. Refers to the result.
class TimedSteps {
 public:
  explicit TimedSteps(const store::Result& result) : result_(result), last_(result.rank_count()) {
    for (std::size_t block = 0; block < result.rank_seconds.size() && block < result.blocks.size(); ++block) {
      if (result.blocks[block].status == store::BlockStatus::ok) look_at(block);
    }
  }
  HeatMap heat() const {
    HeatMap map;
    const std::size_t block = *worst_block, ranks = result_.rank_count();
    const std::size_t per_row = (ranks + max_heat_rows - 1) / max_heat_rows;
    map.case_index = result_.blocks[block].case_index;
    map.ranks_per_row = static_cast<std::int32_t>(per_row);
    for (std::size_t first = 0; first < ranks; first += per_row)
      map.first_rank.push_back(static_cast<std::int32_t>(first));
    map.seconds.resize(map.first_rank.size());
    for (std::size_t step = result_.first_timed_step(); step < steps_in(block); ++step) {
      const std::span<const float> seconds = step_of(block, step);
      map.median.push_back(median_of(seconds));
      for (std::size_t row = 0; row < map.seconds.size(); ++row) {
        float slowest = std::numeric_limits<float>::quiet_NaN();
        for (const float s : seconds.subspan(row * per_row, std::min(per_row, ranks - row * per_row))) {
          if (!(s <= slowest) && std::isfinite(s)) slowest = s;
        }
        map.seconds[row].push_back(slowest);
      }
    }
    return map;
  }

  std::int64_t steps = 0;
  std::optional<std::size_t> worst_block;
  const TimesLast& times_last(std::size_t rank) const { return last_[rank]; }

 private:
  std::span<const float> step_of(std::size_t block, std::size_t step) const {
    return std::span(result_.rank_seconds[block]).subspan(step * result_.rank_count(), result_.rank_count());
  }
  std::size_t steps_in(std::size_t block) const { return result_.rank_seconds[block].size() / result_.rank_count(); }

  // The median of the finite values; NaN with fewer than two. It is the lower of two middle values, so that with two
  // ranks the excess is over the other.
  float median_of(std::span<const float> seconds) const {
    scratch_.clear();
    for (const float s : seconds) {
      if (std::isfinite(s)) scratch_.push_back(s);
    }
    if (scratch_.size() < 2) return std::numeric_limits<float>::quiet_NaN();
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>((scratch_.size() - 1) / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    return *middle;
  }

  void look_at(std::size_t block) {
    for (std::size_t step = result_.first_timed_step(); step < steps_in(block); ++step) {
      const std::span<const float> seconds = step_of(block, step);
      const float median_s = median_of(seconds);
      if (!(median_s > 0)) continue;
      std::size_t last = 0;
      for (std::size_t rank = 1; rank < seconds.size(); ++rank) {
        if (!std::isfinite(seconds[last]) || seconds[rank] > seconds[last]) last = rank;
      }
      const float excess_s = seconds[last] - median_s, share = excess_s / median_s;
      ++steps;
      last_[last].excess_s.push_back(excess_s);
      last_[last].excess_share.push_back(share);
      if (worst_block && share <= worst_share_) continue;
      worst_share_ = share;
      worst_block = block;
    }
  }

  const store::Result& result_;
  std::vector<TimesLast> last_;
  mutable std::vector<float> scratch_;
  double worst_share_ = 0;
};

// ---- Profiled steps: who was busy or idle the longest.

// How late a rank was in the profiled steps: its own time (computing and idle) beyond the median of those that do the
// same.
struct Lateness {
  std::int32_t cases = 0, late_cases = 0;
  std::int32_t among_several = 0, flagrant_cases = 0;  // of cases with others to agree with each other
  double expected = 0;  // sum over cases of the chance to be the latest of those that do the same
  double late_s = 0, share = 0, compute_s = 0, idle_s = 0;  // sums over cases
};

struct OwnTime {
  double total = 0, compute_s = 0, idle_s = 0;
};

double median_of(const std::vector<OwnTime>& all, double OwnTime::*time, const OwnTime* left_out = nullptr) {
  std::vector<double> values;
  for (const OwnTime& own : all) {
    if (&own != left_out) values.push_back(own.*time);
  }
  return median(values);
}

// Ranks of one case that do the same work, and the time of each.
void compare_alike(const CaseRanks::Ranks& ranks, const std::vector<OwnTime>& all, double step_s,
                   std::vector<Lateness>& late) {
  // The median of the others is that of all but for the middle ones: one pass for many ranks.
  const OwnTime& latest = *std::ranges::max_element(all, {}, &OwnTime::total);
  const double middle = median_of(all, &OwnTime::total), middle_compute = median_of(all, &OwnTime::compute_s),
               middle_idle = median_of(all, &OwnTime::idle_s);
  std::vector<double> deviations;
  for (const OwnTime& own : all) {
    if (&own != &latest) deviations.push_back(std::abs(own.total - middle));
  }
  const double scatter = all.size() > 2 ? median(deviations) : 0;
  constexpr std::size_t few = 64;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Lateness& l = late[ranks[i]];
    const bool exact = &all[i] == &latest || all.size() <= few;
    const auto beyond = [&](double OwnTime::*time, double of_all) {
      return all[i].*time - (exact ? median_of(all, time, &all[i]) : of_all);
    };
    const double late_s = beyond(&OwnTime::total, middle);
    ++l.cases;
    l.expected += 1 / static_cast<double>(all.size());
    if (all.size() > 2) ++l.among_several;
    l.late_s += late_s;
    l.share += late_s / step_s;
    l.compute_s += beyond(&OwnTime::compute_s, middle_compute);
    l.idle_s += beyond(&OwnTime::idle_s, middle_idle);
    if (&all[i] != &latest || late_s <= min_late_share * step_s || late_s <= beyond_scatter * scatter) continue;
    ++l.late_cases;
    if (all.size() > 2 && late_s > flagrant_share * step_s && late_s > flagrant_scatter * scatter) ++l.flagrant_cases;
  }
}

// By rank; `cases` is how many profiled steps could tell.
std::vector<Lateness> lateness_in_profiled_steps(const store::Result& result, std::int32_t& cases) {
  std::vector<Lateness> late(result.rank_count());
  std::map<std::int32_t, std::vector<const store::ResultSplit*>> by_case;
  for (const store::ResultSplit& split : result.splits) by_case[split.case_index].push_back(&split);
  for (const auto& [case_index, splits] : by_case) {
    const CaseRanks ranks(result, case_index);
    std::map<std::int32_t, const store::ResultSplit*> by_rank;
    double step_s = 0;
    for (const store::ResultSplit* split : splits) {
      if (split->rank < 0 || split->rank >= ranks.count() || split->rank >= result.ranks) continue;
      by_rank[split->rank] = split;
      step_s = std::max(step_s, split->step_s);
    }
    const auto has_others = [](const CaseRanks::Ranks& alike) { return alike.size() > 1; };
    if (std::ranges::none_of(ranks.alike(), has_others) || !(step_s > 0) || ranks.count() > result.ranks) continue;
    if (std::ssize(by_rank) < ranks.count()) continue;
    ++cases;
    for (const CaseRanks::Ranks& alike : ranks.alike()) {
      if (!has_others(alike)) continue;
      std::vector<OwnTime> times;
      for (const std::int32_t rank : alike) {
        const store::ResultSplit& split = *by_rank[rank];
        times.push_back({split.compute_s + split.idle_s, split.compute_s, split.idle_s});
      }
      compare_alike(alike, times, step_s, late);
    }
  }
  return late;
}

// Late often enough, and not by chance or not by a little; of so many ranks.
bool is_straggler(const Lateness& late, std::int32_t ranks) {
  if (late.late_cases < late_often * late.cases || late.share <= min_late_share * late.cases) return false;
  if (late.flagrant_cases > 0 && late.flagrant_cases >= late_often * late.among_several) return true;
  const double by_chance = binomial_upper_tail(late.cases, late.late_cases, late.expected / late.cases);
  return ranks * by_chance < chance;
}

// ---- Both together.

std::string evidence_of(const Stragglers& found, bool predicted) {
  if (predicted) {
    return fmt::format(
        "Evidence: the predicted steps of {}. In each, a rank's own time (computing or idle) is compared with the "
        "median "
        "of the ranks that do the same work; early ranks wait in communication for late ones.",
        plural(found.cases, "case"));
  }
  const std::string timed =
      found.steps > 0 ? fmt::format("{} timed steps", found.steps) : std::string("no timed steps");
  if (found.cases == 0) {
    return fmt::format(
        "Evidence: {} (which rank was last), but no profiled step in which several ranks do the same work. Ranks of a "
        "synchronous step wait for each other, so step times rarely show who was late.",
        timed);
  }
  return fmt::format(
      "Evidence: the profiled steps of {} {}, and {}. In a profiled step, a rank's own time (computing or idle) is "
      "compared with the median of the ranks that do the same work; early ranks wait in communication for late ones. "
      "In timed steps, the last rank is counted.",
      found.cases, found.cases == 1 ? "case" : "cases", timed);
}

Straggler straggler_of(std::int32_t rank, const TimesLast& last, const Lateness& late, std::int64_t steps,
                       std::int32_t ranks) {
  Straggler straggler;
  straggler.rank = rank;
  straggler.last_steps = std::ssize(last.excess_s);
  if (straggler.last_steps > 0) {
    straggler.last_excess_s = median(last.excess_s);
    straggler.last_excess_share = median(last.excess_share);
  }
  if (late.cases > 0) {
    const double n = late.cases;
    straggler.late_cases = late.late_cases;
    straggler.late_s = late.late_s / n;
    straggler.late_share = late.share / n;
    straggler.compute_s = late.compute_s / n;
    straggler.idle_s = late.idle_s / n;
    straggler.named = is_straggler(late, ranks);
  }
  // Where ranks do not wait for each other, step times do show it.
  const bool mostly_last = static_cast<double>(straggler.last_steps) > late_often * static_cast<double>(steps);
  straggler.named = straggler.named || (mostly_last && straggler.last_excess_share > min_late_share);
  return straggler;
}

}  // namespace

Stragglers find_stragglers(const store::Result& result) {
  Stragglers found;
  if (result.ranks < 2) {
    found.evidence = "A single rank waits for no other.";
    return found;
  }
  const TimedSteps timed(result);
  found.steps = timed.steps;
  const std::vector<Lateness> late = lateness_in_profiled_steps(result, found.cases);
  for (std::size_t rank = 0; rank < late.size(); ++rank) {
    const TimesLast& last = timed.times_last(rank);
    if (last.excess_s.empty() && late[rank].cases == 0) continue;
    found.ranks.push_back(straggler_of(static_cast<std::int32_t>(rank), last, late[rank], timed.steps, result.ranks));
  }
  const auto worse = [](const Straggler& a, const Straggler& b) {
    return std::tuple(a.named, a.late_s, a.last_steps) > std::tuple(b.named, b.late_s, b.last_steps);
  };
  const auto kept = std::min(max_stragglers, found.ranks.size());
  std::partial_sort(found.ranks.begin(), found.ranks.begin() + static_cast<std::ptrdiff_t>(kept), found.ranks.end(),
                    worse);
  found.ranks.resize(kept);
  for (Straggler& straggler : found.ranks) {
    const auto row = std::ranges::find(result.rank_table, straggler.rank, &store::ResultRank::rank);
    if (row == result.rank_table.end()) continue;
    straggler.host = row->host;
    straggler.device = row->device;
  }
  found.evidence = evidence_of(found, config::traits_of(result.backend).predicts());
  if (timed.worst_block) found.heat = timed.heat();
  return found;
}

}  // namespace harness::analysis
