#pragma once

#include <vector>

namespace harness {

/// From start_s up to, not including, end_s.
struct Stretch {
  double start_s = 0, end_s = 0;
  bool operator==(const Stretch&) const = default;
};
/// Stretches in order that do not touch: what united() gives, and what the others take.
using Stretches = std::vector<Stretch>;

/// The points covered by any of them. Empty and reversed ones cover nothing.
Stretches united(std::vector<Stretch> stretches);
/// The points of `a` that are not in `b`.
Stretches without(const Stretches& a, const Stretches& b);
double length(const Stretches& stretches);

}  // namespace harness
