#include "worker/channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "worker/state.h"

namespace harness::worker {
namespace {

constexpr int supervisor_gone_exit = 3;

}  // namespace

WorkerChannel::WorkerChannel() {
  for (const int descriptor : {job::orders_descriptor, job::reports_descriptor}) {
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
      fail(
          "a worker got no pipe to its supervisor (descriptor {}): `harness sweep` starts workers, and the command of "
          "--wrap must leave descriptors open for what it starts",
          descriptor);
    }
  }
  listener_ = std::thread([this] { listen(); });
}

WorkerChannel::~WorkerChannel() {
  // The thread ends with `bye`; without it the process is about to be ended anyway.
  if (listener_.joinable()) listener_.detach();
}

void WorkerChannel::send(job::FrameType type, std::string_view payload) {
  const std::string bytes = job::frame_bytes(type, payload);
  const std::lock_guard lock(write_mutex_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(job::reports_descriptor, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += n;
    } else if (errno != EINTR) {
      std::_Exit(supervisor_gone_exit);
    }
  }
}

job::Frame WorkerChannel::receive() {
  std::unique_lock lock(queue_mutex_);
  queue_changed_.wait(lock, [this] { return !queue_.empty(); });
  job::Frame frame = std::move(queue_.front());
  queue_.pop_front();
  return frame;
}

std::string WorkerChannel::receive(job::FrameType wanted) {
  job::Frame frame = receive();
  if (frame.type != wanted) {
    fail("the supervisor sent a frame of type {}, but the worker expected type {}", static_cast<int>(frame.type),
         static_cast<int>(wanted));
  }
  return std::move(frame.payload);
}

void WorkerChannel::listen() {
  job::FrameReader reader;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(job::orders_descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(supervisor_gone_exit);
    reader.append(std::string_view(buffer.data(), n));
    while (auto frame = reader.next()) {
      if (frame->type == job::FrameType::ask) {
        const job::WorkerProgress progress = worker_progress();
        send(job::FrameType::progress, {reinterpret_cast<const char*>(&progress), sizeof progress});
        continue;
      }
      const bool last = frame->type == job::FrameType::bye;
      {
        const std::lock_guard lock(queue_mutex_);
        queue_.push_back(std::move(*frame));
      }
      queue_changed_.notify_one();
      if (last) return;
    }
  }
}

}  // namespace harness::worker
