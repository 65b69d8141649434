#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/command.h"

namespace harness::test {

/// A job of this test program under mpirun.
class Launched {
 public:
  /// `environment`: "NAME=value …" for the job.
  Launched(int ranks, const std::string& arguments, const std::string& environment = "")
      : command_(environment + " " + under_mpirun(ranks, own_program() + " job " + arguments + " 1>&2")) {}

  /// Waits for mpirun and every process it started to end. Returns false after `longest_s`.
  bool wait(double longest_s = 300) {
    exit_code_ = command_.wait(longest_s).exit_code;
    return exit_code_ >= 0 && command_.leaves_no_process();
  }
  /// Waits until the output contains this text.
  bool says(const std::string& text) const { return command_.wait_for(text); }
  std::string output() const { return command_.err_so_far(); }
  int exit_code() const { return exit_code_; }
  /// Lists the processes of the job whose first argument is `argument`; "" for all.
  std::vector<pid_t> processes(const std::string& argument) const { return command_.tagged(argument); }
  pid_t mpirun() const { return command_.pid(); }
  std::vector<pid_t> supervisors() const { return processes("job"); }
  pid_t supervisor(int rank) const { return command_.of_rank("job", rank); }

 private:
  static std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

  Command command_;
  int exit_code_ = -1;
};

/// Returns the output of such a job that ends by itself, leaves no process and succeeds.
inline std::string output_of(int ranks, const std::string& arguments, const std::string& environment = "",
                             double longest_s = 300) {
  Launched job(ranks, arguments, environment);
  EXPECT_TRUE(job.wait(longest_s)) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  return job.output();
}

}  // namespace harness::test
