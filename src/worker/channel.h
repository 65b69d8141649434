#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

#include "backend/backend.h"
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

// The worker's present activity, for the control thread at any time and for the handler of a fatal signal.
// Process-wide: there is one worker per process.

void set_worker_phase(job::WorkerPhase phase);
/// Both must stay valid until others take their place, or nullptr: when this returns, nobody looks at them any more.
void set_worker_executable(const backend::Executable* executable, const program::Program* program);

/// Takes no locks and allocates nothing.
job::WorkerProgress worker_progress();

/// From now on a worker that dies of a fault of its own, or calls exit() before its phase is `done`, writes a
/// last_words frame to `fd` first.
void speak_last_words(int fd);

}  // namespace harness::worker
