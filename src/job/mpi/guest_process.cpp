#include "job/mpi/guest_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "job/environment.h"
#include "job/mpi/waiter.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::mpi {
namespace {

std::vector<std::string> own_arguments() {
  std::vector<std::string> words;
  std::string text = machine::Tree().bytes("proc/self/cmdline").text;  // each with a zero behind it
  for (std::size_t end = text.find('\0'); end != std::string::npos; end = text.find('\0')) {
    words.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
  return words;
}

// Nothing of MPI's or of the launcher's leaks into a guest.
class Files {
 public:
  explicit Files(int link) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, link, guest_descriptor);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, guest_descriptor + 1);
  }
  ~Files() { ::posix_spawn_file_actions_destroy(&files_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  const posix_spawn_file_actions_t& get() const { return files_; }

 private:
  posix_spawn_file_actions_t files_{};
};

// As long as it lives, what this thread starts may use all CPUs.
class Unbound {
 public:
  Unbound() : before_(machine::bound_cpus()) { machine::bind_to(machine::allowed_cpus()); }
  ~Unbound() { machine::bind_to(before_); }
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;

 private:
  machine::CpuSet before_;
};

}  // namespace

GuestProcess::GuestProcess() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail("cannot create a socket for a rank: {}", std::strerror(errno));
  link_.emplace(ends[0]);
  const GuestLink theirs(ends[1]);  // closed here when the guest has it
  NameValues environment = job::own_environment();
  environment.emplace_back(guest_variable, std::to_string(guest_descriptor));
  const Files files(ends[1]);
  const Unbound unbound;
  pid_ = spawn("a rank for a GPU", "/proc/self/exe", own_arguments(), environment, files.get(), nullptr);
}

GuestProcess::~GuestProcess() {
  kill();
  wait(0);
}

std::optional<ProcessEnd> GuestProcess::wait(double longest_s) {
  const auto began = std::chrono::steady_clock::now();
  Waiter waiter(5e-3);
  while (!end_ && pid_ > 0) {
    end_ = end_of(pid_);
    if (end_) ::waitpid(pid_, nullptr, 0);  // ended already: this returns at once
    if (end_ || seconds_since(began) >= longest_s) break;
    waiter.sleep();
  }
  return end_;
}

void GuestProcess::kill() {
  if (pid_ > 0 && !end_) ::kill(pid_, SIGKILL);
}

}  // namespace harness::mpi
