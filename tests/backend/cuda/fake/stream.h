// Streams, graphs, and stream capture.
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

// A queue of work that its own thread runs in order.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // A point in a stream's order, reached when all work enqueued before it is done.
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
  void finish();  // ends the thread once the queue is empty; do not enqueue afterwards

  const int device;
  const int priority;

  // Guarded by runtime_mutex(): the capture that takes the work instead, and the nodes that the next node depends on.
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

// Returns the stream of a handle, or null with a complaint that names `caller`. The default stream is null, too: the
// backend does not use it.
std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* caller);
std::vector<std::shared_ptr<Stream>> streams_of(int device);  // all that may have work, including destroyed ones
void wait_for_device(int device);

// An operation of a graph and its dependencies.
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

// A capture in thread-local mode: the graph so far, and the rules that can invalidate it. Guarded by runtime_mutex().
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  explicit Capture(std::shared_ptr<Stream> origin)
      : origin(std::move(origin)), thread(std::this_thread::get_id()), graph(std::make_shared<Graph>()) {}

  void join(const std::shared_ptr<Stream>& stream, const std::vector<int>& tips);  // adds tips if it already joined
  int add(const std::shared_ptr<Stream>& stream, Node node);  // after the stream's tips; becomes the only tip
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
