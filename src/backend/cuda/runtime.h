#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/text.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

// The CUDA runtime as this backend uses it. Of the host sources, only runtime.cpp and kernels/launch.cpp include its
// header. Every function throws Error with the failed call and the runtime's message. Destructors free without waiting
// for pending work, so memory must outlive the work on it; after a fault its owner leaks it on purpose, since the
// process is about to end.
namespace harness::cuda {

using Stream = CUstream_st*;
using Event = CUevent_st*;

/// The GPU faulted during its work, for example on an illegal address. This process cannot use it any more.
class DeviceFailed : public Error {
 public:
  using Error::Error;
};

/// There is not enough device or pinned memory.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Memory of cudaMalloc, or pinned memory of cudaMallocHost.
class Memory {
 public:
  enum class Kind : std::uint8_t { device, pinned };
  Memory() = default;
  /// Throws OutOfMemory, or Error.
  Memory(Kind kind, std::int64_t bytes, const std::string& what_for);

  std::byte* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    Kind kind;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t bytes_ = 0;
};

struct Destroy {
  void operator()(CUstream_st* stream) const;
  void operator()(CUevent_st* event) const;
  void operator()(CUgraphExec_st* graph) const;
};

enum class Priority : std::uint8_t { low, normal, high };

/// A non-blocking stream.
class OwnedStream {
 public:
  explicit OwnedStream(Priority priority);
  Stream get() const { return stream_.get(); }

 private:
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class OwnedEvent {
 public:
  enum class Timing : std::uint8_t { off, on };
  explicit OwnedEvent(Timing timing);
  Event get() const { return event_.get(); }

  void record(Stream stream) const;
  /// Returns true once all work before the last record() is done. Throws if the device has failed.
  bool done() const;
  /// Both events must have timing and be done.
  double seconds_since(const OwnedEvent& earlier) const;

 private:
  std::unique_ptr<CUevent_st, Destroy> event_;
};

struct Device {
  int ordinal = 0;  // among those visible to this process
  std::string name;
  std::string bus_id;  // "0000:1B:00.0", in capitals as the runtime writes it
  int multiprocessors = 0, major = 0, minor = 0;
  std::int64_t l2_bytes = 0;
};

/// Returns a rank's GPU among the `visible` ones: the only one if its launcher shows it just one, else the one with its
/// local rank; with `share`, local ranks wrap around. Throws Error if there are too few.
int device_ordinal(int visible, int local_rank, int local_ranks, bool share);

/// Finds this rank's GPU, binds the calling thread and the threads it starts to CPUs near it, then makes the GPU
/// current. The binding comes first because the driver then starts its own threads. Throws Error that says what is
/// missing if there is no driver or no GPU.
Device use_device(const backend::ExecutableRequest& request);

/// Formats 91501 as "9.15.1".
std::string print_version(std::size_t number);
/// "13.0"; driver_version() is "" without a driver.
std::string runtime_version();
std::string driver_version();

/// The calling thread's GPU.
int current_device();
void set_device(int ordinal);
/// Compute capability of the calling thread's GPU: 90 for 9.0.
int compute_capability();
/// Memory in use on the calling thread's GPU, by all processes.
std::int64_t used_memory_bytes();

void wait_for(Stream stream, Event event);
void copy_in(Stream stream, void* device, const void* host, std::int64_t bytes);
void copy_out(Stream stream, void* host, const void* device, std::int64_t bytes);
void copy_within(Stream stream, void* to, const void* from, std::int64_t bytes);
void clear(Stream stream, void* device, std::int64_t bytes);
/// Blocks until the stream is empty. Only for work that waits for no other rank.
void synchronize(Stream stream);
/// Blocks until the calling thread's GPU is idle. Only for work that waits for no other rank. Throws DeviceFailed.
void synchronize_device();

/// Work captured from `origin` and the streams that fork from it and join it again, launched as one.
class Graph {
 public:
  Graph(Stream origin, const std::function<void()>& enqueue);
  void launch(Stream stream) const;

 private:
  std::unique_ptr<CUgraphExec_st, Destroy> executable_;
};

}  // namespace harness::cuda
