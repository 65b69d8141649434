#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>

#include "backend/backend.h"
#include "job/messages.h"

namespace harness::worker {

/// A worker's end of the pipes to its supervisor. A separate thread listens: it answers `ask` at any time and ends the
/// process when the supervisor is gone.
class WorkerChannel {
 public:
  /// Throws Error if the descriptors are not open, because the process that started the worker closed them.
  WorkerChannel();
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  void send(job::FrameType type, std::string_view payload);
  /// Waits for the next frame.
  job::Frame receive();
  /// Waits for the next frame and returns its payload. Throws Error if its type is not `wanted`.
  std::string receive(job::FrameType wanted);

 private:
  void listen();

  std::mutex write_mutex_, queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<job::Frame> queue_;
  std::thread listener_;
};

// The worker's current activity, readable at any time by the control thread and by the handler of a fatal signal.
// Process-wide: there is one worker per process.

void set_worker_phase(job::WorkerPhase phase);
/// Both must stay valid until a later call replaces them (nullptr: by nothing). After that, no thread uses them.
void set_worker_executable(const backend::Executable* executable, const program::Program* program);

/// Reads and writes buffers between steps, and counts each access as progress: a large block takes longer to look
/// through than a step may.
class CountedAccess final : public program::BufferAccess {
 public:
  explicit CountedAccess(program::BufferAccess& inner) : inner_(inner) {}
  void read(const program::View& view, std::span<std::byte> to) override;
  void write(const program::View& view, std::span<const std::byte> from) override;

 private:
  program::BufferAccess& inner_;
};

/// Takes no locks and allocates nothing.
job::WorkerProgress worker_progress();

/// From now on, a worker that crashes or calls exit() before phase `done` first writes a last_words frame.
void speak_last_words();

}  // namespace harness::worker
