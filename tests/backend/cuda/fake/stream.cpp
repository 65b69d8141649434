#include "stream.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "capture.h"

namespace harness::fake {
namespace {

struct Streams {
  Registry<cudaStream_t, Stream> live{0x51};
  std::mutex mutex;
  std::map<int, std::shared_ptr<Stream>> legacy;   // by device
  std::vector<std::shared_ptr<Stream>> destroyed;  // with work left, perhaps
};

void reset_streams();

Streams& streams() {
  static Streams& all = *new Streams;
  static const bool known = take_part({1, reset_streams, [](std::vector<std::string>& into) {
                                         const std::size_t count = streams().live.size();
                                         if (count > 0) into.push_back(fmt::format("{} streams", count));
                                       }});
  (void)known;
  return all;
}

void reset_streams() {
  std::vector<std::shared_ptr<Stream>> old = streams().live.all();
  {
    const std::lock_guard lock(streams().mutex);
    for (const auto& [device, stream] : streams().legacy) old.push_back(stream);
    for (const auto& stream : streams().destroyed) old.push_back(stream);
    streams().legacy.clear();
    streams().destroyed.clear();
  }
  for (const auto& stream : old) {
    stream->now().wait();
    stream->finish();
    const std::lock_guard lock(runtime_mutex());
    stream->capture.reset();
  }
  streams().live.clear();
}

std::shared_ptr<Stream> legacy_stream(int device) {
  const std::lock_guard lock(streams().mutex);
  auto& stream = streams().legacy[device];
  if (!stream) stream = Stream::create(device, true, 0, true);
  return stream;
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

std::shared_ptr<Stream> Stream::create(int device, bool blocking, int priority, bool legacy) {
  std::shared_ptr<Stream> stream(new Stream(device, blocking, priority, legacy));
  std::thread([stream] { stream->serve(); }).detach();
  return stream;
}

Stream::Point Stream::enqueue(std::function<void()> work, std::vector<Point> after) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({std::move(work), std::move(after)});
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
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || finishing_; });
      if (queue_.empty()) return;
      entry = std::move(queue_.front());
      queue_.pop_front();
    }
    for (const Point& point : entry.after) point.wait();
    chance.delay();
    try {
      entry.work();
    } catch (const std::exception& problem) {
      break_device(device, cudaErrorLaunchFailure, fmt::format("a kernel threw: {}", problem.what()));
    }
    entry = {};
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

cudaStream_t add_stream(std::shared_ptr<Stream> stream) {
  return streams().live.add(std::move(stream));
}

std::shared_ptr<Stream> remove_stream(cudaStream_t handle) {
  auto stream = streams().live.remove(handle);
  if (!stream) return nullptr;
  const std::lock_guard lock(streams().mutex);
  auto& destroyed = streams().destroyed;
  std::erase_if(destroyed, [](const auto& old) { return old->idle(); });
  destroyed.push_back(stream);  // its work goes on
  stream->finish();
  return stream;
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* caller) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(current_device());
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
  for (const auto& [owner, stream] : streams().legacy) {
    if (owner == device) list.push_back(stream);
  }
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
