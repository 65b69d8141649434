#include "worker/channel.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace harness::worker {
namespace {

constexpr int supervisor_gone_exit = 3;

}  // namespace

WorkerChannel::WorkerChannel() {
  for (const int descriptor : {job::orders_descriptor, job::reports_descriptor}) {
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
      fail(
          "a worker got no pipe to its supervisor (descriptor {}): `harness sweep` starts workers, and the command of "
          "--wrap must leave descriptors open for what it starts",
          descriptor);
    }
  }
  listener_ = std::thread([this] { listen(); });
}

WorkerChannel::~WorkerChannel() {
  // The thread ends with `bye`; without it the process is about to be ended anyway.
  if (listener_.joinable()) listener_.detach();
}

void WorkerChannel::send(job::FrameType type, std::string_view payload) {
  const std::string bytes = job::frame_bytes(type, payload);
  const std::lock_guard lock(write_mutex_);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(job::reports_descriptor, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += n;
    } else if (errno != EINTR) {
      std::_Exit(supervisor_gone_exit);
    }
  }
}

job::Frame WorkerChannel::receive() {
  std::unique_lock lock(queue_mutex_);
  queue_changed_.wait(lock, [this] { return !queue_.empty(); });
  job::Frame frame = std::move(queue_.front());
  queue_.pop_front();
  return frame;
}

std::string WorkerChannel::receive(job::FrameType wanted) {
  job::Frame frame = receive();
  if (frame.type != wanted) {
    fail("the supervisor sent a frame of type {}, but the worker expected type {}", static_cast<int>(frame.type),
         static_cast<int>(wanted));
  }
  return std::move(frame.payload);
}

void WorkerChannel::listen() {
  job::FrameReader reader;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(job::orders_descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(supervisor_gone_exit);
    reader.append(std::string_view(buffer.data(), n));
    while (auto frame = reader.next()) {
      if (frame->type == job::FrameType::ask) {
        send(job::FrameType::progress, job::encode(worker_progress()));
        continue;
      }
      const bool last = frame->type == job::FrameType::bye;
      {
        const std::lock_guard lock(queue_mutex_);
        queue_.push_back(std::move(*frame));
      }
      queue_changed_.notify_one();
      if (last) return;
    }
  }
}

namespace {

std::atomic<job::WorkerPhase> phase{job::WorkerPhase::starting};
std::atomic<const backend::Executable*> executable{nullptr};
std::atomic<const program::Program*> program{nullptr};
std::atomic<int> lookers{0};  // threads that use `executable`
std::atomic<std::uint64_t> pieces{0};
std::atomic<bool> has_last_words{false};

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
  if (!has_last_words.exchange(false)) return;
  // Builds the frame by hand: frame_bytes() allocates, and the heap may be corrupt.
  constexpr job::FrameType type = job::FrameType::last_words;
  constexpr std::uint64_t length = sizeof(job::WorkerProgress);
  const job::WorkerProgress progress = worker_progress();
  std::array<char, sizeof type + sizeof length + sizeof progress> frame;
  std::memcpy(frame.data(), &type, sizeof type);
  std::memcpy(frame.data() + sizeof type, &length, sizeof length);
  std::memcpy(frame.data() + sizeof type + sizeof length, &progress, sizeof progress);
  [[maybe_unused]] const ssize_t written = ::write(job::reports_descriptor, frame.data(), frame.size());
}

void on_fault(int number) {
  write_last_words();
  ::raise(number);  // SA_RESETHAND has restored the default action
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

void CountedAccess::read(const program::View& view, std::span<std::byte> to) {
  inner_.read(view, to);
  ++pieces;
}

void CountedAccess::write(const program::View& view, std::span<const std::byte> from) {
  inner_.write(view, from);
  ++pieces;
}

job::WorkerProgress worker_progress() {
  job::WorkerProgress result;
  result.phase = phase;
  result.pieces = pieces;
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

void speak_last_words() {
  has_last_words = true;
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
