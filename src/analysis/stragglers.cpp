#include "analysis/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/profiled_ranks.h"
#include "analysis/statistics.h"
#include "analysis/timed_steps.h"

namespace harness {
namespace {

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
  const std::vector<Late> late = late_in_profiled_steps(result, found.cases);
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
      s.named = is_straggler(late[r], result.ranks);
    }
    // Where ranks do not wait for each other, step times do tell.
    s.named = s.named || (static_cast<double>(s.last_steps) > late_often * static_cast<double>(timed.steps) &&
                          s.last_excess_share > least_late_share);
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
