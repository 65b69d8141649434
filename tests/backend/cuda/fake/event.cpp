#include "event.h"

#include <fmt/format.h>

#include "capture.h"

namespace harness::fake {

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

cudaError_t record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream, bool external) {
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture && !external) {
    if (stream->capture->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    event->latest.reset();
    event->capture = stream->capture;
    event->tips = stream->tips;
    return cudaSuccess;
  }
  if (external && !stream->capture) {
    return failed(cudaErrorInvalidValue, "cudaEventRecordExternal outside of a capture");
  }
  // At a launch of the graph the event counts as recorded at once, like by a call.
  const auto issue = [event] {
    const auto made = std::make_shared<Record>();
    event->latest = made;
    event->capture.reset();
    event->tips.clear();
    return [made] { made->complete(); };
  };
  return give(stream, Operation{"event record", issue, cudaGraphNodeTypeEventRecord});
}

cudaError_t wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, bool external) {
  const std::lock_guard lock(runtime_mutex());
  const auto own = stream->capture;
  if (own && own->invalid) return failed(cudaErrorStreamCaptureInvalidated);
  if (external && own) {
    const auto issue = [event]() -> Work {
      if (!event->latest) return [] {};
      return [made = event->latest] { made->wait(); };
    };
    return give(stream, Operation{"event wait", issue, cudaGraphNodeTypeWaitEvent});
  }
  if (const auto theirs = event->capture) {
    if (theirs->ended) {
      if (own) own->invalidate("a wait for an event that was recorded in an earlier capture");
      return failed(cudaErrorCapturedEvent, "cudaStreamWaitEvent: the event was recorded in a capture that has ended");
    }
    if (theirs->invalid) return failed(cudaErrorStreamCaptureInvalidated);
    if (stream->legacy) {
      theirs->invalidate("the legacy default stream waits for an event of the capture");
      return failed(cudaErrorStreamCaptureImplicit);
    }
    if (own && own != theirs) {
      own->invalidate("a wait for an event of another capture");
      theirs->invalidate("a wait for its event by another capture");
      return failed(cudaErrorStreamCaptureMerge);
    }
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

cudaError_t order(const std::shared_ptr<Stream>& earlier, const std::shared_ptr<Stream>& later) {
  const auto event = std::make_shared<Event>();
  const cudaError_t error = record(event, earlier, false);
  return error != cudaSuccess ? error : wait(later, event, false);
}

}  // namespace harness::fake
