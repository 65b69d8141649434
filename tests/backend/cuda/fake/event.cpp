// Events: the state of a stream at its most recent record.
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "stream.h"

namespace harness::fake {
namespace {

// One cudaEventRecord, done when the stream has reached it.
struct Record {
  void complete();
  void wait();
  bool is_done();

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::int64_t time_ns = 0;
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  // Guarded by runtime_mutex(). Without `latest` and `capture`: never recorded. `capture`: recorded in it, after
  // `tips`.
  std::shared_ptr<Record> latest;
  std::shared_ptr<Capture> capture;
  std::vector<int> tips;
};

Registry<cudaEvent_t, Event>& events() {
  static auto& all = *new Registry<cudaEvent_t, Event>(0x55, "events");
  return all;
}

std::shared_ptr<Event> find_event(cudaEvent_t handle, const char* caller) {
  auto event = events().find(handle);
  if (!event) complain(fmt::format("{}: {} is not a live event", caller, fmt::ptr(handle)));
  return event;
}

void Record::complete() {
  const std::lock_guard lock(mutex);
  time_ns = device_clock_ns();
  done = true;
  changed.notify_all();
}

void Record::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
  pass_until_ns(time_ns);
}

bool Record::is_done() {
  const std::lock_guard lock(mutex);
  return done;
}

cudaError_t record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) {
    if (stream->capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    event->latest.reset();
    event->capture = stream->capture;
    event->tips = stream->tips;
    return cudaSuccess;
  }
  event->latest = std::make_shared<Record>();
  event->capture.reset();
  event->tips.clear();
  return give(stream, "event record", [made = event->latest] { made->complete(); });
}

cudaError_t wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event) {
  const std::lock_guard lock(runtime_mutex());
  const auto own = stream->capture;
  if (own && own->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  if (const auto theirs = event->capture) {
    if (theirs->ended || (own && own != theirs)) {
      if (own) own->invalidate("a wait for an event of another capture");
      return failed(cudaErrorCapturedEvent, "cudaStreamWaitEvent: the event was recorded in another capture");
    }
    if (theirs->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    theirs->join(stream, event->tips);
    return cudaSuccess;
  }
  if (own) {
    own->invalidate("a wait for an event that was not recorded in the capture");
    return failed(cudaErrorStreamCaptureIsolation);
  }
  if (!event->latest) return cudaSuccess;
  return give(stream, "event wait", [made = event->latest] { made->wait(); });
}

}  // namespace

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  auto event = std::make_shared<Event>();
  event->device = current_device();
  event->flags = flags;
  *handle = events().add(std::move(event));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  if (events().remove(handle)) return cudaSuccess;
  return failed(cudaErrorInvalidResourceHandle,
                fmt::format("cudaEventDestroy: {} is not a live event", fmt::ptr(handle)));
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto event = find_event(handle, "cudaEventRecord");
  const auto stream = find_stream(stream_handle, "cudaEventRecord");
  if (!event || !stream) return failed(cudaErrorInvalidResourceHandle);
  if (event->device != stream->device) {
    return failed(
        cudaErrorInvalidResourceHandle,
        fmt::format("cudaEventRecord: the event is of device {}, the stream of {}", event->device, stream->device));
  }
  return record(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(stream_handle, "cudaStreamWaitEvent");
  const auto event = find_event(handle, "cudaStreamWaitEvent");
  if (!event || !stream) return failed(cudaErrorInvalidResourceHandle);
  if (flags != 0) return failed(cudaErrorInvalidValue, "cudaStreamWaitEvent: flags are not done here");
  return wait(stream, event);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  constexpr const char* call = "cudaEventQuery";
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto event = find_event(handle, call);
  if (!event) return failed(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (event->capture) {
    if (!event->capture->ended) event->capture->invalidate("cudaEventQuery of an event recorded in it");
    return failed(cudaErrorCapturedEvent);
  }
  if (const cudaError_t error = refuse_in_capture(call); error != cudaSuccess) return failed(error);
  if (event->latest && !event->latest->is_done()) return failed(cudaErrorNotReady);
  return failed(device_error());
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  std::shared_ptr<Record> records[2];
  for (int i = 0; i < 2; ++i) {
    const auto event = find_event(i == 0 ? start : end, "cudaEventElapsedTime");
    if (!event) return failed(cudaErrorInvalidResourceHandle);
    const std::lock_guard lock(runtime_mutex());
    if (event->capture) return failed(cudaErrorCapturedEvent, "cudaEventElapsedTime: recorded in a capture");
    records[i] = event->latest;
    if (!records[i] || (event->flags & cudaEventDisableTiming)) {
      return failed(cudaErrorInvalidResourceHandle,
                    "cudaEventElapsedTime: the event was never recorded, or was made without timing");
    }
  }
  if (!records[0]->is_done() || !records[1]->is_done()) return failed(cudaErrorNotReady);
  *ms = static_cast<float>(static_cast<double>(records[1]->time_ns - records[0]->time_ns) * 1e-6);
  return cudaSuccess;
}
