#include "capture.h"

#include <fmt/format.h>

#include <algorithm>

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
  *graph = add_graph(capture->graph);
  return cudaSuccess;
}
