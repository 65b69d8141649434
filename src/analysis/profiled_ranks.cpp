#include "analysis/profiled_ranks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/places.h"
#include "analysis/statistics.h"

namespace harness {
namespace {

constexpr double beyond_scatter = 3;  // times the others' median deviation
constexpr double chance = 0.05;       // that any rank is the latest so often where lateness falls on ranks at random
// One step is enough if the others agree as closely as this and the late one is as far off.
constexpr double flagrant_share = 0.1, flagrant_scatter = 10;

struct Own {
  double total = 0, compute_s = 0, idle_s = 0;
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
    if (i != at || late_s <= least_late_share * step_s || late_s <= beyond_scatter * scatter) continue;
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

}  // namespace

std::vector<Late> late_in_profiled_steps(const Result& result, std::int32_t& cases) {
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

bool is_straggler(const Late& late, std::int32_t ranks) {
  if (late.late_cases < late_often * late.cases || late.share <= least_late_share * late.cases) return false;
  if (late.flagrant_cases > 0 && late.flagrant_cases >= late_often * late.among_several) return true;
  const double by_chance = tail(late.cases, late.late_cases, late.expected / late.cases);
  return ranks * by_chance < chance;
}

}  // namespace harness
