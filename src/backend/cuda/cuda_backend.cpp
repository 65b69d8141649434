#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/cuda/tuner.h"
#include "base/clock.h"
#include "base/rendezvous.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

constexpr auto look_again = std::chrono::microseconds(50);

class CudaBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cuda; }

  std::vector<std::pair<std::string, std::string>> identity(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    return {{"device", device.name},
            {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
            {"multiprocessors", std::to_string(device.multiprocessors)},
            {"cuda_driver", driver_version()},
            {"cuda_runtime", runtime_version()},
            {"cublaslt", Blas::version()},
            {"cudnn", cudnn_version()},
            {"nccl", Collectives::version()}};
  }

  std::string device(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    return fmt::format("{} {}", device.bus_id, device.name);
  }

  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<CudaExecutable>(request);
  }

  backend::Tuning tune(const backend::ExecutableRequest& request) const override {
    const Device device = use_device(request);
    const bool tf32 = request.settings.precision == config::Precision::tf32;
    const backend::Tuning known = request.tuning ? *request.tuning : backend::Tuning{};
    Effort effort;
    effort.limit_s = request.tuning_s;
    effort.warm_up_s = std::min(effort.warm_up_s, request.tuning_s / 10);
    return tune_products(*request.program, tf32, known, device.l2_bytes, effort);
  }

  double measure_matmul_flops(config::Precision precision, const backend::ExecutableRequest& request,
                              double seconds) const override {
    static_cast<void>(use_device(request));
    return measure_products(precision, seconds);
  }

  double measure_copy_bandwidth(const backend::ExecutableRequest& request, double seconds) const override {
    static_cast<void>(use_device(request));
    return measure_copies(seconds);
  }

  machine::HostCopies measure_host_copies(const backend::ExecutableRequest& request, double seconds) const override {
    static_cast<void>(use_device(request));
    return cuda::measure_host_copies(seconds);
  }
};

}  // namespace

Staging::Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const program::Buffer& buffer = program.buffers[b];
    if (buffer.kind != program::BufferKind::input) continue;
    inputs_.push_back({buffer.name, tensor({static_cast<program::BufferId>(b), 0, buffer.count}), slot_bytes_});
    slot_bytes_ += (buffer.bytes() + program::Arena::alignment_bytes - 1) / program::Arena::alignment_bytes *
                   program::Arena::alignment_bytes;
  }
  pinned_ = Memory(Memory::Kind::pinned, slots * slot_bytes_, "the inputs of the next steps");
}

void Staging::fill(std::int64_t step, const program::InputSource& inputs) {
  for (const Input& input : inputs_) {
    inputs.fill(input.name, step, {host(step, input), static_cast<std::size_t>(input.device.bytes())});
  }
}

void Staging::copy(std::int64_t step, Stream stream) {
  for (const Input& input : inputs_) copy_in(stream, input.device.data, host(step, input), input.device.bytes());
}

CudaExecutable::CudaExecutable(const backend::ExecutableRequest& request)
    : program_(*request.program),
      at_(request.layout.coordinates(request.rank)),
      with_graph_(request.settings.cuda_graph),
      timeout_s_(request.timeout_s),
      alone_(request.layout.ranks() == 1),
      state_(std::make_unique<State>(request)) {
  state_->compiler = std::make_unique<Compiler>(request, [this](const program::View& v) { return tensor(v); });
  state_->staging = std::make_unique<Staging>(program_, [this](const program::View& v) { return tensor(v); });
}

CudaExecutable::~CudaExecutable() {
  if (state_->broken) static_cast<void>(state_.release());
}

backend::Tensor CudaExecutable::tensor(const program::View& v) const {
  return backend::locate(v, program_, state_->arena, state_->memory.data(), at_);
}

Stream CudaExecutable::stream(program::StreamId id) const {
  return state_->streams.at(id).get();
}

std::vector<RendezvousMessage> CudaExecutable::publish() {
  return state_->collectives.publish();
}

std::shared_ptr<backend::Connections> CudaExecutable::release_connections() {
  if (state_->broken) return nullptr;
  return state_->collectives.release();
}

void CudaExecutable::connect(const std::vector<RendezvousMessage>& received, double timeout_s) {
  set_device(state_->device.ordinal);
  try {
    state_->collectives.connect(received, timeout_s);
    state_->init = prepare(program_.init);
    state_->step = prepare(program_.step);
  } catch (...) {
    state_->broken = true;
    throw;
  }
}

CudaExecutable::List CudaExecutable::prepare(const std::vector<program::Operation>& operations) {
  List list;
  list.commands = make_commands(operations, program_.streams.size());
  for (const program::Operation& op : operations) {
    list.runs.push_back(
        program::is_communication(op.action)
            ? state_->collectives.prepare(op.action, [this](const program::View& v) { return tensor(v); })
            : state_->compiler->compile(op));
  }
  for (std::int32_t i = 0; i < list.commands.events; ++i) list.events.emplace_back(OwnedEvent::Timing::off);
  return list;
}

void CudaExecutable::enqueue(const List& list, const Around& around) {
  program::OperationId group = -1;  // the first member of the group under way
  bool grouped = false;
  const auto tell = [&](program::OperationId operation, program::StreamId on, bool before) {
    if (around) around(operation, stream(on), before);
  };
  Ranges* ranges = &list == &state_->step ? &state_->ranges : nullptr;
  for (const Command& c : list.commands.commands) {
    switch (c.kind) {
      case CommandKind::launch:
        if (ranges != nullptr) ranges->before(c.operation);
        // A group launches everything at its end, as one.
        if (!grouped || group < 0) tell(c.operation, c.stream, true);
        if (grouped && group < 0) group = c.operation;
        list.runs[c.operation](stream(c.stream));
        if (!grouped) tell(c.operation, c.stream, false);
        break;
      case CommandKind::record:
        list.events[c.event].record(stream(c.stream));
        break;
      case CommandKind::wait:
        wait_for(stream(c.stream), list.events[c.event].get());
        break;
      case CommandKind::group_start:
        state_->collectives.group_start();
        grouped = true;
        group = -1;
        break;
      case CommandKind::group_end:
        state_->collectives.group_end();
        tell(group, c.stream, false);
        grouped = false;
        break;
    }
  }
  if (ranges != nullptr) ranges->end();
}

void CudaExecutable::await(const OwnedEvent& event, const char* what) {
  const double deadline = system_clock().seconds() + timeout_s_;
  waiting_ = !alone_;
  while (!event.done()) {
    if (const std::string failure = state_->collectives.failure(); !failure.empty()) {
      throw backend::PeerLost(fmt::format("{}: lost contact with another rank ({})", what, failure));
    }
    if (system_clock().seconds() > deadline) {
      const std::string text = fmt::format("{} did not end within {:.0f} s", what, timeout_s_);
      if (alone_) throw Error(text);
      throw backend::PeerLost(text + ": a rank is missing or stuck");
    }
    std::this_thread::sleep_for(look_again);
  }
  waiting_ = false;
}

void CudaExecutable::initialize() {
  set_device(state_->device.ordinal);
  State& s = *state_;
  const Stream origin = stream(0);
  const OwnedEvent done(OwnedEvent::Timing::off);
  try {
    clear(origin, s.memory.data(), s.memory.bytes());
    enqueue(s.step);
    done.record(origin);
    await(done, "the rehearsal of a step");
    clear(origin, s.memory.data(), s.memory.bytes());
    enqueue(s.init);
    done.record(origin);
    await(done, "the initialisation");
    if (with_graph_) s.graph.emplace(origin, [&] { enqueue(s.step); });
  } catch (...) {
    s.broken = true;
    throw;
  }
}

std::vector<double> CudaExecutable::run(std::int64_t first_step, int steps, const program::InputSource& inputs) {
  set_device(state_->device.ordinal);
  State& s = *state_;
  const Stream origin = stream(0);
  std::vector<OwnedEvent> ends;  // [i]: of step i - 1
  for (int i = 0; i <= steps; ++i) ends.emplace_back(OwnedEvent::Timing::on);
  try {
    // The host's work before the first steps is no part of them, as it is no part of those that follow, unless it waits
    // for data.
    const int filled = inputs.is_part_of_step() ? 0 : std::min(steps, Staging::slots);
    for (int i = 0; i < filled; ++i) s.staging->fill(first_step + i, inputs);
    ends[0].record(origin);
    await(ends[0], "the work before a step");
    std::vector<double> times{system_clock().seconds()};
    std::size_t finished = 0;  // steps whose time has been taken
    const auto take_time = [&] {
      await(ends[finished + 1], "a step");
      times.push_back(times.back() + ends[finished + 1].seconds_since(ends[finished]));
      ++finished;
      current_step_ = first_step + static_cast<std::int64_t>(finished);
    };
    current_step_ = first_step;
    for (int i = 0; i < steps; ++i) {
      // Some steps ahead of the device and no more: a fault is noticed soon, and the slots are free again.
      while (i - static_cast<int>(finished) >= Staging::slots) take_time();
      const std::int64_t number = first_step + i;
      steps_begun_ = number;
      if (i >= filled) s.staging->fill(number, inputs);
      s.staging->copy(number, origin);
      if (s.graph) {
        const Range range("step");
        s.graph->launch(origin);
      } else {
        enqueue(s.step);
      }
      ends[i + 1].record(origin);
    }
    while (std::cmp_less(finished, steps)) take_time();
    return times;
  } catch (...) {
    s.broken = true;
    throw;
  }
}

void CudaExecutable::read(const program::View& view, std::span<std::byte> to) {
  set_device(state_->device.ordinal);
  const backend::Tensor t = tensor(view);
  if (std::cmp_not_equal(t.bytes(), to.size())) {
    fail("a view of {} bytes was to be read into {} bytes", t.bytes(), to.size());
  }
  copy_out(stream(0), to.data(), t.data, t.bytes());
  synchronize(stream(0));
}

void CudaExecutable::write(const program::View& view, std::span<const std::byte> from) {
  set_device(state_->device.ordinal);
  const backend::Tensor t = tensor(view);
  if (std::cmp_not_equal(t.bytes(), from.size())) {
    fail("a view of {} bytes was to be written from {} bytes", t.bytes(), from.size());
  }
  copy_in(stream(0), t.data, from.data(), t.bytes());
  synchronize(stream(0));
}

backend::Progress CudaExecutable::progress() const {
  backend::Progress p;
  p.step = std::min(current_step_.load(std::memory_order_relaxed), steps_begun_.load(std::memory_order_relaxed));
  p.in_communication = waiting_.load(std::memory_order_relaxed);
  return p;
}

void CudaExecutable::begin_watch() {
  state_->monitor.start();
}

machine::GpuStatistics CudaExecutable::end_watch() {
  return state_->monitor.stop();
}

std::int64_t CudaExecutable::device_memory_bytes() const {
  return used_memory_bytes();
}

std::vector<std::string> CudaExecutable::warnings() const {
  std::vector<std::string> all = state_->compiler->warnings();
  all.insert(all.end(), state_->warnings.begin(), state_->warnings.end());
  if (const std::string& why = state_->monitor.unavailable(); !why.empty()) {
    all.push_back("clocks, power and utilisation of the GPUs are not recorded: " + why);
  }
  return all;
}

const backend::Backend& cuda_backend() {
  static const CudaBackend the_backend;
  return the_backend;
}

}  // namespace harness::cuda

// load_backend() looks for this name.
extern "C" __attribute__((visibility("default"))) const harness::backend::Backend* harness_cuda_backend() {
  return &harness::cuda::cuda_backend();
}
