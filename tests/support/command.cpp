#include "support/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/files.h"
#include "support/paths.h"
#include "support/wait.h"

namespace harness::test {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
void nap() {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// Returns a numeric field of /proc/PID/stat after the state: 0 for the parent, 2 for the session. -1 if it is gone.
pid_t stat_field(const std::string& pid, int index) {
  const std::string stat = text_of("/proc/" + pid + "/stat");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 3)));
  pid_t value = -1;
  for (int i = 0; i <= index && fields >> value; ++i) continue;
  return fields ? value : -1;
}

}  // namespace

Command::Command(const std::string& shell) {
  static std::atomic<int> counter{0};
  tag_ = "t" + std::to_string(getpid()) + "_" + std::to_string(counter++);
  const std::string line = "cd '" + source_dir() + "' && exec env HARNESS_TEST_TAG=" + tag_ + " " + shell;
  pid_ = session_ = fork();
  if (pid_ == 0) {
    setsid();
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
}

Command::~Command() {
  kill_all(SIGKILL);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

Outcome Command::wait(double timeout_s) {
  const auto start = Clock::now();
  Outcome o;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (since(start) > timeout_s) {
      kill_all(SIGKILL);
      ::kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
      o.out = text_of(out_file_);
      o.err = text_of(err_file_) + "\n(the test's time-out ended it)";
      return o;
    }
    nap();
  }
  pid_ = -1;
  o.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  o.out = text_of(out_file_);
  o.err = text_of(err_file_);
  return o;
}

std::vector<pid_t> Command::tagged(const std::string& argument) const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // The other files of a process of idle priority cannot be read while it waits for a CPU inside fork or mmap.
    if (stat_field(name, 2) != session_) continue;
    if (text_of(entry.path() / "environ").find("HARNESS_TEST_TAG=" + tag_ + '\0') == std::string::npos) continue;
    const std::string line = text_of(entry.path() / "cmdline");
    const std::size_t first = line.find('\0');
    const bool is_it = first != std::string::npos && line.compare(first + 1, argument.size() + 1, argument + '\0') == 0;
    if (!argument.empty() && !is_it) continue;
    if (text_of(entry.path() / "stat").find(") Z ") != std::string::npos) continue;
    found.push_back(std::stoi(name));
  }
  // Between fork and exec, a child still shows its parent's command line.
  const std::vector<pid_t> all = found;
  std::erase_if(found, [&](pid_t pid) {
    return !argument.empty() && std::find(all.begin(), all.end(), stat_field(std::to_string(pid), 0)) != all.end();
  });
  return found;
}

pid_t Command::of_rank(const std::string& argument, int rank) const {
  const std::string wanted = '\0' + std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0';
  for (const pid_t pid : tagged(argument)) {
    if (('\0' + text_of("/proc/" + std::to_string(pid) + "/environ")).find(wanted) != std::string::npos) return pid;
  }
  throw std::runtime_error("no process is rank " + std::to_string(rank));
}

bool Command::leaves_no_process() const {
  return wait_until([this] { return tagged("").empty(); });
}

void Command::kill_all(int signal) const {
  for (const pid_t pid : tagged("")) ::kill(pid, signal);
}

std::string Command::err_so_far() const {
  return text_of(err_file_);
}

bool Command::wait_for(const std::string& text, double timeout_s) const {
  for (const auto start = Clock::now(); since(start) < timeout_s; nap()) {
    if (err_so_far().find(text) != std::string::npos) return true;
  }
  return false;
}

Outcome run(const std::string& shell, double timeout_s) {
  return Command(shell).wait(timeout_s);
}

std::string under_mpirun(int ranks, const std::string& command) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np " +
         std::to_string(ranks) + " " + command;
}

std::string harness_job(int ranks, const std::string& arguments) {
  return under_mpirun(ranks, program_path() + " " + arguments);
}

std::string write_small_config(const TemporaryFolder& folder, int rounds, const std::string& sweep) {
  std::ostringstream text;
  text << "name: small\n"
          "backend: cpu\n"
          "model: {layers: 2, hidden: 32, heads: 2, vocab: 64, sequence: 16}\n"
          "baseline: {global_batch_size: 8, micro_batch_size: 1, threads: 1}\n"
          "sweep:\n"
       << (sweep.empty() ? "  micro_batch_size: [2]\n  overlap_grad_reduce: [false]\n" : sweep)
       << "measure: {rounds: " << rounds
       << ", warmup_steps: 1, steps: 3, seed: 1, deadlines: {start: 120 s, step: 60 s}}\n"
       << "output: " << folder.path() << "/{name}.h5\n";
  return folder.write("small.yaml", text.str());
}

}  // namespace harness::test
