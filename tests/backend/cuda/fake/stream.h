// A stream: work done in order by a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core.h"
#include "runtime.h"

namespace harness::fake {

class Capture;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // A point in a stream's order: reached when all that was enqueued before it is done.
  struct Point {
    std::shared_ptr<Stream> stream;
    std::uint64_t ticket = 0;
    bool reached() const;
    void wait() const;
  };

  static std::shared_ptr<Stream> create(int device, int priority);

  Point enqueue(std::function<void()> work);  // starts after all earlier work of this stream
  Point now();
  bool idle();
  void finish();  // the thread ends when the queue is empty; nothing is enqueued any more

  const int device;
  const int priority;

  // Guarded by runtime_mutex(): the graph that work goes into instead, and the nodes that the next one depends on.
  std::shared_ptr<Capture> capture;
  std::vector<int> tips;

 private:
  Stream(int device, int priority) : device(device), priority(priority) {}
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t done_ = 0;
  bool finishing_ = false;
};

// The stream of a handle; null (and the reason in a complaint) if there is none, as for the default stream, which the
// backend has no use of. `caller` is the function named in the complaint.
std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* caller);
std::vector<std::shared_ptr<Stream>> streams_of(int device);  // all that may have work, destroyed ones as well
void wait_for_device(int device);

}  // namespace harness::fake
