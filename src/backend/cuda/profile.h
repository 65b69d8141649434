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

// ---- what CUPTI tells -----------------------------------------------------------------------------------------------

/// One thing that the device did: a kernel, a copy or a fill.
struct ActivityRecord {
  std::uint32_t correlation_id = 0;  // of the API call that launched it
  std::uint64_t external_id = 0;     // what was pushed when it was launched; 0: nothing
  std::uint64_t start_ns = 0, end_ns = 0;
};

/// Records what the device does, through CUPTI, which is loaded when it is first asked for. One recording at a time in
/// a process, and none beside another profiler. Slows launches down: not for timed steps. Nothing here throws; CUPTI
/// keeps its threads and buffers for the life of the process.
class ActivityRecorder {
 public:
  ActivityRecorder() = default;
  ~ActivityRecorder();  // forgets a recording that was not stopped; does not wait for the device
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  /// Begins to record; "" or why it cannot: there is no CUPTI, or the driver does not let it.
  std::string start();
  /// Everything that this thread launches up to pop() carries `id`, which is not 0. The innermost one counts.
  void push(std::uint64_t id);
  void pop();
  /// Ends the recording. The device must have finished (cudaDeviceSynchronize) what is to be in it. Nothing at all if
  /// CUPTI hands over nothing. `problem` tells what is missing ("": nothing that CUPTI knows of): dropped records,
  /// records without times, a CUPTI error.
  std::vector<ActivityRecord> stop(std::string& problem);

 private:
  bool recording_ = false;
};

/// From what the device did to which operation did it: a launch is under external id i + 1 of its first member i. For
/// each operation whose launch left records: from the start of its first to the end of its last, in seconds since the
/// first of all began, in the order of the operations. Records without an external id belong to nobody.
std::vector<program::Interval> operation_intervals(std::span<const ActivityRecord> records,
                                                   std::span<const Launch> launches);
/// When a launch ran. The intervals follow from the extents by the first member of each launch.
struct Extent {
  double start_s = 0, end_s = 0;
};
std::vector<program::Interval> operation_intervals(const std::map<program::OperationId, Extent>& extents,
                                                   std::span<const Launch> launches);

// ---- what NVTX is told ----------------------------------------------------------------------------------------------

// Names for Nsight Systems: the host's time of a step as nested NVTX ranges of the domain "harness", step > phase with
// its micro-batch > layer. They cost next to nothing unless a profiler listens. In a step that is one graph launch they
// show the capture; its kernels lie under the range of the step alone.

/// The ranges that stand open while an operation is issued, outermost first.
using RangePath = std::vector<std::string>;
RangePath range_path(const program::Label& label);

/// Opens and closes the ranges of a step on the calling thread, as its operations are issued. A range stays open as
/// long as the operations belong to it; where those of another stream stand in between (a gradient bucket within the
/// backward pass) it is opened again after them, so that ranges always nest. All calls of one walk come from one
/// thread.
class Ranges {
 public:
  explicit Ranges(std::span<const program::Operation> step);
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void before(std::size_t operation) { go_to(paths_.at(operation)); }
  /// {} after the last operation.
  void go_to(const RangePath& path);

 private:
  std::vector<RangePath> paths_;  // by operation
  RangePath open_;
};

}  // namespace harness::cuda
