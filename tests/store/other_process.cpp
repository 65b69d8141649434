#include "other_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/identity.h"
#include "base/text.h"

namespace harness::store {
namespace {

constexpr const char *role_variable = "HARNESS_TEST_ROLE", *argument_variable = "HARNESS_TEST_ROLE_ARGUMENT";
[[maybe_unused]] const bool hooked = (allow_test_hooks(), true);  // in each of these test processes

constexpr int role_in = 198, role_out = 199;  // file descriptors of the other process

std::map<std::string, OtherProcess::Play>& roles() {
  static std::map<std::string, OtherProcess::Play> known;
  return known;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Not a test: the code of the other process.
TEST(OtherProcess, DISABLED_PlaysItsRole) {
  const char *role = std::getenv(role_variable), *argument = std::getenv(argument_variable);
  if (role == nullptr || argument == nullptr) return;
  const OtherProcess::Side side{role_in, role_out};
  try {
    roles().at(role)(side, argument);
  } catch (const std::exception& e) {
    side.say(std::string("error: ") + e.what());
  }
  _exit(0);
}

}  // namespace

OtherProcess::Role::Role(const char* role_name, Play play) : name(role_name) {
  roles()[name] = play;
}

void OtherProcess::Side::say(const std::string& line) const {
  const std::string whole = line + "\n";
  if (write(out, whole.data(), whole.size()) < 0) _exit(3);
}

void OtherProcess::Side::wait() const {
  char c = 0;
  if (read(in, &c, 1) != 1) _exit(4);
}

OtherProcess::OtherProcess(Environment environment, const Role& role, const std::string& argument) {
  environment[role_variable] = role.name;
  environment[argument_variable] = argument;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    if (!name.starts_with("GTEST_") && text.size() > name.size())
      environment.emplace(name, text.substr(name.size() + 1));
  }
  std::vector<std::string> variables, arguments{"other_process", "--gtest_filter=OtherProcess.DISABLED_PlaysItsRole",
                                                "--gtest_also_run_disabled_tests"};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  int there[2] = {-1, -1}, back[2] = {-1, -1};
  if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0) throw Error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, there[0], role_in);
  posix_spawn_file_actions_adddup2(&actions, back[1], role_out);
  const int failed =
      posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(there[0]);
  close(back[1]);
  to_ = there[1];
  from_ = back[0];
  if (failed != 0) throw Error("the other process does not start");
}

std::string OtherProcess::line() const {
  std::string text;
  for (char c = 0;;) {
    pollfd ready{from_, POLLIN, 0};
    if (poll(&ready, 1, 60000) <= 0 || read(from_, &c, 1) != 1) return text;
    if (c == '\n') return text;
    text += c;
  }
}

void OtherProcess::go() const {
  EXPECT_EQ(write(to_, "x", 1), 1);
}

void OtherProcess::send(int signal) const {
  kill(pid_, signal);
  // After the signal, a process may keep running for a moment on another core.
  if (signal == SIGSTOP) waitpid(pid_, nullptr, WUNTRACED);
}

void OtherProcess::await_end() const {
  siginfo_t ended;
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT), 0);
}

int OtherProcess::end() {
  if (pid_ <= 0) return 0;
  int status = 0;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status, 0);
  pid_ = -1;
  close(to_);
  close(from_);
  return status;
}

}  // namespace harness::store
