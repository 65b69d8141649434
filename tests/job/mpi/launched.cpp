#include "launched.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "support/files.h"

namespace harness::test {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}
void nap() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

Launched::Launched(int ranks, const std::string& arguments, const std::string& environment) {
  static int count = 0;
  tag_ = "LAUNCH_TEST_TAG=" + std::to_string(::getpid()) + "." + std::to_string(++count);
  const std::string command = "exec env " + tag_ + " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
                              environment + " mpirun --oversubscribe -np " + std::to_string(ranks) + " " +
                              std::filesystem::read_symlink("/proc/self/exe").string() + " job " + arguments;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  pipe_ = ends[0];
  ::fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

Launched::~Launched() {
  for (const pid_t pid : processes("")) ::kill(pid, SIGKILL);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  ::close(pipe_);
}

const std::string& Launched::output() {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(pipe_, buffer.data(), buffer.size());
    if (n <= 0) return output_;
    output_.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

bool Launched::wait(double longest_s) {
  for (const auto start = Clock::now(); since(start) < longest_s; nap()) {
    output();
    int status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (pid_ < 0 && processes("").empty()) {
      output();
      return true;
    }
  }
  return false;
}

bool Launched::says(const std::string& text, double longest_s) {
  for (const auto start = Clock::now(); since(start) < longest_s; nap()) {
    if (output().find(text) != std::string::npos) return true;
  }
  return false;
}

std::vector<pid_t> Launched::processes(const std::string& verb) const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (("\0" + text_of(entry.path() / "environ")).find(tag_ + '\0') == std::string::npos) continue;
    if (!verb.empty() && text_of(entry.path() / "cmdline").find('\0' + verb + '\0') == std::string::npos) continue;
    if (text_of(entry.path() / "stat").find(") Z ") == std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<pid_t> Launched::supervisors() const {
  return jobs_of(pid_);
}

pid_t Launched::supervisor(int rank) const {
  for (const pid_t pid : supervisors()) {
    const std::string environment = '\0' + text_of("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find('\0' + std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0') !=
        std::string::npos)
      return pid;
  }
  throw std::runtime_error("no supervisor is rank " + std::to_string(rank));
}

std::vector<pid_t> Launched::jobs_of(pid_t parent) const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes("job")) {
    const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = stat.rfind(") ");  // then the state and the parent
    if (name_end != std::string::npos && std::atoi(stat.c_str() + name_end + 4) == parent) found.push_back(pid);
  }
  return found;
}

}  // namespace harness::test
