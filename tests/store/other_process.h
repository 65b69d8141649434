#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace harness::store {

using Environment = std::map<std::string, std::string>;

/// A process beside the test's, with variables of its own, that plays a role: it says lines and waits for words. It is
/// this program started anew. A fork alone would hold the locks of threads that it does not have.
class OtherProcess {
 public:
  /// Its side: what a role gets.
  struct Side {
    int in, out;
    void say(const std::string& line) const;
    /// Until the test says go(); ends the process when the test has gone.
    void wait() const;
  };
  /// An Error of a role is said as "error: …".
  using Play = void (*)(const Side&, const std::string& argument);
  /// Makes a role known; one per name, before main().
  struct Role {
    Role(const char* name, Play play);
    std::string name;
  };

  OtherProcess(Environment environment, const Role& role, const std::string& argument);
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() { end(); }

  /// The next line; "" if it ends, or says nothing for a minute.
  std::string line() const;
  void go() const;
  void send(int signal) const;  // after SIGSTOP it has stopped
  /// Waits until it has ended: its output ends a moment before that. end() still has its status.
  void await_end() const;
  /// Kills it, unless it has ended, and waits until it is gone. Returns its status, as waitpid() gives it.
  int end();
  pid_t pid() const { return pid_; }
  /// Its output, as a descriptor.
  int says() const { return from_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace harness::store
