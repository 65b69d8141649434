#pragma once

#include <sys/types.h>

#include <limits>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "job/messages.h"

namespace harness::mpi {

/// The end of a process.
struct ProcessEnd {
  int signal = 0;  // that killed it, 0 if it exited
  int exit_code = 0;
};

/// A worker as its supervisor sees it: a process group and three pipes, for orders, reports, and all that it or its
/// --wrap command prints, of which the end is kept. No call waits for the worker longer than its time limit.
class WorkerProcess {
 public:
  /// Starts this program again with the argument `worker`, under the shell command `wrap` ("nsys profile -o out")
  /// unless that is empty. Throws Error if the system refuses.
  explicit WorkerProcess(const NameValues& environment, const std::string& wrap = "");
  /// Kills what is left, without waiting.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Queues a frame, which is written as the worker reads.
  void send(job::FrameType type, std::string_view payload) {
    pending_ += job::frame_bytes(type, payload);
    write_pending();
  }
  /// Reads and writes the pipes; waits at most this long for an event, 0: does not wait.
  void pump(double max_wait_s);
  std::optional<job::Frame> next_frame() { return reader_.next(); }
  bool damaged() const { return reader_.damaged(); }

  /// The end of the worker, once it has ended and all its output has been read. Its process id stays reserved until
  /// reap().
  std::optional<ProcessEnd> ended() const { return end_; }
  /// Its resident memory; 0 if that cannot be read.
  double resident_bytes() const;
  /// The last few KiB of what was printed, on stdout and stderr.
  const std::string& last_words() const { return last_words_; }

  /// Sends SIGKILL to its whole process group. Has no effect when all processes have ended.
  void kill();
  /// Waits at most this long for the worker, or its --wrap command, to end. Call it after kill(), or when the worker
  /// has ended by itself.
  bool reap(double max_wait_s);
  /// CPU time so far: the worker's alone while it runs; once reap() has returned true, with that of all children that
  /// it or its --wrap command waited for. NaN if it cannot be read.
  double cpu_s() const;

 private:
  void write_pending();
  void read_some(Descriptor& from, bool protocol);
  void look_for_end();

  pid_t pid_ = -1;
  Descriptor command_, protocol_, errors_;
  std::string pending_;
  job::FrameReader reader_;
  std::string last_words_;
  std::optional<ProcessEnd> end_;
  bool reaped_ = false;
  double cpu_s_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace harness::mpi
