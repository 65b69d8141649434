#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "launch/frame.h"

namespace harness::launch {

/// The descriptors of these pipes in a worker. Not 0 and 1, because profilers and libraries print; and high, because
/// scripts take low ones for themselves.
inline constexpr int orders_descriptor = 198, reports_descriptor = 199;

/// A worker's end of the pipes to its supervisor. A separate thread listens: it answers `ask` at any time and ends the
/// process when the supervisor is gone.
class WorkerChannel {
 public:
  /// Throws Error if the descriptors are not open: whoever started the worker closed them.
  WorkerChannel();
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  void send(FrameType type, std::string_view payload);
  /// Waits for the next frame, which must be of this type. Throws Error if it is another.
  std::string receive(FrameType wanted);
  static int output() { return reports_descriptor; }

 private:
  void listen();

  std::mutex write_mutex_, queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Frame> queue_;
  std::thread listener_;
};

}  // namespace harness::launch
