#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// Turns compute operations into launches on fixed addresses. Whatever they need besides (algorithms, workspaces,
/// scratch) is chosen and allocated then, per stream, so that operations of different streams never share any; a launch
/// allocates nothing and may be captured. It must outlive them, as `warnings` must outlive it: it gets those
/// for the results, of choices that were not tuned and attention that could not be fused.
using Compiler = std::function<std::function<void(Stream)>(const program::Operation& operation)>;
Compiler make_compiler(const backend::ExecutableRequest& request,
                       const std::function<backend::Tensor(const program::View&)>& tensor,
                       std::vector<std::string>& warnings);

/// One launch of the host: an operation, or the communications of a fused group, which start as one.
struct Launch {
  program::StreamId stream = 0;
  std::vector<program::OperationId> members;
  std::vector<program::OperationId> waits;  // of other streams: for their events
  bool operator==(const Launch&) const = default;
};

/// An operation list in the order in which the host puts it on streams.
struct LaunchList {
  std::vector<Launch> launches;
  std::set<program::OperationId> with_event;  // recorded behind the launch: another stream waits for it
  std::set<program::StreamId> streams;        // but for stream 0
};

/// Every stream starts after what stream 0 held before (a fork) and stream 0 ends after all others (a join), so that
/// the list can be captured from stream 0 and lists follow each other in its order. Launches keep the order of the
/// list, in which all ranks start their communications; a fused group stands where its last member does. Pure. Throws
/// Error for an operation that waits for a part of a group that is not complete where it stands.
LaunchList make_launches(const std::vector<program::Operation>& operations, std::size_t streams);

/// By stream: high for one that communicates in the step, low for one that computes beside the compute stream.
std::vector<Priority> priorities_of(const program::Program& program);

/// A Program on one GPU.
std::unique_ptr<backend::Executable> make_executable(const backend::ExecutableRequest& request);

/// NVIDIA GPUs: cuBLASLt for matrix products, cuDNN for fused attention, NCCL for communication, own kernels for the
/// rest.
const backend::Backend& cuda_backend();

}  // namespace harness::cuda
