// Streams, graphs, and the captures that make graphs of the work of streams.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core.h"
#include "runtime.h"

namespace harness::fake {

class Capture;

// Work done in order by a thread of its own.
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

// A graph: operations and what each must wait for.
struct Node {
  Operation operation;
  std::vector<int> after;  // indices of nodes captured earlier
};

struct Graph {
  std::vector<Node> nodes;
};

struct Executable {
  std::shared_ptr<const Graph> graph;
  Stream::Point last_launch;  // launches of one executable never overlap; guarded by runtime_mutex()
};

// A capture under way, in thread-local mode: the graph that grows and the rules that can spoil it. All guarded by
// runtime_mutex().
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  explicit Capture(std::shared_ptr<Stream> origin)
      : origin(std::move(origin)), thread(std::this_thread::get_id()), graph(std::make_shared<Graph>()) {}

  void join(const std::shared_ptr<Stream>& stream, const std::vector<int>& tips);  // also when it is in already
  int add(const std::shared_ptr<Stream>& stream, Node node);  // after the stream's tips; becomes its only tip
  void invalidate(const std::string& why);
  void end();  // all streams leave
  bool joined_back() const;

  const std::shared_ptr<Stream> origin;
  const std::thread::id thread;
  const std::shared_ptr<Graph> graph;
  bool invalid = false;
  bool ended = false;

 private:
  std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace harness::fake
