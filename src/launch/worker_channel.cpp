#include "launch/worker_channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "launch/worker_state.h"

namespace harness::launch {
namespace {

constexpr int supervisor_gone_exit = 3;
constexpr int first_own_fd = 3;

}  // namespace

WorkerChannel::WorkerChannel() {
  input_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, first_own_fd);
  output_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, first_own_fd);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input_ < 0 || output_ < 0 || nothing < 0)
    fail("the worker cannot take over stdin and stdout, the pipes to its supervisor: {}", std::strerror(errno));
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::close(nothing);
  listener_ = std::thread([this] { listen(); });
}

WorkerChannel::~WorkerChannel() {
  // The thread ends with `bye`; without it the process is about to be ended anyway.
  if (listener_.joinable()) listener_.detach();
}

void WorkerChannel::send(FrameType type, std::string_view payload) {
  const std::string bytes = frame_bytes(type, payload);
  const std::lock_guard lock(write_mutex_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(output_, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += n;
    } else if (errno != EINTR) {
      std::_Exit(supervisor_gone_exit);
    }
  }
}

std::string WorkerChannel::receive(FrameType wanted) {
  std::unique_lock lock(queue_mutex_);
  queue_changed_.wait(lock, [this] { return !queue_.empty(); });
  Frame frame = std::move(queue_.front());
  queue_.pop_front();
  if (frame.type != wanted) {
    fail("the supervisor sent a frame of type {}, but the worker expected type {}", static_cast<int>(frame.type),
         static_cast<int>(wanted));
  }
  return std::move(frame.payload);
}

void WorkerChannel::listen() {
  FrameReader reader;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(input_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(supervisor_gone_exit);
    reader.append(std::string_view(buffer.data(), n));
    while (auto frame = reader.next()) {
      if (frame->type == FrameType::ask) {
        const WorkerProgress progress = worker_progress();
        send(FrameType::progress, {reinterpret_cast<const char*>(&progress), sizeof progress});
        continue;
      }
      const bool last = frame->type == FrameType::bye;
      {
        const std::lock_guard lock(queue_mutex_);
        queue_.push_back(std::move(*frame));
      }
      queue_changed_.notify_one();
      if (last) return;
    }
  }
}

}  // namespace harness::launch
