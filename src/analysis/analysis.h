#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics.h"
#include "store/result.h"

namespace harness {

/// How fast one operation was, in the terms of nccl-tests.
struct Rates {
  std::string operation;
  double operation_seconds = 0;           // the step's time / repetitions
  double bytes = 0;                       // of one operation
  double algorithm_bytes_per_s = 0;       // bytes / time
  std::optional<double> bus_bytes_per_s;  // of a collective
  std::optional<double> limit_bytes_per_s;
  /// Faster than the links can carry it, or than the peak can compute it: something else was measured.
  bool impossible = false;
};

/// What is concluded about one case.
struct CaseSummary {
  int case_index = 0;
  std::string name;
  CaseStatus status = CaseStatus::pending;
  int blocks = 0;           // finished ones
  double step_seconds = 0;  // median over blocks of the block median; NaN if none
  double tokens_per_second = 0, flops_per_rank = 0;
  std::optional<double> mfu, mfu_noncausal, hfu;
  double peak_memory_bytes = 0;
  std::optional<Effect> effect;       // against the baseline; absent for the baseline itself and without pairs; of time
                                      // per token, which is the step time's where batches are equal
  std::optional<Effect> unthrottled;  // the same without the throttled rounds, where there are some and pairs remain
  double first_loss = 0;              // of the first step, warm-up or not, of the first block
  double last_loss = 0;               // of the last timed step: mean over the finished blocks
  // Of NVML's samples during the timed steps, means over blocks; NaN where there are none.
  double gpu_utilisation = 0, sm_clock_hz = 0, power_w = 0, tokens_per_joule = 0;
  std::optional<Rates> rates;  // of the operation that the step repeats, where it is one
  std::string reason;
};

struct Summary {
  std::vector<CaseSummary> cases;  // in file order
  bool partial = false;            // not every planned block is there
  bool unreliable = false;         // baseline_again is not the same as the baseline (verdict faster or slower)
  std::optional<Effect> control;   // baseline_again against baseline
  double noise = 0;                // standard deviation of the control's log ratios; NaN with fewer than two
  int failed_cases = 0;
  std::vector<std::int32_t> throttled_rounds;  // flagged, not left out: see CaseSummary::unthrottled
  std::vector<std::string> warnings;           // each with a remedy
};

struct SummaryOptions {
  IntervalKind interval = IntervalKind::yuen;
};
/// Blocks pair only within a round whose blocks all come from one session.
Summary summarise(const Result& result, const SummaryOptions& options = {});

/// 0: fine; 4: some case failed or the control did.
int exit_code(const Summary& summary);

}  // namespace harness
