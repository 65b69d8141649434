#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "measure/overlap.h"
#include "workloads/workload.h"

namespace harness::measure {

enum class BlockMode : std::uint8_t {
  probe,     // no step: identity, peak of matrix products
  tuning,    // no step: times the choices that the Program leaves open
  observe,   // untimed: one step, with the communication library's log
  timeline,  // untimed: warm-up and one profiled step
  timed,     // warm-up and timed steps
};
const char* name_of(BlockMode mode);

/// One operation kind's share of one rank's profiled step.
struct KindTotal {
  std::string kind;  // operation name
  std::string stream;
  double seconds = 0;
  std::int64_t operations = 0;
};

/// What one rank brings home from a block.
struct BlockSamples {
  std::vector<double> step_seconds;  // warm-up steps first, then the timed ones
  std::vector<float> losses;         // of the same steps
  double timed_total_seconds = 0;    // around all timed steps; must agree with their sum
  double build_seconds = 0, connect_seconds = 0, initialize_seconds = 0;
  double first_step_seconds = 0;            // from the worker's start to the end of its first step
  std::int64_t peak_memory_bytes = 0;       // resident, high-water mark
  std::vector<backend::Interval> timeline;  // BlockMode::timeline
  double profiled_step_seconds = 0;
  double loading_s = 0;  // of it, or beside it: filling the inputs of the profiled step
  std::vector<KindTotal> totals;
  std::vector<float> communication_s;  // BlockMode::timeline: communication_durations() of that step; empty: too many
  StepSplit split;                     // BlockMode::timeline: of that step
  double peak_flops = 0;               // BlockMode::probe: of products in the block's precision; 0: not measured
  std::string device;                  // BlockMode::probe: as Backend::device()
  std::vector<std::pair<std::string, std::string>> tuning;  // BlockMode::tuning: what was found, by key
  std::string nccl_log;                                     // BlockMode::observe: as much of it as is kept
  machine::GpuStatistics gpu;                               // BlockMode::timed: of this rank's device
  std::vector<std::pair<std::string, std::string>> identity;
  std::vector<std::string> warnings;
};

/// Runs the steps of one block on an initialised Executable. samples.first_step_seconds must hold the time since the
/// worker's start; the first step's is added. Collective.
void run_block(backend::Executable& executable, const program::Program& program, const program::InputSource& inputs,
               BlockMode mode, int warmup_steps, int steps, BlockSamples& samples);

/// Runs one more step, the `step`-th, on numbers whose result is known. Throws Error if it is another. Collective.
void check_outputs(backend::Executable& executable, const program::InputSource& inputs,
                   const workloads::OutputCheck& check, std::int64_t step);

}  // namespace harness::measure
