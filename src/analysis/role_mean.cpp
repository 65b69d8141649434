#include "analysis/role_mean.h"

#include <algorithm>
#include <cmath>

namespace harness {
namespace {

// Over ranks; as ResultSplit.
struct Means {
  double compute_s = 0, communication_s = 0, exposed_s = 0, overlapped_s = 0, idle_s = 0;
  double waiting_s = 0, bubble_s = 0;  // NaN: not known
  double step_s() const { return compute_s + exposed_s + idle_s; }
};

bool adds_up(const ResultSplit& s) {
  return s.step_s > 0 && std::abs(s.compute_s + s.exposed_s + s.idle_s - s.step_s) < most_unexplained * s.step_s;
}

Means mean_of(std::span<const ResultSplit* const> splits) {
  Means m;
  const double weight = 1 / static_cast<double>(splits.size());
  for (const ResultSplit* s : splits) {
    m.compute_s += s->compute_s * weight;
    m.communication_s += s->communication_s * weight;
    m.exposed_s += s->exposed_s * weight;
    m.overlapped_s += s->overlapped_s * weight;
    m.idle_s += s->idle_s * weight;
    m.waiting_s += s->waiting_s * weight;
    m.bubble_s += s->bubble_s * weight;
  }
  return m;
}

bool is_idle(Part part) {
  return part == Part::loading || part == Part::idle;
}
bool is_communication(Part part) {
  return !is_computation(part) && !is_idle(part);
}

double sum_of(const Parts& parts, bool (*of)(Part)) {
  double sum = 0;
  for (std::size_t i = 0; i < part_count; ++i) {
    if (of(part_at(i))) sum += parts.seconds[i].value_or(0);
  }
  return sum;
}

void scale(Parts& parts, bool (*of)(Part), double factor) {
  for (std::size_t i = 0; i < part_count; ++i) {
    if (of(part_at(i)) && parts.seconds[i]) *parts.seconds[i] *= factor;
  }
}

void scale(NamedSeconds& names, double factor) {
  for (auto& [name, s] : names) s *= factor;
}

// How much of what was waited shows, by the rank that tells: the rest is hidden behind computation.
double shown(double waited_s, double shown_of_one_s, double waited_of_one_s, const Means& mean) {
  if (waited_of_one_s > 0) return waited_s * std::min(1.0, shown_of_one_s / waited_of_one_s);
  return mean.communication_s > 0 ? waited_s * mean.exposed_s / mean.communication_s : 0;
}

// Divides what is exposed into waiting, bubble and communication. False if `one` cannot tell.
bool divide(Parts& parts, const ResultSplit& split_of_one, const Means& mean) {
  const double communication = parts.exposed();
  const auto waiting = parts[Part::waiting], bubble = parts[Part::bubble];
  double left = mean.exposed_s;
  const auto take = [&](Part part, const std::optional<double>& of_one, double waited_of_one_s, double waited_s) {
    if (!of_one) return;
    auto& seconds = parts.seconds[static_cast<std::size_t>(part)];
    seconds = std::min(left, shown(waited_s, *of_one, waited_of_one_s, mean));
    left -= *seconds;
  };
  take(Part::waiting, waiting, split_of_one.waiting_s, mean.waiting_s);
  take(Part::bubble, bubble, split_of_one.bubble_s, mean.bubble_s);
  if (!(communication > 0)) return left < 1e-9 * mean.step_s();
  scale(parts, is_exposed_communication, left / communication);
  return true;
}

}  // namespace

Breakdown mean_of_role(const Breakdown& one, std::span<const ResultSplit* const> splits) {
  if (splits.empty()) return one;
  const ResultSplit* own = nullptr;
  for (const ResultSplit* s : splits) {
    if (s == nullptr || !adds_up(*s)) return one;
    if (s->rank == one.rank) own = s;
  }
  if (own == nullptr) return one;
  const Means mean = mean_of(splits);
  const double compute = sum_of(one.parts, is_computation), idle = sum_of(one.parts, is_idle),
               exposed = sum_of(one.parts, is_communication);
  const auto cannot_tell = [](double of_one, double of_all) { return !(of_one > 0) && of_all > 0; };
  if (cannot_tell(compute, mean.compute_s) || cannot_tell(idle, mean.idle_s) || cannot_tell(exposed, mean.exposed_s)) {
    return one;
  }
  Breakdown role = one;
  role.step_s = mean.step_s();
  const double compute_factor = compute > 0 ? mean.compute_s / compute : 0;
  const double idle_factor = idle > 0 ? mean.idle_s / idle : 0;
  scale(role.parts, is_computation, compute_factor);
  scale(role.parts, is_idle, idle_factor);
  scale(role.other_compute, compute_factor);
  scale(role.idle, idle_factor);
  if (own->overlapped_s > 0) scale(role.overlapped, mean.overlapped_s / own->overlapped_s);
  const bool known = std::isfinite(mean.waiting_s) && std::isfinite(mean.bubble_s);
  if (!known) {
    scale(role.parts, is_communication, exposed > 0 ? mean.exposed_s / exposed : 0);
  } else if (!divide(role.parts, *own, mean)) {
    return one;
  }
  return role;
}

}  // namespace harness
