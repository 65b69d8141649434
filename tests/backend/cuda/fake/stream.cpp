#include "stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace harness::fake {
namespace {

struct Streams {
  Registry<cudaStream_t, Stream> live{0x51, "streams"};
  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> destroyed;  // with work left, perhaps
};

void reset_streams();

Streams& streams() {
  static Streams& all = *new Streams;
  [[maybe_unused]] static const bool known = take_part({1, reset_streams, {}});
  return all;
}

void reset_streams() {
  std::vector<std::shared_ptr<Stream>> old = streams().live.all();
  {
    const std::lock_guard lock(streams().mutex);
    for (const auto& stream : streams().destroyed) old.push_back(stream);
    streams().destroyed.clear();
  }
  for (const auto& stream : old) {
    stream->now().wait();
    stream->finish();
    const std::lock_guard lock(runtime_mutex());
    stream->capture.reset();
  }
}

}  // namespace

bool Stream::Point::reached() const {
  const std::lock_guard lock(stream->mutex_);
  return stream->done_ >= ticket;
}

void Stream::Point::wait() const {
  std::unique_lock lock(stream->mutex_);
  stream->changed_.wait(lock, [&] { return stream->done_ >= ticket; });
}

std::shared_ptr<Stream> Stream::create(int device, int priority) {
  std::shared_ptr<Stream> stream(new Stream(device, priority));
  std::thread([stream] { stream->serve(); }).detach();
  return stream;
}

Stream::Point Stream::enqueue(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  ++enqueued_;
  changed_.notify_all();
  return {shared_from_this(), enqueued_};
}

Stream::Point Stream::now() {
  const std::lock_guard lock(mutex_);
  return {shared_from_this(), enqueued_};
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return done_ == enqueued_;
}

void Stream::finish() {
  const std::lock_guard lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
}

void Stream::serve() {
  Chance chance;
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || finishing_; });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    chance.delay();
    try {
      work();
    } catch (const std::exception& problem) {
      break_device(device, cudaErrorLaunchFailure, fmt::format("a kernel threw: {}", problem.what()));
    }
    work = nullptr;
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* caller) {
  auto stream = streams().live.find(handle);
  if (!stream) complain(fmt::format("{}: {} is not a live stream", caller, fmt::ptr(handle)));
  return stream;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
  std::vector<std::shared_ptr<Stream>> list;
  for (const auto& stream : streams().live.all()) {
    if (stream->device == device) list.push_back(stream);
  }
  const std::lock_guard lock(streams().mutex);
  for (const auto& stream : streams().destroyed) {
    if (stream->device == device) list.push_back(stream);
  }
  return list;
}

std::vector<int> stream_priorities() {
  std::vector<int> priorities;
  for (const auto& stream : streams().live.all()) priorities.push_back(stream->priority);
  return priorities;
}

void wait_for_device(int device) {
  for (const auto& stream : streams_of(device)) stream->now().wait();
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned, int priority) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  *handle = streams().live.add(Stream::create(current_device(), std::min(0, std::max(-5, priority))));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return device_error();
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const auto stream = streams().live.remove(handle);
  if (!stream) {
    return failed(cudaErrorInvalidResourceHandle,
                  fmt::format("cudaStreamDestroy: {} is not a live stream", fmt::ptr(handle)));
  }
  {
    const std::lock_guard lock(streams().mutex);
    auto& destroyed = streams().destroyed;
    std::erase_if(destroyed, [](const auto& old) { return old->idle(); });
    destroyed.push_back(stream);  // its work goes on
  }
  stream->finish();
  const std::lock_guard lock(runtime_mutex());
  if (stream->capture) stream->capture->invalidate("a stream was destroyed in the middle of its capture");
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  constexpr const char* call = "cudaStreamSynchronize";
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(handle, call);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  {
    const std::lock_guard lock(runtime_mutex());
    if (stream->capture) {
      stream->capture->invalidate("cudaStreamSynchronize of a stream that is being captured");
      return failed(cudaErrorStreamCaptureUnsupported);
    }
    if (const cudaError_t error = refuse_in_capture(call); error != cudaSuccess) return failed(error);
  }
  stream->now().wait();
  return failed(device_error());
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const int device = current_device();
  {
    const std::lock_guard lock(runtime_mutex());
    bool capturing = false;
    for (const auto& stream : streams_of(device)) {
      if (!stream->capture) continue;
      stream->capture->invalidate("cudaDeviceSynchronize while a stream of the device is being captured");
      capturing = true;
    }
    if (capturing) return failed(cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t error = refuse_in_capture("cudaDeviceSynchronize"); error != cudaSuccess) {
      return failed(error);
    }
  }
  wait_for_device(device);
  note_synchronized();
  return failed(device_error());
}

namespace harness::emulation {

void submit(Stream handle, std::function<void()> kernel) {
  if (const cudaError_t error = fake::device_error(); error != cudaSuccess) {
    fake::failed(error);
    return;
  }
  const auto stream = fake::find_stream(handle, "kernel launch");
  if (!stream) {
    fake::failed(cudaErrorInvalidResourceHandle);
  } else if (stream->device != fake::current_device()) {
    fake::failed(cudaErrorInvalidResourceHandle,
                 fmt::format("kernel launch: the stream is of device {}, the current one is {}", stream->device,
                             fake::current_device()));
  } else {
    fake::give(stream, "kernel", std::move(kernel));
  }
}

}  // namespace harness::emulation
