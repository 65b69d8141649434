#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "launch/frame.h"
#include "launch/messages.h"

namespace harness {

/// How a process ended.
struct ProcessEnd {
  int signal = 0;  // it was killed by, 0 if it exited
  int exit_code = 0;
};

/// A worker as its supervisor sees it: a process group of its own and three pipes. Nothing here waits for the worker
/// unless told how long.
class WorkerProcess {
 public:
  /// Starts this same program anew with the argument `worker`; under the command `wrap` (words for a shell: "nsys
  /// profile -o out") unless that is empty. Throws Error if the system refuses.
  explicit WorkerProcess(const NameValues& environment, const std::string& wrap = "");
  /// Kills what is left, without waiting.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Queued, and written as the worker reads.
  void send(FrameType type, std::string_view payload);
  /// Moves bytes both ways and waits at most this long for something to happen; 0 only looks.
  void pump(double longest_s);
  std::optional<Frame> next_frame();
  bool damaged() const { return reader_.damaged(); }

  /// How it ended, once it has and everything it wrote has been read. Its process id stays taken until reap().
  std::optional<ProcessEnd> ended() const { return end_; }
  /// Memory it has resident, 0 if that cannot be read.
  double resident_bytes() const;
  /// The last few KiB of its stderr.
  const std::string& last_words() const { return last_words_; }

  /// SIGKILL to its whole process group: stragglers too. Harmless when all are gone.
  void kill();
  /// Waits at most this long for it to be gone. To be called after kill() or when it ended by itself.
  bool reap(double longest_s);

 private:
  void write_pending();
  bool read_some(int& fd, bool protocol);
  void look_for_end();

  pid_t pid_ = -1;
  int command_ = -1, protocol_ = -1, errors_ = -1;
  std::string pending_;
  FrameReader reader_;
  std::deque<Frame> frames_;
  std::string last_words_;
  std::optional<ProcessEnd> end_;
  bool reaped_ = false;
};

}  // namespace harness
