#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace harness::test {

/// A job of this test program under mpirun. All its processes carry a tag in their environment.
class Launched {
 public:
  /// `environment`: "NAME=value …" for the job; `mpirun`: the launch command, "" for the default.
  Launched(int ranks, const std::string& arguments, const std::string& environment = "");
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  /// Waits for mpirun and every process it started to end. Returns false after `longest_s`.
  bool wait(double longest_s = 300);
  /// Waits until the output contains this text.
  bool says(const std::string& text, double longest_s = 200);
  const std::string& output();
  int exit_code() const { return exit_code_; }
  /// Lists living processes with the tag whose first argument is `verb`; "" for all.
  std::vector<pid_t> processes(const std::string& verb) const;
  /// mpirun and its direct children. A worker that is just being started still looks like its supervisor.
  pid_t mpirun() const { return pid_; }
  std::vector<pid_t> supervisors() const;
  /// Returns the supervisor of this rank.
  pid_t supervisor(int rank) const;

 private:
  std::vector<pid_t> jobs_of(pid_t parent) const;

  pid_t pid_ = -1;
  int pipe_ = -1;
  int exit_code_ = -1;
  std::string tag_, output_;
};

}  // namespace harness::test
