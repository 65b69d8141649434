#include "worker/state.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "job/messages.h"

namespace harness::worker {
namespace {

std::atomic<job::WorkerPhase> phase{job::WorkerPhase::starting};
std::atomic<const backend::Executable*> executable{nullptr};
std::atomic<const program::Program*> program{nullptr};
std::atomic<int> lookers{0};  // at what executable points to
std::atomic<int> last_words_fd{-1};

struct Looking {
  Looking() { ++lookers; }
  ~Looking() { --lookers; }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;
};

// title() of program.h without its allocations.
void write_title(std::array<char, 120>& to, const program::Operation& operation) {
  const std::string_view name = program::name_of(operation.action);
  auto out = fmt::format_to_n(to.data(), to.size() - 1, "{} {}", name, operation.label.what);
  const auto more = [&](const char* what, int value) {
    if (value < 0 || out.size >= to.size() - 1) return;
    const auto used = out.size;
    out = fmt::format_to_n(to.data() + used, to.size() - 1 - used, ", {} {}", what, value);
    out.size += used;
  };
  more("layer", operation.label.layer);
  more("micro-batch", operation.label.micro_batch);
  to[std::min(out.size, to.size() - 1)] = '\0';
}

void write_last_words() {
  const int fd = last_words_fd.exchange(-1);
  if (fd < 0) return;
  // A frame by hand: frame_bytes() allocates, and the heap may be what broke.
  constexpr job::FrameType type = job::FrameType::last_words;
  constexpr std::uint64_t length = sizeof(job::WorkerProgress);
  const job::WorkerProgress progress = worker_progress();
  std::array<char, sizeof type + sizeof length + sizeof progress> frame;
  std::memcpy(frame.data(), &type, sizeof type);
  std::memcpy(frame.data() + sizeof type, &length, sizeof length);
  std::memcpy(frame.data() + sizeof type + sizeof length, &progress, sizeof progress);
  [[maybe_unused]] const ssize_t written = ::write(fd, frame.data(), frame.size());
}

void on_fault(int number) {
  write_last_words();
  ::raise(number);  // the default action is back
}

}  // namespace

void set_worker_phase(job::WorkerPhase now) {
  phase = now;
}

void set_worker_executable(const backend::Executable* e, const program::Program* p) {
  executable = nullptr;
  while (lookers != 0) std::this_thread::yield();
  program = p;
  executable = e;
}

job::WorkerProgress worker_progress() {
  job::WorkerProgress result;
  result.phase = phase;
  result.in_communication = result.phase == job::WorkerPhase::exchanging ||
                            result.phase == job::WorkerPhase::connecting || result.phase == job::WorkerPhase::ready ||
                            result.phase == job::WorkerPhase::done;
  const Looking looking;
  const backend::Executable* e = executable;
  if (e == nullptr || result.phase != job::WorkerPhase::stepping) return result;
  const backend::Progress progress = e->progress();
  result.step = progress.step;
  result.in_communication = progress.in_communication ? 1 : 0;
  const std::vector<program::Operation>& step = program.load()->step;
  if (progress.operation >= 0 && progress.operation < std::ssize(step)) {
    write_title(result.operation, step[progress.operation]);
  }
  return result;
}

void speak_last_words(int fd) {
  last_words_fd = fd;
  std::atexit([] {
    if (phase != job::WorkerPhase::done) write_last_words();
  });
  static std::array<char, 65536> stack;
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = on_fault;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(number, &action, nullptr);
}

}  // namespace harness::worker
