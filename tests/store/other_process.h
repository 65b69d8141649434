#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "base/error.h"

namespace harness::store {

using Environment = std::map<std::string, std::string>;

/// A process beside the test's, with variables of its own: it says lines and waits for words.
class OtherProcess {
 public:
  /// Its side: what `work` gets.
  struct Side {
    int in, out;
    void say(const std::string& line) const {
      const std::string whole = line + "\n";
      if (write(out, whole.data(), whole.size()) < 0) _exit(3);
    }
    /// Until the test says go(); ends the process when the test has gone.
    void wait() const {
      char c = 0;
      if (read(in, &c, 1) != 1) _exit(4);
    }
  };

  /// An Error of `work` is said as "error: …".
  OtherProcess(const Environment& environment, const std::function<void(const Side&)>& work) {
    int there[2] = {-1, -1}, back[2] = {-1, -1};
    if (pipe(there) != 0 || pipe(back) != 0) throw Error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      close(there[1]);
      close(back[0]);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      const Side side{there[0], back[1]};
      try {
        work(side);
      } catch (const std::exception& e) {
        side.say(std::string("error: ") + e.what());
      }
      _exit(0);
    }
    close(there[0]);
    close(back[1]);
    to_ = there[1];
    from_ = back[0];
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() { end(); }

  /// The next line; "" if it ends, or says nothing for a minute.
  std::string line() {
    std::string text;
    for (char c = 0;;) {
      pollfd ready{from_, POLLIN, 0};
      if (poll(&ready, 1, 60000) <= 0 || read(from_, &c, 1) != 1) return text;
      if (c == '\n') return text;
      text += c;
    }
  }
  void go() { EXPECT_EQ(write(to_, "x", 1), 1); }
  void send(int signal) { kill(pid_, signal); }
  /// Kills it, unless it has ended, and waits until it is gone.
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    close(to_);
    close(from_);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

/// Lets this process, too, be elsewhere while it lives.
class Elsewhere {
 public:
  explicit Elsewhere(const std::string& boot) { setenv("HARNESS_TEST_BOOT_ID", boot.c_str(), 1); }
  ~Elsewhere() { unsetenv("HARNESS_TEST_BOOT_ID"); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
};

}  // namespace harness::store
