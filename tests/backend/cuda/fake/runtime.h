// Shared by the runtime's stand-ins: its one lock, errors, devices, and the way of any work into a stream or a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace harness::fake {

class Stream;

// Orders all changes of handles, captures and events; never held while work runs or is waited for.
std::recursive_mutex& runtime_mutex();

// Remembers `error` for cudaGetLastError and returns it; complains unless `why` is empty.
cudaError_t failed(cudaError_t error, const std::string& why = {});

int current_device();
void note_synchronized();  // the current device was waited for as a whole
// A sticky error of the device: every later call returns it.
void break_device(int device, cudaError_t error, const std::string& why);
cudaError_t device_error();  // of the current device; cudaSuccess if it is whole

using Work = std::function<void()>;
// Called when the work is given to a stream, or, captured, once in every launch of the graph in the order of capture:
// returns what the stream does. Work that must know its place in the order of calls (a collective) finds it out here.
using Issue = std::function<Work()>;

struct Operation {
  std::string name;
  Issue issue;
};
// Enqueues on the stream, or captures.
cudaError_t give(const std::shared_ptr<Stream>& stream, Operation operation);
cudaError_t give(const std::shared_ptr<Stream>& stream, const char* name, Work work);

// For calls that a capture forbids to its own thread: fails and invalidates.
cudaError_t refuse_in_capture(const char* call);

// Device and pinned memory: blocks with fences around them.
enum class Place { device, pinned, pageable, broken };  // broken: reaches out of a block, or into a freed one
Place place(const void* address, std::size_t bytes);
// [address, address + bytes) lies within one live allocation of device memory (of `device`, -1: of any).
bool on_device(const void* address, std::size_t bytes, int device = -1);
// Why it does not.
std::string where(const void* address, std::size_t bytes);

}  // namespace harness::fake
