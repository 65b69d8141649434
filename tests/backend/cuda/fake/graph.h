// A graph: operations and what each must wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime.h"
#include "stream.h"

namespace harness::fake {

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

// Does the works of one launch, `works[i]` being node i's; branches run at the same time. Returns when all are done.
void run_graph(const Graph& graph, std::vector<Work> works, int device);

}  // namespace harness::fake
