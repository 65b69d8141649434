#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "launch/messages.h"

namespace harness {

/// What a worker runs: everything made from its order. In probe mode there is no executable.
struct Work {
  std::uint64_t program_hash = 0;
  NameValues identity;
  std::unique_ptr<Program> program;  // lowered; before the executable that refers to it
  std::unique_ptr<InputSource> inputs;
  std::unique_ptr<Executable> executable;
  bool speaks_for_role = false;                 // its timeline is kept whole
  std::function<void(BlockSamples&)> probe;     // instead of an executable
  std::function<void(BlockSamples&)> conclude;  // after an executable's steps; optional
  std::unique_ptr<OutputCheck> check;           // of what the steps computed, after all else; optional
};
using WorkFactory = std::function<Work(const WorkerOrder&)>;

/// The work that an order names: the workload's Program on the backend.
Work make_work(const WorkerOrder& order);

/// A worker's whole life. Talks to its supervisor through stdin and stdout, which nobody else may use: what a library
/// prints to stdout goes to stderr. Returns, or ends the process with, its exit code.
int run_worker(const WorkFactory& make);

}  // namespace harness
