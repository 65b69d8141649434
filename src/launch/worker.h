#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "launch/messages.h"

namespace harness::launch {

/// What a worker runs: everything made from its order. In probe mode there is no executable.
struct Work {
  std::uint64_t program_hash = 0;
  NameValues identity;
  std::unique_ptr<program::Program> program;  // lowered; before the executable that refers to it
  std::unique_ptr<program::InputSource> inputs;
  std::unique_ptr<backend::Executable> executable;
  bool keeps_timeline = false;                           // else only its totals go home
  std::function<void(measure::BlockSamples&)> probe;     // instead of an executable
  std::function<void(measure::BlockSamples&)> conclude;  // after an executable's steps; optional
  std::unique_ptr<workloads::OutputCheck> check;         // of what the steps computed, after all else; optional
};
using WorkFactory = std::function<Work(const WorkerOrder&)>;

/// The work that an order names: the workload's Program on the backend.
Work make_work(const WorkerOrder& order);

/// Runs a worker from its order to its end. Speaks with its supervisor over descriptors of its own (WorkerChannel).
/// Returns its exit code, or ends the process with it.
int run_worker(const WorkFactory& make);

}  // namespace harness::launch
