#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace harness::analysis {

/// Something that ran, or seemed to run, for a while.
struct Occupant {
  double start_s = 0, end_s = 0;
  int priority = 0;    // the lowest of those that run at once has the moment for itself
  bool hides = false;  // what runs meanwhile with a higher number is hidden behind it
};

/// A stretch in which nothing ran.
struct Gap {
  double start_s = 0, end_s = 0;
  std::optional<std::size_t> before, after;  // whose moment ended there, and whose begins
};

/// Who had each moment of [0, step_s]: every moment belongs to one occupant or lies in a gap, so owned_s and the gaps
/// add up to step_s.
struct Occupancy {
  std::vector<double> owned_s;   // by occupant
  std::vector<double> hidden_s;  // by occupant: it ran, and one that hides it had the moment
  std::vector<Gap> gaps;
};

/// What lies outside [0, step_s], or is not a number, counts for nothing.
Occupancy occupy(std::span<const Occupant> occupants, double step_s);

}  // namespace harness::analysis
