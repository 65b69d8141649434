#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace harness::test {

/// A job of this test program under mpirun. Everything it starts carries a tag in its environment.
class Launched {
 public:
  /// `environment`: "NAME=value …" for the job; `mpirun`: the launching words, "" for the usual ones.
  Launched(int ranks, const std::string& arguments, const std::string& environment = "");
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  /// Waits for its end and for the end of all it started. False if that takes too long.
  bool wait(double longest_s = 300);
  /// Waits until its output has this text.
  bool says(const std::string& text, double longest_s = 200);
  const std::string& output();
  int exit_code() const { return exit_code_; }
  /// Living processes with the tag whose first argument is this; "" for all.
  std::vector<pid_t> processes(const std::string& verb) const;
  /// mpirun, and what it started itself: a worker that is just being started still looks like its supervisor.
  pid_t mpirun() const { return pid_; }
  std::vector<pid_t> supervisors() const;
  /// The one that is this rank.
  pid_t supervisor(int rank) const;

 private:
  std::vector<pid_t> jobs_of(pid_t parent) const;

  pid_t pid_ = -1;
  int pipe_ = -1;
  int exit_code_ = -1;
  std::string tag_, output_;
};

}  // namespace harness::test
