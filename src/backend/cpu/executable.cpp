#include "backend/cpu/executable.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/onednn.h"
#include "backend/cpu/parallel.h"
#include "base/clock.h"
#include "program/count.h"

namespace harness::cpu {
namespace {

std::byte* allocate(std::int64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("the step needs {} bytes of memory, which this machine does not give", bytes);
  madvise(p, bytes, MADV_HUGEPAGE);  // fewer TLB misses; an advice, so its result is none
  auto* memory = static_cast<std::byte*>(p);
  // Touched first by the threads that will use it, so that the pages lie on their NUMA node.
  parallel_ranges(bytes, std::int64_t{2} << 20,
                  [&](std::int64_t first, std::int64_t last, int) { std::memset(memory + first, 0, last - first); });
  return memory;
}

// The step is over on all ranks when the last all-reduce is: by construction the one of the loss over the world.
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

}  // namespace

void CpuExecutable::Free::operator()(std::byte* p) const {
  munmap(p, bytes);
}

CpuExecutable::CpuExecutable(const backend::ExecutableRequest& request)
    : program_(*request.program),
      at_(request.layout.coordinates(request.rank)),
      threads_(checked_threads(request.threads)),
      arena_(program::plan_arena(program_)),
      memory_(allocate(std::max<std::int64_t>(arena_.bytes, 1)),
              Free{static_cast<std::size_t>(std::max<std::int64_t>(arena_.bytes, 1))}),
      communication_(request),
      compiler_(request, [this](const program::View& v) { return tensor(v); }),
      around_(request.around ? request.around(request) : nullptr) {}

CpuExecutable::~CpuExecutable() {
  streams_.reset();  // before what its threads use
}

std::vector<RendezvousMessage> CpuExecutable::publish() {
  omp_set_num_threads(threads_);
  std::vector<RendezvousMessage> messages = communication_.publish();
  // The transfers, too: their receive buffers must be known before a peer can send, and peers that are connected from
  // an earlier Program on can as soon as all have published.
  init_ = compile(compiler_, program_.init);
  step_ = compile(compiler_, program_.step);
  return messages;
}

std::shared_ptr<backend::Connections> CpuExecutable::release_connections() {
  watched_.store(nullptr, std::memory_order_release);
  streams_.reset();  // they know the transfers
  init_ = TaskList();
  step_ = TaskList();
  return communication_.release();
}

void CpuExecutable::connect(const std::vector<RendezvousMessage>& received, double timeout_s) {
  communication_.connect(received, timeout_s);
  streams_ = std::make_unique<Streams>(std::vector<const TaskList*>{&init_, &step_}, program_.streams.size(),
                                       [this] { communication_.abort(); });
  watched_.store(streams_.get(), std::memory_order_release);
}

TaskList CpuExecutable::compile(Compiler& compiler, const std::vector<program::Operation>& list) {
  std::vector<Task> tasks;
  for (const program::Operation& op : list) {
    Task task{op.stream, op.waits, op.fused_group, nullptr, {}};
    const bool communicates = program::is_communication(op.action);
    if (communicates) {
      task.transfer = communication_.prepare(op, [this](const program::View& v) { return tensor(v); });
    } else {
      task.compute = compiler.compile(op);
    }
    std::function<void()>& work = communicates ? task.transfer.finish : task.compute;
    if (around_) work = around_(op, std::move(work));
    tasks.push_back(std::move(task));
  }
  return {std::move(tasks), program_.streams.size(), closing_operation(list)};
}

void CpuExecutable::initialize() {
  if (!streams_) fail("the executable is not connected");
  omp_set_num_threads(threads_);
  streams_->run(init_);
}

double CpuExecutable::step(std::int64_t number, const program::InputSource& inputs,
                           std::vector<program::Interval>* intervals) {
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
  // A step begins with its inputs.
  for (std::size_t i = 0; intervals && i < intervals->size(); ++i) {
    (*intervals)[i].start_s += loaded_s;
    (*intervals)[i].end_s += loaded_s;
  }
  return closed_s;
}

std::vector<double> CpuExecutable::run(std::int64_t first_step, int steps, const program::InputSource& inputs) {
  if (!streams_) fail("the executable is not connected");
  omp_set_num_threads(threads_);
  std::vector<double> times{system_clock().seconds()};
  for (int i = 0; i < steps; ++i) times.push_back(step(first_step + i, inputs, nullptr));
  return times;
}

std::vector<program::Interval> CpuExecutable::run_profiled(std::int64_t number, const program::InputSource& inputs) {
  if (!streams_) fail("the executable is not connected");
  omp_set_num_threads(threads_);
  std::vector<program::Interval> intervals;
  step(number, inputs, &intervals);
  return intervals;
}

std::span<std::byte> CpuExecutable::bytes_of(const program::View& view, std::size_t expected) const {
  const backend::Tensor t = tensor(view);
  const std::size_t bytes = t.count * program::size_of(t.type);
  if (bytes != expected) fail("a view of {} bytes was to be copied to or from {} bytes", bytes, expected);
  return {static_cast<std::byte*>(t.data), bytes};
}

void CpuExecutable::read(const program::View& view, std::span<std::byte> to) {
  const auto from = bytes_of(view, to.size());
  std::memcpy(to.data(), from.data(), to.size());
}

void CpuExecutable::write(const program::View& view, std::span<const std::byte> from) {
  const auto to = bytes_of(view, from.size());
  std::memcpy(to.data(), from.data(), from.size());
}

backend::Progress CpuExecutable::progress() const {
  backend::Progress p;
  p.step = steps_begun_.load(std::memory_order_relaxed);
  if (const Streams* streams = watched_.load(std::memory_order_acquire)) {
    p.operation = streams->operation();
    p.in_communication = streams->in_communication();
  }
  return p;
}

std::vector<std::string> CpuExecutable::warnings() const {
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
  const auto is_product = [](const program::Operation& op) { return program::flop_of(op.action).model > 0; };
  if (uses(program::DType::f16) && std::ranges::any_of(program_.step, is_product)) {
    out.emplace_back(
        "fp16 products are computed in fp32 on the cpu backend: its times say nothing about fp16 hardware; use "
        "precision: fp32");
  }
  if (uses(program::DType::bf16) && !has_native_bf16()) {
    out.push_back(
        fmt::format("bf16 products are emulated on this CPU (oneDNN makes code for {}, bf16 needs "
                    "avx512_core_bf16): its times say nothing about bf16 hardware; use precision: fp32",
                    onednn_instruction_set()));
  }
  return out;
}

}  // namespace harness::cpu
