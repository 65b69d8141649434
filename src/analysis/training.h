#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

// Whether a case trains as the baseline does. A fault that leaves out a reduction or takes a stale activation makes a
// step faster, and on random tokens the loss comes to the same end with or without it: ln V. The gradients of the first
// step show it.

/// A number in which two cases that train alike agree, up to the order of sums and the rounding of their precisions.
struct SignOfTraining {
  std::string what;      // "the squared norm of …"
  double value = 0;      // of the case
  double reference = 0;  // of the baseline
  double allowed = 0;    // relative difference
  double difference() const { return std::abs(value / reference - 1); }
  bool agrees() const { return difference() <= allowed; }
};

/// Whether the case asks for another training than the baseline: other batches, or a variable with
/// Mathematics::another. Its time compares per unit of work, and it is no better way to do the same.
bool asks_for_another_training(const store::Result& result, std::int32_t case_index);

/// Of the gradients of the first step, of the loss of the third and of the last. Empty where another training is asked
/// for, and where nothing is known.
std::vector<SignOfTraining> signs_of_training(const store::Result& result, std::int32_t case_index);

/// The first sign that does not agree, as a sentence; "": the case trains as the baseline does, as far as is known.
std::string why_trains_differently(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
