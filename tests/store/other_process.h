#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace harness::store {

using Environment = std::map<std::string, std::string>;

/// A second process with its own environment that plays a role: it prints lines and waits for go(). It runs this
/// program afresh, because a fork would hold the locks of threads that it does not have.
class OtherProcess {
 public:
  /// The role's end of the connection.
  struct Side {
    int in, out;
    void say(const std::string& line) const;
    /// Waits until the test calls go(); ends the process if the test has gone.
    void wait() const;
  };
  /// An Error in a role is printed as "error: …".
  using Play = void (*)(const Side&, const std::string& argument);
  /// Registers a role; one per name, before main().
  struct Role {
    Role(const char* name, Play play);
    std::string name;
  };

  OtherProcess(Environment environment, const Role& role, const std::string& argument);
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() { end(); }

  /// Returns the next line; "" if the process ends, or prints nothing for a minute.
  std::string line() const;
  void go() const;
  void send(int signal) const;  // returns after a SIGSTOP when the process has stopped
  /// Waits until the process has ended, which is a moment after its output ends. end() still returns its status.
  void await_end() const;
  /// Kills the process unless it has ended, and waits until it is gone. Returns its status, as waitpid() does.
  int end();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace harness::store
