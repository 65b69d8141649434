#include "job/mpi/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/text.h"
#include "job/job.h"
#include "machine/cpus.h"

namespace harness::mpi {
namespace {

// Returns the pointers that exec takes, valid as long as `texts` is.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

constexpr std::size_t max_last_words_bytes = 4096;
constexpr int most_reads = 64;  // of 64 KiB per call: a flood of output must not hold up the supervisor

struct Pipe {
  Descriptor read_end, write_end;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot create a pipe for a worker: {}", std::strerror(errno));
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
};

// Moves a descriptor above the numbers that a child's pipes get.
void move_up(Descriptor& end) {
  const int moved = ::fcntl(end.number(), F_DUPFD_CLOEXEC, job::reports_descriptor + 1);
  if (moved < 0) fail("cannot create a pipe for a worker: {} (ulimit -n)", std::strerror(errno));
  end = Descriptor(moved);
}

Descriptor without_waiting(Descriptor&& end) {
  ::fcntl(end.number(), F_SETFL, O_NONBLOCK);
  return std::move(end);
}

// The file and signal actions that posix_spawn() applies in the child before it becomes the worker.
struct SpawnPlan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnPlan(int orders, int reports, int printed) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, printed, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, printed, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, orders, job::orders_descriptor);
    ::posix_spawn_file_actions_adddup2(&files, reports, job::reports_descriptor);
    // No descriptor of MPI, of the result file or of the launcher leaks into a worker.
    for (int fd = STDERR_FILENO + 1; fd < job::orders_descriptor; ++fd) ::posix_spawn_file_actions_addclose(&files, fd);
    ::posix_spawn_file_actions_addclosefrom_np(&files, job::reports_descriptor + 1);
    ::posix_spawnattr_init(&attributes);
    sigset_t blocked;
    sigset_t all;
    // Supervisors handle signals for the job: a worker starts with them blocked and then ignores them.
    ::sigemptyset(&blocked);
    for (const int number : job::stop_numbers) ::sigaddset(&blocked, number);
    ::sigaddset(&blocked, SIGHUP);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

}  // namespace

WorkerProcess::WorkerProcess(const NameValues& environment, const std::string& wrap) {
  Pipe down;
  Pipe up;
  Pipe errors;
  for (Descriptor* end : {&down.read_end, &up.write_end, &errors.write_end}) move_up(*end);
  const SpawnPlan plan(down.read_end.number(), up.write_end.number(), errors.write_end.number());
  std::vector<std::string> words{"harness", "worker"};
  std::string path = "/proc/self/exe";
  if (!wrap.empty()) {
    std::error_code ignored;
    const std::string self = std::filesystem::read_symlink(path, ignored).string();
    words = {"sh", "-c", "exec " + wrap + " \"$0\" worker", self};
    path = "/bin/sh";
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(fmt::format("{}={}", name, value));
  const int error = ::posix_spawn(&pid_, path.c_str(), &plan.files, &plan.attributes, pointers_to(words).data(),
                                  pointers_to(variables).data());
  if (error != 0) fail("cannot start a worker: {}", std::strerror(error));
  command_ = without_waiting(std::move(down.write_end));
  protocol_ = without_waiting(std::move(up.read_end));
  errors_ = without_waiting(std::move(errors.read_end));
}

WorkerProcess::~WorkerProcess() {
  kill();
  if (pid_ > 0 && !reaped_) ::waitpid(pid_, nullptr, WNOHANG);
}

void WorkerProcess::write_pending() {
  while (!pending_.empty() && command_) {
    const ssize_t n = ::write(command_.number(), pending_.data(), pending_.size());
    if (n > 0) {
      pending_.erase(0, n);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      command_ = Descriptor();  // the worker is gone; look_for_end() finds out how
    }
  }
}

// Reads available bytes, up to a bound. Closes the descriptor at the end of the stream.
void WorkerProcess::read_some(Descriptor& from, bool protocol) {
  std::array<char, 65536> buffer{};
  for (int reads = 0; reads < most_reads; ++reads) {
    const ssize_t n = ::read(from.number(), buffer.data(), buffer.size());
    if (n > 0) {
      const std::string_view bytes(buffer.data(), n);
      if (protocol) {
        reader_.append(bytes);
      } else {
        last_words_.append(bytes);
        if (last_words_.size() > max_last_words_bytes) last_words_.erase(0, last_words_.size() - max_last_words_bytes);
      }
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    from = Descriptor();
    return;
  }
}

void WorkerProcess::pump(double max_wait_s) {
  write_pending();
  std::array<pollfd, 3> fds = {{{protocol_.number(), POLLIN, 0},
                                {errors_.number(), POLLIN, 0},
                                {pending_.empty() ? -1 : command_.number(), POLLOUT, 0}}};
  // A worker that has closed its pipes is ending: look again soon.
  if (!protocol_) max_wait_s = std::min(max_wait_s, 1e-3);
  const timespec wait{static_cast<time_t>(max_wait_s),
                      static_cast<long>((max_wait_s - static_cast<double>(static_cast<time_t>(max_wait_s))) * 1e9)};
  if (!end_) ::ppoll(fds.data(), fds.size(), &wait, nullptr);
  look_for_end();  // before the last read: what it wrote before its end is then complete
  if (protocol_) read_some(protocol_, true);
  if (errors_) read_some(errors_, false);
  write_pending();
}

// Leaves the process unreaped, so that its id is not reused and kill() cannot hit another process.
void WorkerProcess::look_for_end() {
  siginfo_t info{};
  constexpr int how = WEXITED | WNOHANG | WNOWAIT;
  if (end_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, how) != 0 || info.si_pid != pid_) return;
  end_.emplace();
  (info.si_code == CLD_EXITED ? end_->exit_code : end_->signal) = info.si_status;
}

double WorkerProcess::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  double all = 0;
  double resident = 0;
  if (!(statm >> all >> resident)) return 0;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double WorkerProcess::cpu_s() const {
  if (reaped_) return cpu_s_;
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return cpu_s_;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void WorkerProcess::kill() {
  if (pid_ > 0 && !reaped_) ::kill(-pid_, SIGKILL);
}

bool WorkerProcess::reap(double max_wait_s) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(max_wait_s);
  while (!reaped_) {
    pump(2e-3);
    if (end_) {
      kill();
      rusage used{};
      // The process has ended, so this returns at once.
      if (::wait4(pid_, nullptr, 0, &used) == pid_) cpu_s_ = machine::cpu_seconds(used);
      reaped_ = true;
    } else if (std::chrono::steady_clock::now() > give_up) {
      return false;
    }
  }
  return true;
}

}  // namespace harness::mpi
