#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "launch/frame.h"

namespace harness::launch {

/// A worker's end of the pipes to its supervisor. A separate thread listens: it answers `ask` at any time and ends the
/// process when the supervisor is gone.
class WorkerChannel {
 public:
  /// Takes over stdin and stdout: from then on stdout refers to stderr, and stdin is empty.
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

}  // namespace harness::launch
