#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "selftest/check_line.h"

namespace harness::selftest {

struct Performance;

struct PerformanceOptions {
  config::Model model;  // with the sequence to run
  config::Precision precision = config::Precision::bf16;
  std::int64_t micro_batch = 1;  // the global batch too: one forward and backward pass a step
  int warmup_steps = 20, steps = 30;
  double peak_flops = 0;  // dense, of the device; 0: unknown, then there is no MFU
  std::uint64_t seed = 1;
  int threads = 1;
  double roof_seconds = 3;  // to measure each roof, on a device that stays hot
  double tuning_s = 45;     // about how long the backend may time its choices first; 0: it takes its defaults
  backend::Tuning known{};  // choices that were timed before
  /// Called with a sentence at the end of each stage, for who wonders what takes so long.
  std::function<void(const std::string&)> stage = [](const std::string&) {};
  /// Called when the steps are timed and before one is profiled, which is where most can go wrong.
  std::function<void(const Performance&)> timed = [](const Performance&) {};
};

/// The most that the machine can do, measured on it; 0: unknown.
struct Roofs {
  double matmul_flops = 0;                    // FLOP/s of a large product of random numbers
  double copy_bytes_per_s = 0;                // read plus written
  std::vector<backend::AloneTiming> alone{};  // the step's own products and attentions that could be timed
  double alone_seconds() const;               // of all of these
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

/// One product's or other operation's part of a step, over all layers and micro-batches.
struct LineShare {
  std::string what;   // its label: "qkv"
  std::string phase;  // "forward"
  std::string kind;   // operation name
  std::string shape;  // of a matrix product, with what it does besides: "4096 x 6144 x 2048, bias"
  std::int64_t count = 0;
  double seconds = 0, mean_s = 0, share = 0;  // share: of the whole step
  double alone_s = 0;                         // mean of the same operation with nothing beside it; 0: unknown
  bool by_flop = false;                       // else `rate` is of its bytes
  double rate = 0;                            // FLOP/s or B/s
  std::string form;                           // backend::AloneTiming::form; "": unknown
  std::string kernels;                        // of one such operation, Executable::kernels(); "": unknown
};

struct Split {
  double step_seconds = 0;
  double busy_seconds = 0, idle_seconds = 0;  // idle: no operation at all
  double overlap_seconds = 0;                 // what the operations' own times add up to beyond busy_seconds
  std::vector<KindShare> kinds;               // longest first
  std::vector<LineShare> lines;               // longest first
};
/// Takes a profiled step apart. `kernels`: of each operation, or none are known. Pure.
Split split_by_kind(const program::Program& program, const std::vector<program::Interval>& intervals,
                    const Roofs& roofs, const std::vector<std::string>& kernels = {});

struct Performance {
  PerformanceOptions options;
  std::vector<double> seconds;  // of the timed steps
  double median_s = 0, fastest_s = 0, slowest_s = 0, tokens_per_s = 0;
  double first_median_s = 0, last_median_s = 0;  // of the first and last ten steps: does it slow down?
  double wall_s = 0;                             // of all timed steps by the host's clock, beside their sum
  machine::GpuStatistics gpu;                    // while they ran
  double model_flop = 0, noncausal_flop = 0;     // of one step
  double mfu = 0, mfu_noncausal = 0;             // 0: the peak is unknown
  double first_loss = 0, last_loss = 0;
  Roofs roofs;
  backend::Tuning tuning;  // the choices that the steps ran with
  Split split;             // no kinds: no step could be profiled, and `warnings` say why
  std::vector<std::string> warnings;
};

/// Times the training step of one rank and takes it apart. Throws Error if it cannot be timed.
Performance measure_performance(const backend::Backend& subject, const PerformanceOptions& options);

/// Checks that hold whatever the speed: losses that are numbers, and parts that add up to the step but for what
/// overlaps. Losses far from the logarithm of the vocabulary are noted.
CheckLine judge_performance(const Performance& performance);

}  // namespace harness::selftest
