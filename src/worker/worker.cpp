#include "worker/worker.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>

#include "base/clock.h"
#include "base/rendezvous.h"
#include "base/text.h"
#include "base/units.h"
#include "job/job.h"
#include "machine/tree.h"
#include "worker/channel.h"

namespace harness::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int failed_exit = 1;
constexpr std::size_t max_text_bytes = 1 << 16;  // of a failure's text, below the limit of its frame

// Ties the worker to its supervisor: it dies when the supervisor does, and it ignores signals meant for the job, which
// the supervisor handles.
void belong_to_supervisor() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* supervisor = std::getenv("HARNESS_SUPERVISOR");
  if (supervisor != nullptr && *supervisor != '\0' && std::to_string(::getppid()) != supervisor)
    std::_Exit(failed_exit);
  for (const int number : job::stop_numbers) ::signal(number, SIG_IGN);
  for (const int number : {SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  sigset_t none;  // the supervisor started us with these blocked
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // If the kernel must kill a process for memory: a worker costs one block, a supervisor the whole sweep.
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

// Makes allocations of private writable memory fail beyond the limit. The margin is for memory that is reserved and
// never touched: stacks, allocator arenas. The supervisor also watches the resident size.
void limit_memory(double limit_bytes, int threads) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (limit_bytes <= 0) return;
  const double margin = 256e6 + 16e6 * threads;
  const auto limit = static_cast<rlim_t>(limit_bytes + margin);
  const rlimit both{limit, limit};
  ::setrlimit(RLIMIT_DATA, &both);
#else
  (void)limit_bytes;
  (void)threads;
#endif
}

// The kernel's high-water mark of resident memory. getrusage(), for kernels that hide it, also counts the supervisor's
// resident memory at the fork, which is more than small blocks take.
std::int64_t peak_resident_bytes() {
  const std::string text = machine::value_of(machine::Tree().bytes("proc/self/status").text, "VmHWM");
  std::string_view rest = text;
  if (const auto kibibytes = machine::number(machine::take_word(rest)); kibibytes && *kibibytes > 0)
    return static_cast<std::int64_t>(*kibibytes) * 1024;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

// Never destroyed at the end of the process: the control thread and last words use it to the very end.
Work& current_work() {
  static Work* const forever = new Work;
  return *forever;
}

// Ends the work of a block, on which the next one must not depend; returns its connections.
std::shared_ptr<backend::Connections> drop(Work& work) {
  set_worker_executable(nullptr, nullptr);
  std::shared_ptr<backend::Connections> connections;
  if (work.executable) connections = work.executable->release_connections();
  work.executable.reset();  // before the Program that it refers to
  work = {};
#if defined(__GLIBC__)
  ::malloc_trim(0);  // the allocator would keep an amount that depends on the blocks so far
#endif
  // Gives each block its own high-water mark. If the kernel refuses, the mark covers all blocks so far.
  std::ofstream("/proc/self/clear_refs") << 5;
  return connections;
}

void run_block(WorkerChannel& channel, const WorkFactory& make, const job::WorkerOrder& order,
               std::shared_ptr<backend::Connections> connections, Clock::time_point born) {
  job::Samples samples;
  set_worker_phase(job::WorkerPhase::building);
  Work& work = current_work();
  work = make(order, std::move(connections));
  set_worker_executable(work.executable.get(), work.program.get());
  job::Published published{work.program_hash, {}};
  if (work.executable) published.messages = work.executable->publish();
  set_worker_phase(job::WorkerPhase::exchanging);
  channel.send(job::FrameType::published, job::encode(published));
  const auto peers = job::decode<std::vector<RendezvousMessage>>(channel.receive(job::FrameType::peers));

  // The supervisors' deadlines are shorter and report more; this one only ensures that nothing waits forever.
  set_worker_phase(job::WorkerPhase::connecting);
  if (work.executable) work.executable->connect(peers, 2 * order.request.deadlines.start_s + 5);
  set_worker_phase(job::WorkerPhase::initializing);
  if (work.executable) work.executable->initialize();
  set_worker_phase(job::WorkerPhase::ready);
  channel.send(job::FrameType::ready, "");
  channel.receive(job::FrameType::go);

  set_worker_phase(job::WorkerPhase::stepping);
  samples.first_step_s = seconds_since(born);
  std::optional<Steps> steps;
  if (work.executable) steps.emplace(*work.executable, *work.program, *work.inputs, work.before_step);
  samples.task = work.task(steps ? &*steps : nullptr);
  if (steps) {
    samples.first_step_s += steps->first_step_s();
    std::ranges::copy(work.executable->warnings(), std::back_inserter(samples.warnings));
    if (work.check) check_outputs(*steps, *work.check);
    samples.peak_memory_bytes = work.executable->device_memory_bytes();
  }
  if (samples.peak_memory_bytes == 0) samples.peak_memory_bytes = peak_resident_bytes();
  set_worker_phase(job::WorkerPhase::done);
  channel.send(job::FrameType::samples, job::encode(samples));
}

// Runs blocks until the supervisor has no more. `order`: the current one, for the message of a failure.
void live(WorkerChannel& channel, const WorkFactory& make, job::WorkerOrder& order) {
  job::Frame frame = channel.receive();
  for (bool first = true; frame.type != job::FrameType::bye; first = false) {
    const auto born = Clock::now();
    if (frame.type != job::FrameType::order)
      fail("the supervisor sent a frame of type {} where a block was to begin", static_cast<int>(frame.type));
    order = job::decode<job::WorkerOrder>(frame.payload);
    std::shared_ptr<backend::Connections> connections;
    if (!first) {
      connections = drop(current_work());
    } else if (!config::traits_of(order.request.backend).ranks_are_gpus) {
      // Not for GPUs: a driver maps far more than it uses, and device memory is not the host's to limit.
      limit_memory(order.memory_limit_bytes, order.threads + order.request.settings.loader_threads());
    }
    run_block(channel, make, order, std::move(connections), born);
    frame = channel.receive();
  }
}

void give_up(WorkerChannel& channel, job::FaultKind kind, const std::string& text) {
  const job::WorkerProgress progress = worker_progress();
  set_worker_phase(job::WorkerPhase::done);  // the failure frame replaces last words
  channel.send(job::FrameType::failure,
               job::encode(job::WorkerFailure{kind, progress, text.substr(0, max_text_bytes)}));
  std::_Exit(failed_exit);
}

}  // namespace

int run_worker(const WorkFactory& make) {
  belong_to_supervisor();
  WorkerChannel channel;
  speak_last_words();
  job::WorkerOrder order;
  try {
    live(channel, make, order);
  } catch (const backend::PeerLost& e) {
    give_up(channel, job::FaultKind::peer_lost, e.what());
  } catch (const std::bad_alloc&) {
    const double limit = order.memory_limit_bytes;
    give_up(channel, job::FaultKind::out_of_memory,
            limit > 0 ? fmt::format("out of memory: limit {}", show_bytes(limit)) : "out of memory");
  } catch (const std::exception& e) {
    give_up(channel, job::FaultKind::error, e.what());
  }
  // All samples are delivered. The system frees what is left faster than destructors would.
  std::_Exit(0);
}

}  // namespace harness::worker
