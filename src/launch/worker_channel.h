#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "launch/frame.h"

namespace harness {

/// A worker's end of the line to its supervisor. A thread of its own listens: it answers `ask` at any time and ends the
/// process when the supervisor is gone.
class WorkerChannel {
 public:
  /// Takes stdin and stdout for itself; from then on stdout is stderr, and stdin empty.
  WorkerChannel();
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  void send(FrameType type, std::string_view payload);
  /// Waits for the next frame, which must be of this type. Throws Error if it is another.
  std::string receive(FrameType wanted);
  int output() const { return output_; }

 private:
  void listen();

  int input_ = -1, output_ = -1;
  std::mutex write_mutex_, queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Frame> queue_;
  std::thread listener_;
};

}  // namespace harness
