#include "backend/cpu/cpu_backend.h"

#include <gloo/config.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/communication.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/streams.h"
#include "base/clock.h"
#include "base/rendezvous.h"
#include "machine/cpus.h"
#include "program/count.h"

namespace harness::cpu {
namespace {

struct Free {
  std::size_t bytes;
  void operator()(std::byte* p) const { munmap(p, bytes); }
};
using OwnedMemory = std::unique_ptr<std::byte, Free>;

OwnedMemory allocate(std::int64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("the step needs {} bytes of memory, which this machine does not give", bytes);
  madvise(p, bytes, MADV_HUGEPAGE);  // fewer TLB misses; only advice, so failure does not matter
  auto* memory = static_cast<std::byte*>(p);
  // The first touch, by the threads that will use it, places the pages on their NUMA node.
  parallel_ranges(bytes, std::int64_t{2} << 20,
                  [&](std::int64_t first, std::int64_t last, int) { std::memset(memory + first, 0, last - first); });
  return {memory, Free{static_cast<std::size_t>(bytes)}};
}

// A step is over on all ranks when its last all-reduce is: by construction, that of the loss over all ranks.
program::OperationId closing_operation(const std::vector<program::Operation>& list) {
  for (auto i = static_cast<program::OperationId>(list.size()) - 1; i >= 0; --i) {
    if (std::holds_alternative<program::AllReduce>(list[i].action)) return i;
  }
  return -1;
}

int checked_threads(int threads) {
  if (threads < 1) fail("the cpu backend needs at least one thread, got {}", threads);
  omp_set_num_threads(threads);  // before anything is built: products are generated for a number of threads
  return threads;
}

// Returns the amount per second of calls that each do `amount`, from one call or more for about `seconds`.
template <class F>
double rate_of(double amount, double seconds, const F& call) {
  double total = 0;
  const double begin = system_clock().seconds();
  double end = begin;
  while (end - begin < seconds || total == 0) {
    call();
    total += amount;
    end = system_clock().seconds();
  }
  return total / (end - begin);
}

/// A Program on this rank's share of the CPU: one allocation, the compute stream on the calling thread with its OpenMP
/// threads, a sleeping thread for each further stream.
class CpuExecutable : public backend::Executable {
 public:
  explicit CpuExecutable(const backend::ExecutableRequest& request)
      : program_(*request.program),
        at_(request.layout.coordinates(request.rank)),
        threads_(checked_threads(request.threads)),
        arena_(program::plan_arena(program_)),
        memory_(allocate(std::max<std::int64_t>(arena_.bytes, 1))),
        communication_(request),
        compile_(make_compiler(request, [this](const program::View& v) { return tensor(v); })),
        around_(request.around ? request.around(request) : nullptr) {}

  ~CpuExecutable() override {
    streams_.reset();  // its threads use the other members
  }

  std::vector<RendezvousMessage> publish() override {
    omp_set_num_threads(threads_);
    std::vector<RendezvousMessage> messages = communication_.publish();
    // Prepare the transfers as well: receive buffers must exist before a peer can send, and peers whose connections are
    // kept from an earlier Program can send as soon as all ranks have published.
    init_ = make_ready(program_.init);
    step_ = make_ready(program_.step);
    return messages;
  }

  std::shared_ptr<backend::Connections> release_connections() override {
    watched_.store(nullptr, std::memory_order_release);
    streams_.reset();  // they refer to the transfers
    init_ = TaskList();
    step_ = TaskList();
    return communication_.release();
  }

  void connect(const std::vector<RendezvousMessage>& received, double timeout_s) override {
    communication_.connect(received, timeout_s);
    streams_ = std::make_unique<Streams>(std::vector<const TaskList*>{&init_, &step_}, program_.streams.size(),
                                         [this] { communication_.abort(); });
    watched_.store(streams_.get(), std::memory_order_release);
  }

  void initialize() override {
    omp_set_num_threads(threads_);
    streams_->run(init_);
  }

  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) override {
    omp_set_num_threads(threads_);
    std::vector<double> times{system_clock().seconds()};
    for (int i = 0; i < steps; ++i) times.push_back(step(first_step + i, inputs, nullptr));
    return times;
  }

  std::vector<program::Interval> run_profiled(std::int64_t number, const program::InputSource& inputs) override {
    omp_set_num_threads(threads_);
    std::vector<program::Interval> intervals;
    step(number, inputs, &intervals);
    return intervals;
  }

  void read(const program::View& view, std::span<std::byte> to) override {
    const backend::Tensor from = tensor(view);
    backend::require_size(from, to.size());
    std::memcpy(to.data(), from.data, to.size());
  }

  void write(const program::View& view, std::span<const std::byte> from) override {
    const backend::Tensor to = tensor(view);
    backend::require_size(to, from.size());
    std::memcpy(to.data, from.data(), from.size());
  }

  backend::Progress progress() const override {
    backend::Progress p;
    p.step = steps_begun_.load(std::memory_order_relaxed);
    if (const Streams* streams = watched_.load(std::memory_order_acquire)) {
      p.operation = streams->operation();
      p.in_communication = streams->in_communication();
    }
    return p;
  }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> out;
    const auto uses = [&](program::DType type) {
      return std::ranges::any_of(program_.buffers, [&](const program::Buffer& b) { return b.type == type; });
    };
    if (uses(program::DType::e4m3)) {
      out.push_back(
          fmt::format("{0} products are emulated on a CPU: their factors are rounded to 8-bit floats and multiplied in "
                      "bf16. Losses are those of {0}; times say nothing about it, so there is no MFU",
                      uses(program::DType::e8m0) ? "mxfp8" : "fp8"));
    }
    // bf16 is also a type of messages, whose steps may multiply in fp32.
    const auto multiplies = [&](program::DType type) {
      return std::ranges::any_of(program_.step, [&](const program::Operation& op) {
        if (!(program::flop_of(op.action).model > 0)) return false;
        bool touches = false;
        program::visit_accesses(op.action, [&](program::Access, const program::View& view) {
          touches = touches || program_.buffer_of(view).type == type;
        });
        return touches;
      });
    };
    if (multiplies(program::DType::f16)) {
      out.emplace_back(
          "fp16 products are computed in fp32 on the cpu backend: its times say nothing about fp16 hardware; use "
          "precision: fp32");
    }
    if (multiplies(program::DType::bf16) && !has_native_bf16()) {
      out.push_back(
          fmt::format("bf16 products are emulated on this CPU (oneDNN makes code for {}, bf16 needs "
                      "avx512_core_bf16): its times say nothing about bf16 hardware; use precision: fp32",
                      onednn_instruction_set()));
    }
    return out;
  }

 private:
  backend::Tensor tensor(const program::View& view) const {
    return backend::locate(view, program_, arena_, memory_.get(), at_);
  }

  TaskList make_ready(const std::vector<program::Operation>& list) {
    std::vector<Task> tasks;
    for (const program::Operation& op : list) {
      Task task{op.stream, op.waits, op.fused_group, program::is_communication(op.action), {}};
      if (task.communicates) {
        task.work = communication_.prepare(op, [this](const program::View& v) { return tensor(v); });
      } else {
        task.work.finish = compile_(op);
      }
      if (around_) task.work.finish = around_(op, std::move(task.work.finish));
      tasks.push_back(std::move(task));
    }
    return {std::move(tasks), program_.streams.size(), closing_operation(list)};
  }

  double step(std::int64_t number, const program::InputSource& inputs, std::vector<program::Interval>* intervals) {
    steps_begun_.fetch_add(1, std::memory_order_relaxed);
    const double began_s = system_clock().seconds();
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const program::Buffer& buffer = program_.buffers[b];
      if (buffer.kind != program::BufferKind::input) continue;
      inputs.fill(buffer.name, number,
                  {memory_.get() + arena_.offset_bytes[b], static_cast<std::size_t>(buffer.bytes())});
    }
    const double loaded_s = system_clock().seconds() - began_s;
    const double closed_s = streams_->run(step_, intervals);
    // Filling the inputs is the first part of the step.
    for (std::size_t i = 0; intervals && i < intervals->size(); ++i) {
      (*intervals)[i].start_s += loaded_s;
      (*intervals)[i].end_s += loaded_s;
    }
    return closed_s;
  }

  const program::Program& program_;
  program::Coordinates at_;
  int threads_;
  program::Arena arena_;
  OwnedMemory memory_;
  Communication communication_;
  Compiler compile_;
  backend::Around around_;
  TaskList init_, step_;
  std::unique_ptr<Streams> streams_;
  std::atomic<const Streams*> watched_{nullptr};  // for progress(), which another thread may call before connect()
  std::atomic<std::int64_t> steps_begun_{-1};
};

class CpuBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cpu; }

  std::vector<std::pair<std::string, std::string>> identity(
      const backend::ExecutableRequest& /*where*/) const override {
    return {{"cpu", machine::cpu_model()},
            {"onednn", onednn_version()},
            {"onednn_isa", onednn_instruction_set()},
            {"gloo", fmt::format("{}.{}.{} (of the header at build time)", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                                 GLOO_VERSION_PATCH)},
            {"openmp", std::to_string(_OPENMP)}};
  }

  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<CpuExecutable>(request);
  }

  double measure_matmul_flops(config::Precision precision, const backend::ExecutableRequest& where,
                              double seconds) const override {
    if (config::is_low(precision)) return 0;  // emulated: no peak that an MFU could refer to
    omp_set_num_threads(where.threads);
    constexpr std::int64_t n = 1024;
    const program::DType type = config::storage_of(precision);
    // Random numbers, because power draw, and so the clock rate, depends on the data.
    std::vector<float> a(n * n), b(n * n), out(n * n);
    std::uint64_t seed = 0;
    for (std::vector<float>* factor : {&a, &b}) {
      const backend::Tensor to{factor->data(), type, n * n};
      run(backend::Bound<program::Initialize>{.out = to, .full = n, .part = n, .inner = n, .deviation = 1},
          {.seed = ++seed});
    }
    Workspace workspace;
    const MatrixForm in{type, n, 1, 0}, result{program::DType::f32, n, 1, 0};
    Product product({.m = n, .n = n, .k = n, .a = in, .b = in, .out = result}, workspace);
    const auto once = [&] { product(a.data(), b.data(), out.data()); };
    for (int i = 0; i < 3; ++i) once();
    return rate_of(2.0 * n * n * n, seconds, once);
  }

  double measure_copy_bandwidth(const backend::ExecutableRequest& where, double seconds) const override {
    omp_set_num_threads(where.threads);
    constexpr std::int64_t n = 64 << 20;  // 256 MiB each way: larger than the last-level cache of all but a few CPUs
    std::vector<float> from(n, 1), to(n);
    const backend::Tensor in{from.data(), program::DType::f32, n}, out{to.data(), program::DType::f32, n};
    const auto copy = [&] { run(backend::Bound<program::Convert>{in, out}); };
    copy();
    return rate_of(2.0 * n * program::size_of(program::DType::f32), seconds, copy);
  }
};

}  // namespace

const backend::Backend& cpu_backend() {
  static const CpuBackend the_backend;
  return the_backend;
}

}  // namespace harness::cpu
