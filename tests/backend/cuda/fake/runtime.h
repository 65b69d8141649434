// Shared by the runtime's stand-ins: the one lock, errors, devices, and how work gets into a stream or a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace harness::fake {

class Stream;

// Guards all changes of handles, captures and events. Never held while work runs or a thread waits for it.
std::recursive_mutex& runtime_mutex();

// Remembers `error` for cudaGetLastError and returns it; complains unless `why` is empty.
cudaError_t failed(cudaError_t error, const std::string& why = {});

int current_device();
void note_synchronized();  // call after the current device was synchronised
// Gives the device a sticky error: every later call returns it.
void break_device(int device, cudaError_t error, const std::string& why);
cudaError_t device_error();  // the sticky error of the current device, or cudaSuccess

using Work = std::function<void()>;
// Returns the work that the stream runs. Called when the work is enqueued on a stream, or, if captured, once per launch
// of the graph, in the order of capture. A collective determines its place in the order of calls here.
using Issue = std::function<Work()>;

struct Operation {
  std::string name;
  Issue issue;
};
// Enqueues the operation on the stream, or adds it to the stream's capture.
cudaError_t give(const std::shared_ptr<Stream>& stream, Operation operation);
cudaError_t give(const std::shared_ptr<Stream>& stream, const char* name, Work work);

// For calls that the capturing thread must not make: invalidates its captures and returns the error, if there are any.
cudaError_t refuse_in_capture(const char* call);

// Device and pinned memory: blocks with fences around them.
enum class Place { device, pinned, pageable, broken };  // broken: crosses the bounds of a block, or touches a freed one
Place place(const void* address, std::size_t bytes);
// Whether [address, address + bytes) lies within one live allocation of memory of `device` (-1: of any device).
bool on_device(const void* address, std::size_t bytes, int device = -1);
// Describes where the range lies, for messages.
std::string where(const void* address, std::size_t bytes);

}  // namespace harness::fake
