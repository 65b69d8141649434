// Graphs and stream capture.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>

#include "stream.h"

namespace harness::fake {
namespace {

std::vector<std::weak_ptr<Capture>>& captures() {
  static auto& all = *new std::vector<std::weak_ptr<Capture>>;
  return all;
}

void insert(std::vector<int>& into, const std::vector<int>& tips) {
  for (const int tip : tips) {
    if (std::find(into.begin(), into.end(), tip) == into.end()) into.push_back(tip);
  }
}

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

// Returns one of the ready nodes, for the caller to run, and starts a thread for each of the others. Picks at random.
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

// Runs one launch, where works[i] is the work of node i; branches run concurrently. Returns when all are done.
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

void Capture::join(const std::shared_ptr<Stream>& stream, const std::vector<int>& tips) {
  if (!stream->capture) {
    stream->capture = shared_from_this();
    stream->tips.clear();
    streams_.push_back(stream);
  }
  insert(stream->tips, tips);
}

int Capture::add(const std::shared_ptr<Stream>& stream, Node node) {
  node.after = stream->tips;
  graph->nodes.push_back(std::move(node));
  const int index = static_cast<int>(graph->nodes.size()) - 1;
  stream->tips = {index};
  return index;
}

void Capture::invalidate(const std::string& why) {
  if (!invalid) complain(fmt::format("capture spoilt: {}", why));
  invalid = true;
}

void Capture::end() {
  ended = true;
  for (const auto& stream : streams_) {
    stream->tips.clear();
    stream->capture.reset();
  }
  streams_.clear();
}

bool Capture::joined_back() const {
  std::vector<bool> before_end(graph->nodes.size(), false);
  std::vector<int> todo = origin->tips;
  while (!todo.empty()) {
    const int node = todo.back();
    todo.pop_back();
    if (before_end[node]) continue;
    before_end[node] = true;
    for (const int earlier : graph->nodes[node].after) todo.push_back(earlier);
  }
  return std::all_of(streams_.begin(), streams_.end(), [&](const auto& stream) {
    return std::all_of(stream->tips.begin(), stream->tips.end(), [&](int tip) { return before_end[tip]; });
  });
}

cudaError_t refuse_in_capture(const char* call) {
  const std::lock_guard lock(runtime_mutex());
  bool refused = false;
  for (const auto& weak : captures()) {
    const auto capture = weak.lock();
    if (!capture || capture->ended || capture->thread != std::this_thread::get_id()) continue;
    capture->invalidate(fmt::format("{} during a capture of the same thread", call));
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(handle, "cudaStreamBeginCapture");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) {
    return failed(cudaErrorIllegalState, "cudaStreamBeginCapture: the stream is being captured already");
  }
  std::erase_if(captures(), [](const auto& old) { return old.expired(); });
  const auto capture = std::make_shared<Capture>(stream);
  capture->join(stream, {});
  captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  const auto stream = find_stream(handle, "cudaStreamEndCapture");
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  const auto capture = stream->capture;
  if (!capture) return failed(cudaErrorIllegalState, "cudaStreamEndCapture: the stream is not being captured");
  const bool joined = capture->joined_back();
  capture->end();
  if (capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  if (!joined) {
    return failed(cudaErrorStreamCaptureUnjoined,
                  "cudaStreamEndCapture: the first stream did not wait for all work of a stream that joined");
  }
  *graph = graphs().graphs.add(capture->graph);
  return cudaSuccess;
}

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
