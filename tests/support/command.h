#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/files.h"

namespace harness::test {

struct Outcome {
  int exit_code = -1;  // 128 + signal when killed
  std::string out, err;
};

/// A running shell command, in its own session, with a unique HARNESS_TEST_TAG.
class Command {
 public:
  explicit Command(const std::string& shell);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits at most this long, then kills the group and reports exit code -1.
  Outcome wait(double timeout_s = 400);
  void kill_all(int signal) const;  // all processes with the tag
  /// Returns the processes with the tag; with `argument`, those with it as first argument ("sweep": a supervisor).
  std::vector<pid_t> tagged(const std::string& argument) const;
  /// Returns the one of them that is this rank of a job under Open MPI. Throws std::runtime_error if there is none.
  pid_t of_rank(const std::string& argument, int rank) const;
  /// Waits until no process has the tag: mpirun returns while the ranks it killed are still ending. Returns false after
  /// a time-out.
  bool leaves_no_process() const;
  /// Waits until the command has written `text` to stderr; returns false after the time-out.
  bool wait_for(const std::string& text, double timeout_s = 200) const;
  std::string err_so_far() const;

 private:
  pid_t pid_ = -1, session_ = -1;
  std::string tag_;
  const TemporaryFolder outputs_;
  const std::string out_file_ = outputs_ / "out", err_file_ = outputs_ / "err";
};

Outcome run(const std::string& shell, double timeout_s = 400);

/// Returns an mpirun command with `ranks` ranks of this command, for any user.
std::string under_mpirun(int ranks, const std::string& command);

/// Returns an mpirun command with `ranks` ranks of the built program, run from the source directory.
std::string harness_job(int ranks, const std::string& arguments);

/// Writes a configuration that runs in seconds; extra lines go under `measure`.
std::string write_small_config(const TemporaryFolder& folder, int rounds = 2, const std::string& sweep = "");

}  // namespace harness::test
