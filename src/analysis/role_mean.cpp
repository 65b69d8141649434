#include "analysis/breakdown.h"

#include <algorithm>
#include <cmath>

namespace harness::analysis {
namespace {

bool adds_up(const store::ResultSplit& s) {
  return s.step_s > 0 && std::abs(s.compute_s + s.exposed_s + s.idle_s - s.step_s) < max_unexplained * s.step_s;
}

// Over ranks. Its step is what its parts add up to.
store::ResultSplit mean_of(std::span<const store::ResultSplit* const> splits) {
  store::ResultSplit m;
  m.waiting_s = m.bubble_s = 0;
  const double weight = 1 / static_cast<double>(splits.size());
  using S = store::ResultSplit;
  for (double S::*time :
       {&S::compute_s, &S::communication_s, &S::exposed_s, &S::overlapped_s, &S::idle_s, &S::waiting_s, &S::bubble_s}) {
    for (const S* split : splits) m.*time += split->*time * weight;
  }
  m.step_s = m.compute_s + m.exposed_s + m.idle_s;
  return m;
}

bool is_idle(Part part) {
  return part == Part::loading || part == Part::idle;
}
bool is_communication_or_waiting(Part part) {
  return !is_computation(part) && !is_idle(part);
}

void scale(Parts& parts, bool (*wanted)(Part), double factor) {
  for (const Part part : all_parts) {
    if (wanted(part) && parts[part]) *parts[part] *= factor;
  }
}

template <class Key>
void scale(std::vector<std::pair<Key, double>>& list, double factor) {
  for (auto& [key, s] : list) s *= factor;
}

// Exposed share of the waiting time, scaled from the rank that has a timeline; the rest is hidden behind computation.
double exposed_waiting(double waited_s, double exposed_of_rank_s, double waited_of_rank_s,
                       const store::ResultSplit& mean) {
  if (waited_of_rank_s > 0) return waited_s * std::min(1.0, exposed_of_rank_s / waited_of_rank_s);
  return mean.communication_s > 0 ? waited_s * mean.exposed_s / mean.communication_s : 0;
}

// Divides what is exposed into waiting, bubble and communication. False if the rank with a timeline has no
// communication to divide it by.
bool divide(Parts& parts, const store::ResultSplit& split_of_rank, const store::ResultSplit& mean) {
  const double communication = parts.exposed();
  double left = mean.exposed_s;
  const auto take = [&](Part part, double waited_of_rank_s, double waited_s) {
    if (!parts[part]) return;
    parts[part] = std::min(left, exposed_waiting(waited_s, *parts[part], waited_of_rank_s, mean));
    left -= *parts[part];
  };
  take(Part::waiting, split_of_rank.waiting_s, mean.waiting_s);
  take(Part::bubble, split_of_rank.bubble_s, mean.bubble_s);
  if (!(communication > 0)) return left < 1e-9 * mean.step_s;
  scale(parts, is_exposed_communication, left / communication);
  return true;
}

// The time that a rank's communications take, hidden or not, without the waiting for others.
double communicates_s(const store::ResultSplit& split) {
  const double waited_s = split.waiting_s + split.bubble_s;
  return std::isfinite(waited_s) ? std::max(0.0, split.communication_s - waited_s) : split.communication_s;
}

// Kinds as their parts: by what all computations, what all exposed communications and what all communications take on
// the other ranks.
void scale_kinds(Breakdown& role, const Breakdown& of_rank, const store::ResultSplit& own,
                 const store::ResultSplit& mean, double compute_factor) {
  const double exposed_of_rank = of_rank.parts.exposed();
  const double exposed_factor = exposed_of_rank > 0 ? role.parts.exposed() / exposed_of_rank : 1;
  const double of_rank_s = communicates_s(own);
  const double of_all_s = communicates_s(mean);
  const double communication_factor = of_rank_s > 0 ? of_all_s / of_rank_s : 1;
  for (KindTime& time : role.kinds) {
    const bool communicates = is_communication(time.kind);
    time.takes_s *= communicates ? communication_factor : compute_factor;
    time.owns_s *= communicates ? exposed_factor : compute_factor;
  }
}

// The split of the rank itself; nullptr where a split is missing or does not add up.
const store::ResultSplit* split_of(const Breakdown& of_rank, std::span<const store::ResultSplit* const> splits) {
  const store::ResultSplit* own = nullptr;
  for (const store::ResultSplit* split : splits) {
    if (split == nullptr || !adds_up(*split)) return nullptr;
    if (split->rank == of_rank.rank) own = split;
  }
  return own;
}

}  // namespace

Breakdown mean_of_role(const Breakdown& of_rank, std::span<const store::ResultSplit* const> splits) {
  const store::ResultSplit* own = split_of(of_rank, splits);
  if (own == nullptr) return of_rank;
  const store::ResultSplit mean = mean_of(splits);
  const double compute = of_rank.parts.sum(is_computation), idle = of_rank.parts.sum(is_idle),
               exposed = of_rank.parts.sum(is_communication_or_waiting);
  const auto missing = [](double of_rank_s, double of_all_s) { return !(of_rank_s > 0) && of_all_s > 0; };
  if (missing(compute, mean.compute_s) || missing(idle, mean.idle_s) || missing(exposed, mean.exposed_s)) {
    return of_rank;
  }
  Breakdown role = of_rank;
  role.step_s = mean.step_s;
  const double compute_factor = compute > 0 ? mean.compute_s / compute : 0;
  const double idle_factor = idle > 0 ? mean.idle_s / idle : 0;
  scale(role.parts, is_computation, compute_factor);
  scale(role.parts, is_idle, idle_factor);
  scale(role.other_compute, compute_factor);
  scale(role.idle, idle_factor);
  const double overlapped_factor = own->overlapped_s > 0 ? mean.overlapped_s / own->overlapped_s : 1;
  for (auto& [part, s] : role.overlapped) s *= is_computation(part) ? compute_factor : overlapped_factor;
  const bool known = std::isfinite(mean.waiting_s) && std::isfinite(mean.bubble_s);
  if (!known) {
    scale(role.parts, is_communication_or_waiting, exposed > 0 ? mean.exposed_s / exposed : 0);
  } else if (!divide(role.parts, *own, mean)) {
    return of_rank;
  }
  scale_kinds(role, of_rank, *own, mean, compute_factor);
  return role;
}

}  // namespace harness::analysis
