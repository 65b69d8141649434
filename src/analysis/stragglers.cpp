#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/cases.h"
#include "analysis/findings.h"
#include "analysis/verdict.h"
#include "base/median.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

constexpr std::size_t max_stragglers = 16;
constexpr double min_late_share = 0.02;  // of the step: less is nobody's fault
constexpr double late_often = 2.0 / 3;   // of the steps looked at
constexpr double beyond_scatter = 3;     // times the others' median deviation
constexpr double chance = 0.05;          // that any rank is the latest so often where lateness falls on ranks at random
// One step is enough if the others agree as closely as this and the late one is as far off.
constexpr double flagrant_share = 0.1, flagrant_scatter = 10;

// How late a rank was in the profiled steps: its own time (computing and idle) beyond the median of those that do the
// same.
struct Lateness {
  std::int32_t cases = 0, late_cases = 0;
  std::int32_t among_several = 0, flagrant_cases = 0;  // of cases with others to agree with each other
  double expected = 0;  // sum over cases of the chance to be the latest of those that do the same
  double late_s = 0, share = 0, compute_s = 0, idle_s = 0;  // sums over cases
};

// How far each value lies beyond the median of the others.
std::vector<double> beyond_others(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t others = values.size() - 1;
  std::vector<double> beyond;
  for (const double value : values) {
    const auto place = static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
    const auto other = [&](std::size_t i) { return sorted[i < place ? i : i + 1]; };
    beyond.push_back(value - (other((others - 1) / 2) + other(others / 2)) / 2);
  }
  return beyond;
}

// The median deviation of the others from the median of all; 0 where there is one other.
double scatter_of_others(const std::vector<double>& values, std::size_t left_out) {
  if (values.size() <= 2) return 0;
  const double middle = median(values);
  std::vector<double> deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != left_out) deviations.push_back(std::abs(values[i] - middle));
  }
  return median(deviations);
}

using Splits = std::map<std::int32_t, const store::ResultSplit*>;  // by rank

// Ranks of one case that do the same work.
void compare_alike(const CaseRanks::Ranks& ranks, const Splits& splits, double step_s, std::vector<Lateness>& late) {
  std::vector<double> own, compute, idle;
  for (const std::int32_t rank : ranks) {
    const store::ResultSplit& split = *splits.at(rank);
    compute.push_back(split.compute_s);
    idle.push_back(split.idle_s);
    own.push_back(split.compute_s + split.idle_s);
  }
  const auto latest = static_cast<std::size_t>(std::ranges::max_element(own) - own.begin());
  const double scatter = scatter_of_others(own, latest);
  const bool several = ranks.size() > 2;
  const std::vector<double> late_s = beyond_others(own), compute_s = beyond_others(compute),
                            idle_s = beyond_others(idle);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Lateness& l = late[ranks[i]];
    ++l.cases;
    if (several) ++l.among_several;
    l.expected += 1 / static_cast<double>(ranks.size());
    l.late_s += late_s[i];
    l.share += late_s[i] / step_s;
    l.compute_s += compute_s[i];
    l.idle_s += idle_s[i];
    if (i != latest || late_s[i] <= min_late_share * step_s || late_s[i] <= beyond_scatter * scatter) continue;
    ++l.late_cases;
    if (several && late_s[i] > flagrant_share * step_s && late_s[i] > flagrant_scatter * scatter) ++l.flagrant_cases;
  }
}

// By rank; `cases` is how many profiled steps could tell.
std::vector<Lateness> lateness(const store::Result& result, std::int32_t& cases) {
  std::vector<Lateness> late(result.rank_count());
  std::map<std::int32_t, Splits> by_case;
  for (const store::ResultSplit& split : result.splits) by_case[split.case_index][split.rank] = &split;
  for (const auto& [case_index, splits] : by_case) {
    const CaseRanks ranks(result, case_index);
    const bool complete = std::ssize(splits) == ranks.count() && ranks.count() <= result.ranks &&
                          splits.begin()->first == 0 && splits.rbegin()->first == ranks.count() - 1;
    double step_s = 0;
    for (const auto& [rank, split] : splits) step_s = std::max(step_s, split->step_s);
    const auto has_others = [](const CaseRanks::Ranks& alike) { return alike.size() > 1; };
    if (!complete || !(step_s > 0) || std::ranges::none_of(ranks.alike(), has_others)) continue;
    ++cases;
    for (const CaseRanks::Ranks& alike : ranks.alike()) {
      if (has_others(alike)) compare_alike(alike, splits, step_s, late);
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

Straggler straggler_of(const store::Result& result, std::int32_t rank, const Lateness& late) {
  const double n = late.cases;
  Straggler straggler{.rank = rank,
                      .late_cases = late.late_cases,
                      .late_s = late.late_s / n,
                      .late_share = late.share / n,
                      .compute_s = late.compute_s / n,
                      .idle_s = late.idle_s / n,
                      .named = is_straggler(late, result.ranks)};
  const auto row = std::ranges::find(result.rank_table, rank, &store::ResultRank::rank);
  if (row == result.rank_table.end()) return straggler;
  straggler.host = row->host;
  straggler.device = row->device;
  return straggler;
}

}  // namespace

Stragglers find_stragglers(const store::Result& result) {
  Stragglers found;
  const std::vector<Lateness> late = lateness(result, found.cases);
  if (found.cases == 0) return found;
  for (std::int32_t rank = 0; rank < result.ranks; ++rank) {
    const Lateness& own = late[static_cast<std::size_t>(rank)];
    found.late_share.push_back(own.cases > 0 ? own.share / own.cases : NAN);
    if (own.cases > 0) found.ranks.push_back(straggler_of(result, rank, own));
  }
  std::ranges::stable_sort(found.ranks, std::ranges::greater(),
                           [](const Straggler& s) { return std::tuple(s.named, s.late_s); });
  if (found.ranks.size() > max_stragglers) found.ranks.resize(max_stragglers);
  found.evidence = fmt::format(
      "Evidence: the {} of {}. In each, a rank's own time (computing or idle) is compared with the median of the ranks "
      "that do the same work; early ranks wait in communication for late ones.",
      step_in_parts(result), plural(found.cases, "case"));
  return found;
}

}  // namespace harness::analysis
