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

/// A shell command under way, in a process group of its own, with HARNESS_TEST_TAG set to a value of its own.
class Command {
 public:
  explicit Command(const std::string& shell);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits at most this long; then kills the group and reports exit code -1.
  Outcome wait(double timeout_s = 400);
  void kill_all(int signal) const;  // every process that carries the tag
  /// Processes that carry the tag; with `argument`, those whose first argument it is ("sweep": a supervisor).
  std::vector<pid_t> tagged(const std::string& argument) const;
  /// Waits until no process carries the tag: mpirun returns while the ranks it killed still end. False after a
  /// time-out.
  bool leaves_no_process() const;
  /// Waits until `text` stands in what the command wrote to stderr so far; false after the time-out.
  bool wait_for(const std::string& text, double timeout_s = 200) const;
  std::string err_so_far() const;

 private:
  pid_t pid_ = -1;
  std::string tag_;
  const TemporaryFolder outputs_;
  const std::string out_file_ = outputs_ / "out", err_file_ = outputs_ / "err";
};

Outcome run(const std::string& shell, double timeout_s = 400);

/// mpirun with `ranks` ranks of the built program, from the source directory.
std::string harness_job(int ranks, const std::string& arguments);

/// A configuration that runs in seconds; extra lines go under `measure`.
std::string write_small_config(const TemporaryFolder& folder, int rounds = 2, const std::string& sweep = "");

}  // namespace harness::test
