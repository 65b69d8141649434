#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// Turns compute operations into launches on fixed addresses. It also chooses and allocates what they need (algorithms,
/// workspaces, scratch), per stream, so that operations on different streams never share any; a launch allocates
/// nothing and may be captured. The Compiler must outlive the launches, and `warnings` the Compiler. `warnings`
/// receives, for the results, the choices that were not tuned and attention that could not be fused.
using Compiler = std::function<std::function<void(Stream)>(const program::Operation& operation)>;
Compiler make_compiler(const backend::ExecutableRequest& request,
                       const std::function<backend::Tensor(const program::View&)>& tensor,
                       std::vector<std::string>& warnings);

/// One host-side launch: an operation, or the communications of a fused group, which start together.
struct Launch {
  program::StreamId stream = 0;
  std::vector<program::OperationId> members;
  std::vector<program::OperationId> waits;  // on events of other streams
  bool operator==(const Launch&) const = default;
};

/// An operation list in the order in which the host enqueues it.
struct LaunchList {
  std::vector<Launch> launches;
  std::set<program::OperationId> with_event;  // recorded after the launch: another stream waits for it
  std::set<program::StreamId> streams;        // in use, except stream 0
};

/// Orders a list into launches. Every stream starts after the earlier work of stream 0 (a fork), and stream 0 ends
/// after all others (a join), so that stream 0 can capture the list and successive lists run in its order. Launches
/// keep the order of the list, in which all ranks start their communications; a fused group takes the place of its last
/// member. Pure. Throws Error if an operation waits for a member of a fused group that is not complete at that point.
LaunchList make_launches(const std::vector<program::Operation>& operations, std::size_t streams);

/// Returns a priority per stream: high if it communicates in the step, low if it computes beside the compute stream.
std::vector<Priority> priorities_of(const program::Program& program);

/// Makes the Executable of a Program on one GPU.
std::unique_ptr<backend::Executable> make_executable(const backend::ExecutableRequest& request);

/// NVIDIA GPUs: cuBLASLt for matrix products, cuDNN for fused attention, NCCL for communication, own kernels for the
/// rest.
const backend::Backend& cuda_backend();

}  // namespace harness::cuda
