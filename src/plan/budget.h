#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "program/count.h"

namespace harness::plan {

/// The operations of one kind, label and phase in a step of one rank, apart what is done for the second time.
struct BudgetLine {
  std::string kind;  // operation name: "matmul"
  std::string what;  // label: "qkv"; "" where a kind has many
  program::Phase phase = program::Phase::forward;
  bool recomputed = false;
  std::int64_t operations = 0;
  double flop = 0;                                // model FLOP, causal attention at half
  double bytes = 0;                               // every operand read or written once
  program::Bound bound = program::Bound::memory;  // which rate limits it
  double least_s = 0;  // at the hardware's rate: per operation the longer of FLOP / peak and bytes / bandwidth
};

/// Where the time of a step must go on the stated hardware: computation only, one operation after the other, without
/// launch gaps. Communication is not in it: what of it is exposed is what a sweep measures.
struct Budget {
  std::vector<BudgetLine> lines;     // in the order of the step
  std::int64_t role = 0, roles = 1;  // the role that takes longest is shown
  double least_s = 0;                // sum over the lines, less what may run beside the compute stream
  double model_flop = 0;             // of this role's rank in one step, as MFU counts it
  program::DeviceRates rates;

  /// MFU if the step took that long and nothing else.
  double mfu(double step_s) const { return model_flop / step_s / rates.flops; }
};

/// Bounds the step as the backend runs it. Throws Error if the hardware's rates for the case's precision are not
/// stated, or the case is impossible or computes nothing.
Budget budget(const config::Model& model, config::BackendKind backend, const PlannedCase& planned,
              const config::Hardware& hardware);

}  // namespace harness::plan
