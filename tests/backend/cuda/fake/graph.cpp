#include "graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture.h"

namespace harness::fake {
namespace {

struct Graphs {
  Registry<cudaGraph_t, Graph> graphs{0x52};
  Registry<cudaGraphExec_t, Executable> executables{0x53};
};

Graphs& graphs() {
  static Graphs& all = *new Graphs;
  static const bool known = take_part({2,
                                       [] {
                                         graphs().graphs.clear();
                                         graphs().executables.clear();
                                       },
                                       [](std::vector<std::string>& into) {
                                         const std::size_t plain = graphs().graphs.size();
                                         const std::size_t executables = graphs().executables.size();
                                         if (plain > 0) into.push_back(fmt::format("{} graphs", plain));
                                         if (executables > 0) {
                                           into.push_back(fmt::format("{} executable graphs", executables));
                                         }
                                       }});
  (void)known;
  return all;
}

}  // namespace

cudaGraph_t add_graph(std::shared_ptr<Graph> graph) {
  return graphs().graphs.add(std::move(graph));
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle, unsigned long long flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto graph = graphs().graphs.find(handle);
  if (!graph || executable == nullptr || flags > 15) {
    return failed(cudaErrorInvalidValue, "cudaGraphInstantiate: not a live graph, or unknown flags");
  }
  auto made = std::make_shared<Executable>();
  made->graph = std::make_shared<Graph>(*graph);
  *executable = graphs().executables.add(std::move(made));
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  if (!find_stream(handle, "cudaGraphUpload")) return failed(cudaErrorInvalidResourceHandle);
  if (!graphs().executables.find(executable)) {
    return failed(cudaErrorInvalidValue, "cudaGraphUpload: not a live executable graph");
  }
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto executable = graphs().executables.find(handle);
  if (!executable) return failed(cudaErrorInvalidValue, "cudaGraphLaunch: not a live executable graph");
  const auto stream = find_stream(stream_handle, "cudaGraphLaunch");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) {
    stream->capture->invalidate("cudaGraphLaunch into a capture (a child graph): not done here");
    return failed(cudaErrorNotSupported);
  }
  const auto before = executable->last_launch;
  const auto issue = [graph = executable->graph, before, device = stream->device] {
    std::vector<Work> works;
    for (const Node& node : graph->nodes) works.push_back(node.operation.issue());
    return [graph, before, device, works = std::move(works)] {
      if (before.stream) before.wait();
      run_graph(*graph, works, device);
    };
  };
  const cudaError_t error = give(stream, Operation{"graph launch", issue});
  executable->last_launch = stream->now();
  return error;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  const auto graph = graphs().graphs.find(handle);
  if (!graph || count == nullptr) return failed(cudaErrorInvalidValue, "cudaGraphGetNodes: not a live graph");
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {  // numbers: nothing here takes a node
      nodes[i] =
          i < graph->nodes.size() ? reinterpret_cast<cudaGraphNode_t>((std::uintptr_t{0x54} << 40) + i) : nullptr;
    }
  }
  *count = nodes == nullptr ? graph->nodes.size() : std::min(*count, graph->nodes.size());
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  if (graphs().graphs.remove(handle)) return cudaSuccess;
  return failed(cudaErrorInvalidValue, "cudaGraphDestroy: not a live graph");
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  const auto executable = graphs().executables.remove(handle);
  if (!executable) return failed(cudaErrorInvalidValue, "cudaGraphExecDestroy: not a live executable graph");
  const std::lock_guard lock(runtime_mutex());
  if (executable->last_launch.stream && !executable->last_launch.reached()) {
    complain("cudaGraphExecDestroy while the graph is running");
  }
  return cudaSuccess;
}
