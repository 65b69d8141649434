#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "selftest/check_line.h"

namespace harness::selftest {

struct PerformanceOptions {
  config::Model model;
  config::Precision precision = config::Precision::bf16;
  std::int64_t micro_batch = 1;  // the global batch too: one forward and backward pass a step
  int warmup_steps = 20, steps = 30;
  double peak_flops = 0;  // dense, of the device; 0: unknown, then there is no MFU
  std::uint64_t seed = 1;
  int threads = 1;
  double roof_seconds = 1;  // to measure each roof
};

/// What the machine can do at most, measured on it; 0: unknown.
struct Roofs {
  double matmul_flops = 0;      // FLOP/s of a large product of random numbers
  double product_seconds = 0;   // of all products of the step, each alone
  double copy_bytes_per_s = 0;  // read plus written
};

/// One operation kind's part of a step.
struct KindShare {
  std::string kind;  // operation name
  std::int64_t operations = 0;
  double seconds = 0, share = 0;  // share: of the whole step
  double flop = 0, bytes = 0;     // what is counted, over all its operations
  bool by_flop = false;           // else it is judged by its bytes
  double rate = 0, roof = 0;      // FLOP/s or B/s; roof 0: unknown
  double ratio = 0;               // rate / roof; 0: unknown
};

struct Split {
  double step_seconds = 0;
  double busy_seconds = 0, idle_seconds = 0;  // idle: no operation at all
  std::vector<KindShare> kinds;               // longest first
};
/// Takes a profiled step apart. Pure.
Split split_by_kind(const program::Program& program, const std::vector<backend::Interval>& intervals,
                    const Roofs& roofs);

struct Performance {
  PerformanceOptions options;
  std::vector<double> seconds;  // of the timed steps
  double median_s = 0, fastest_s = 0, slowest_s = 0, tokens_per_s = 0;
  double model_flop = 0, noncausal_flop = 0;  // of one step
  double mfu = 0, mfu_noncausal = 0;          // 0: the peak is unknown
  double first_loss = 0, last_loss = 0;
  Roofs roofs;
  Split split;
  std::vector<std::string> warnings;
};

/// Times the training step of one rank and takes it apart. Throws Error.
Performance measure_performance(const backend::Backend& subject, const PerformanceOptions& options);

/// What must hold whatever the speed: finite losses, and parts that add up to the step.
CheckLine judge_performance(const Performance& performance);

}  // namespace harness::selftest
