#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "job/messages.h"

namespace harness::worker {

/// A worker's end of the pipes to its supervisor. A separate thread listens: it answers `ask` at any time and ends the
/// process when the supervisor is gone.
class WorkerChannel {
 public:
  /// Throws Error if the descriptors are not open: whoever started the worker closed them.
  WorkerChannel();
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  void send(job::FrameType type, std::string_view payload);
  /// Waits for the next frame.
  job::Frame receive();
  /// Its payload. Throws Error if it is of another type than `wanted`.
  std::string receive(job::FrameType wanted);
  static int output() { return job::reports_descriptor; }

 private:
  void listen();

  std::mutex write_mutex_, queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<job::Frame> queue_;
  std::thread listener_;
};

}  // namespace harness::worker
