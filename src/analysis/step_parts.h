#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "analysis/breakdown.h"

namespace harness::analysis {

/// An operation of a step, in seconds since the step began: of harness's own step, or of a traced program's.
struct StepOperation {
  double start_s = 0, end_s = 0;
  std::optional<Part> part = {};           // none: of no part, as copies of a user's program
  bool main = false;                       // on the stream with most computation
  std::string_view kind, group, phase;     // group "": none, it computes; phase "": not known
  bool recomputed = false;                 // done again for the backward pass
  double waiting_s = NAN, bubble_s = NAN;  // at its beginning: for later ranks, then for other stages; NaN: not known
};

/// A step, divided between its operations.
struct DividedStep {
  Breakdown breakdown;   // the case, role and rank are the caller's to fill in
  double no_part_s = 0;  // operations of no part, while nothing else ran
  double waits_s = 0;    // for later ranks and other stages, hidden or not
};

/// Every moment of [0, step_s] belongs to one operation or to none: to computation (on the main stream first, then on
/// others, such as the optimizer during the backward pass), then to the communication that computation waits for first
/// (a layer's own before that of gradients), or to the waiting at its beginning, then to operations of no part.
/// loading_s: of input data before the first operation; NaN: not known.
DividedStep divide_step(std::span<const StepOperation> operations, double step_s, double loading_s);

}  // namespace harness::analysis
