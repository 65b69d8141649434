#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace harness::cuda {

enum class ActivityKind : std::uint8_t { kernel, memcpy, memset };

/// One thing that the device did.
struct ActivityRecord {
  std::string name;  // the kernel's, mangled as the compiler left it; "memcpy", "memset"
  std::uint32_t stream_id = 0;
  std::uint64_t graph_node_id = 0;   // 0: not launched by a CUDA graph
  std::uint32_t correlation_id = 0;  // grows with the API calls; one for all nodes of a graph launch
  std::uint64_t external_id = 0;     // what was pushed when it was launched; 0: nothing
  std::uint64_t start_ns = 0, end_ns = 0;
  ActivityKind kind = ActivityKind::kernel;
};

/// Records what the device does, through CUPTI, which is loaded when it is first asked for. One recording at a time in
/// a process, and none beside another profiler. Slows launches down: not for timed steps. Nothing here throws; CUPTI
/// keeps its threads and buffers for the life of the process.
class ActivityRecorder {
 public:
  ActivityRecorder();
  ~ActivityRecorder();  // forgets a recording that was not stopped; does not wait for the device
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;

  /// Begins to record; "" or why it cannot: there is no CUPTI, or the driver does not let it.
  std::string start();
  /// Everything that this thread launches up to pop() carries `id`, which is not 0. The innermost one counts.
  void push(std::uint64_t id);
  void pop();
  /// Ends the recording. The device must have finished (cudaDeviceSynchronize) what is to be in it. In the order in
  /// which it started on the device; nothing at all if CUPTI hands over nothing. `problem` tells what is missing
  /// ("": nothing that CUPTI knows of): dropped records, records without times, a CUPTI error.
  std::vector<ActivityRecord> stop(std::string& problem);

 private:
  bool recording_ = false;
};

}  // namespace harness::cuda
