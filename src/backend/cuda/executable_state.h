#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/executable.h"
#include "backend/cuda/ranges.h"
#include "backend/cuda/share.h"
#include "machine/gpu_monitor.h"

// Private to the sources of CudaExecutable.
namespace harness::cuda {

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
  std::vector<std::string> kernels;  // of each operation, in the last profiled step
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
