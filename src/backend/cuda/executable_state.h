#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/executable.h"
#include "backend/cuda/ranges.h"
#include "machine/gpu_monitor.h"

// Private to the sources of CudaExecutable.
namespace harness::cuda {

/// By stream: high for one that communicates in the step, low for one that computes beside the compute stream.
inline std::vector<Priority> priorities_of(const program::Program& program) {
  std::vector<Priority> priorities(program.streams.size(), Priority::normal);
  for (const program::Operation& op : program.step) {
    Priority& priority = priorities.at(op.stream);
    if (program::is_communication(op.action)) {
      priority = Priority::high;
    } else if (op.stream != 0 && priority != Priority::high) {
      priority = Priority::low;
    }
  }
  return priorities;
}

struct CudaExecutable::State {
  Device device;
  program::Arena arena;
  Memory memory;
  std::vector<OwnedStream> streams;
  Collectives collectives;
  std::unique_ptr<Compiler> compiler;
  List init, step;
  std::unique_ptr<Staging> staging;
  std::optional<Graph> graph;
  Ranges ranges;  // of the step, for Nsight Systems
  machine::GpuMonitor monitor;
  std::vector<std::string> warnings;
  bool broken = false;

  explicit State(const backend::ExecutableRequest& request)
      : device(use_device(request)),
        arena(program::plan_arena(*request.program)),
        collectives(request),
        ranges(plan_ranges(request.program->step)),
        monitor(device.bus_id),
        warnings(device.warnings) {
    memory = Memory(Memory::Kind::device, std::max<std::int64_t>(arena.bytes, 1), "the step's buffers");
    for (const Priority priority : priorities_of(*request.program)) streams.emplace_back(priority);
  }
};

}  // namespace harness::cuda
