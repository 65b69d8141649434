#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "program/operation.h"
#include "program/timeline.h"

namespace harness::cuda {

// ---- device activity from CUPTI -------------------------------------------------------------------------------------

/// One device activity: a kernel, a copy or a fill.
struct ActivityRecord {
  std::uint32_t correlation_id = 0;  // of the API call that launched it
  std::uint64_t external_id = 0;     // pushed at its launch; 0: none
  std::uint64_t start_ns = 0, end_ns = 0;
};

/// Records device activity through CUPTI, which is loaded on first use. Only one recording at a time per process, and
/// none beside another profiler. Slows launches down: not for timed steps. Nothing here throws; CUPTI keeps its threads
/// and buffers for the life of the process.
class ActivityRecorder {
 public:
  ActivityRecorder() = default;
  ~ActivityRecorder();  // discards an unfinished recording; does not wait for the device
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  /// Starts recording. Returns "" or why it cannot: CUPTI is missing, or the driver does not permit it.
  std::string start();
  /// Tags everything that this thread launches before pop() with `id` (not 0). The innermost tag counts.
  void push(std::uint64_t id);
  void pop();
  /// Ends the recording and returns its records, none if CUPTI delivers none. The device must have finished the
  /// recorded work (cudaDeviceSynchronize). `problem` says what is missing: dropped records, records without times, a
  /// CUPTI error; "" if CUPTI reports nothing missing.
  std::vector<ActivityRecord> stop(std::string& problem);

 private:
  bool recording_ = false;
};

/// Maps device activity to operations: a launch has external id i + 1, where i is its first member. Returns, for each
/// operation whose launch left records, the time from the start of its first record to the end of its last, in seconds
/// since the earliest record, in the order of the operations. Ignores records without an external id.
std::vector<program::Interval> operation_intervals(std::span<const ActivityRecord> records,
                                                   std::span<const Launch> launches);
/// When a launch ran. The extents are keyed by the first member of each launch.
struct Extent {
  double start_s = 0, end_s = 0;
};
std::vector<program::Interval> operation_intervals(const std::map<program::OperationId, Extent>& extents,
                                                   std::span<const Launch> launches);

// ---- NVTX ranges ----------------------------------------------------------------------------------------------------

// Names for Nsight Systems: the host time of a step as nested NVTX ranges in the domain "harness", step > phase with
// its micro-batch > layer. They cost next to nothing unless a profiler is attached. For a step that is one graph
// launch, they show the capture, and its kernels appear only under the range of the step.

/// The ranges that are open while an operation is issued, outermost first.
using RangePath = std::vector<std::string>;
RangePath range_path(const program::Label& label);

/// Opens and closes the ranges of a step on the calling thread as its operations are issued. A range stays open while
/// successive operations belong to it. If operations of another stream come between (a gradient bucket within the
/// backward pass), it is closed and reopened after them, so that ranges always nest. All calls of one walk come from
/// one thread.
class Ranges {
 public:
  explicit Ranges(std::span<const program::Operation> step);
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void before(std::size_t operation) { go_to(paths_.at(operation)); }
  /// Makes `path` the open ranges; {} after the last operation.
  void go_to(const RangePath& path);

 private:
  std::vector<RangePath> paths_;  // by operation
  RangePath open_;
};

}  // namespace harness::cuda
