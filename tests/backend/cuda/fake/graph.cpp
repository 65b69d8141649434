#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>

#include "capture.h"

namespace harness::fake {
namespace {

struct Graphs {
  Registry<cudaGraph_t, Graph> graphs{0x52, "graphs"};
  Registry<cudaGraphExec_t, Executable> executables{0x53, "executable graphs"};
};

Graphs& graphs() {
  static Graphs& all = *new Graphs;
  return all;
}

struct Launch {
  Launch(const Graph& graph, std::vector<Work> all_works, int device)
      : works(std::move(all_works)), missing(works.size()), next(works.size()), left(works.size()), device(device) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      missing[i] = static_cast<int>(graph.nodes[i].after.size());
      for (const int earlier : graph.nodes[i].after) next[earlier].push_back(static_cast<int>(i));
    }
  }

  std::vector<Work> works;
  std::vector<int> missing;
  std::vector<std::vector<int>> next;
  std::size_t left;
  int device;
  std::mutex mutex;
  std::condition_variable changed;
};

void run_branch(const std::shared_ptr<Launch>& launch, int node);

// One of the nodes that became ready together is returned to go on with; the others get threads. In any order.
int fork(const std::shared_ptr<Launch>& launch, std::vector<int> ready) {
  if (ready.empty()) return -1;
  for (std::size_t i = ready.size(); i > 1; --i) {
    std::swap(ready[i - 1], ready[thread_chance().below(static_cast<int>(i))]);
  }
  for (std::size_t i = 1; i < ready.size(); ++i) {
    std::thread([launch, node = ready[i]] { run_branch(launch, node); }).detach();  // branches may wait for each other
  }
  return ready[0];
}

void run_branch(const std::shared_ptr<Launch>& launch, int node) {
  while (node >= 0) {
    thread_chance().delay();
    try {
      launch->works[node]();
    } catch (const std::exception& problem) {
      break_device(launch->device, cudaErrorLaunchFailure,
                   fmt::format("a kernel of a graph threw: {}", problem.what()));
    }
    std::vector<int> ready;
    {
      const std::lock_guard lock(launch->mutex);
      for (const int later : launch->next[node]) {
        if (--launch->missing[later] == 0) ready.push_back(later);
      }
      if (--launch->left == 0) launch->changed.notify_all();
    }
    node = fork(launch, std::move(ready));
  }
}

// Does the works of one launch, `works[i]` being node i's; branches run at the same time. Returns when all are done.
void run_graph(const Graph& graph, std::vector<Work> works, int device) {
  const auto launch = std::make_shared<Launch>(graph, std::move(works), device);
  std::vector<int> roots;
  for (std::size_t i = 0; i < launch->missing.size(); ++i) {
    if (launch->missing[i] == 0) roots.push_back(static_cast<int>(i));
  }
  run_branch(launch, fork(launch, std::move(roots)));
  std::unique_lock lock(launch->mutex);
  launch->changed.wait(lock, [&] { return launch->left == 0; });
}

}  // namespace

cudaGraph_t add_graph(std::shared_ptr<Graph> graph) {
  return graphs().graphs.add(std::move(graph));
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle, unsigned long long) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto graph = graphs().graphs.find(handle);
  if (!graph) return failed(cudaErrorInvalidValue, "cudaGraphInstantiate: not a live graph");
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
