// Graphs, and the captures that make them.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime.h"
#include "stream.h"

namespace harness::fake {

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

cudaGraph_t add_graph(std::shared_ptr<Graph> graph);

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
