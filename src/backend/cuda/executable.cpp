#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "backend/cuda/collectives.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/profile.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/gpus.h"

namespace harness::cuda {
namespace {

constexpr auto look_again = std::chrono::microseconds(50);

// The inputs of the next steps, in pinned memory: the host fills a step's slot, the copy engine copies it. Step i +
// slots reuses the slot of step i, so the caller fills it once step i is complete.
class Staging {
 public:
  static constexpr int slots = 3;

  Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor) {
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const program::Buffer& buffer = program.buffers[b];
      if (buffer.kind != program::BufferKind::input) continue;
      inputs_.push_back({buffer.name, tensor({static_cast<program::BufferId>(b), 0, buffer.count}), slot_bytes_});
      slot_bytes_ += (buffer.bytes() + program::Arena::alignment_bytes - 1) / program::Arena::alignment_bytes *
                     program::Arena::alignment_bytes;
    }
    pinned_ = Memory(Memory::Kind::pinned, slots * slot_bytes_, "the inputs of the next steps");
  }

  // Fills the slot of `step`, on the host only.
  void fill(std::int64_t step, const program::InputSource& inputs) {
    for (const Input& input : inputs_) {
      inputs.fill(input.name, step, {host(step, input), static_cast<std::size_t>(input.device.bytes())});
    }
  }
  // Enqueues the copies of the filled slot into the Program's input buffers on `stream`.
  void copy(std::int64_t step, Stream stream) {
    for (const Input& input : inputs_) copy_in(stream, input.device.data, host(step, input), input.device.bytes());
  }

 private:
  struct Input {
    std::string name;
    backend::Tensor device;
    std::int64_t offset_bytes = 0;
  };
  std::byte* host(std::int64_t step, const Input& input) const {
    return pinned_.data() + step % slots * slot_bytes_ + input.offset_bytes;
  }

  std::vector<Input> inputs_;
  std::int64_t slot_bytes_ = 0;
  Memory pinned_;
};

// Holds one allocation, a CUDA stream per stream of the Program (those that communicate at high priority) and events
// for its dependencies; with cuda_graph the step is captured once and launched as one.
//
// Before `init`, initialize() runs the step once on cleared memory and discards the results: NCCL connects lazily, at
// the first call of each algorithm, and libraries load kernels at their first launch; neither may happen in a timed
// step or inside a capture.
//
// A step is complete when all of its work is done: the closing all-reduce and the two words written after it.
class CudaExecutable : public backend::Executable {
 public:
  explicit CudaExecutable(const backend::ExecutableRequest& request)
      : program_(*request.program),
        at_(request.layout.coordinates(request.rank)),
        with_graph_(request.settings.cuda_graph),
        timeout_s_(request.timeout_s),
        alone_(request.layout.ranks() == 1),
        state_(std::make_unique<State>(request)) {
    const auto tensor_of = [this](const program::View& v) { return tensor(v); };
    state_->compile = make_compiler(request, tensor_of, state_->warnings);
    state_->staging = std::make_unique<Staging>(program_, tensor_of);
  }

  ~CudaExecutable() override {
    if (state_->broken) static_cast<void>(state_.release());
  }

  std::vector<RendezvousMessage> publish() override { return state_->collectives.publish(); }

  void connect(const std::vector<RendezvousMessage>& received, double timeout_s) override {
    set_device(state_->device.ordinal);
    state_->broken = true;  // cleared on success
    start_timeout_s_ = timeout_s;
    state_->collectives.connect(received, timeout_s);
    state_->init = prepare(program_.init);
    state_->step = prepare(program_.step);
    state_->broken = false;
  }

  void initialize() override {
    set_device(state_->device.ordinal);
    State& s = *state_;
    const Stream origin = stream(0);
    const OwnedEvent done(OwnedEvent::Timing::off);
    state_->broken = true;  // cleared on success
    clear(origin, s.memory.data(), s.memory.bytes());
    enqueue(s.step);
    done.record(origin);
    await(done, "the rehearsal of a step", start_timeout_s_);
    clear(origin, s.memory.data(), s.memory.bytes());
    enqueue(s.init);
    done.record(origin);
    await(done, "the initialisation", start_timeout_s_);
    if (with_graph_) s.graph.emplace(origin, [&] { enqueue(s.step); });
    s.broken = false;
  }

  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) override {
    set_device(state_->device.ordinal);
    State& s = *state_;
    const Stream origin = stream(0);
    std::vector<OwnedEvent> ends;  // [i]: of step i - 1
    for (int i = 0; i <= steps; ++i) ends.emplace_back(OwnedEvent::Timing::on);
    state_->broken = true;  // cleared on success
    // Later steps overlap the host's input work with the device, so the first steps exclude it too, unless waiting for
    // data counts as part of the step.
    const int filled = inputs.is_part_of_step() ? 0 : std::min(steps, Staging::slots);
    // Keeps the host at most `slots` steps ahead of the device: faults show early, and the slots are free again.
    const int ahead = inputs.is_loaded_by_step() ? 1 : Staging::slots;
    for (int i = 0; i < filled; ++i) s.staging->fill(first_step + i, inputs);
    ends[0].record(origin);
    await(ends[0], "the work before a step", timeout_s_);
    std::vector<double> times{system_clock().seconds()};
    std::size_t finished = 0;  // steps whose time has been taken
    const auto take_time = [&] {
      await(ends[finished + 1], "a step", timeout_s_);
      times.push_back(times.back() + ends[finished + 1].seconds_since(ends[finished]));
      ++finished;
      current_step_ = first_step + static_cast<std::int64_t>(finished);
    };
    current_step_ = first_step;
    for (int i = 0; i < steps; ++i) {
      while (i - static_cast<int>(finished) >= ahead) take_time();
      const std::int64_t number = first_step + i;
      steps_begun_ = number;
      if (i >= filled) s.staging->fill(number, inputs);
      s.staging->copy(number, origin);
      if (s.graph) {
        s.ranges.go_to({"step"});
        s.graph->launch(origin);
        s.ranges.go_to({});
      } else {
        enqueue(s.step);
      }
      ends[i + 1].record(origin);
    }
    while (std::cmp_less(finished, steps)) take_time();
    s.broken = false;
    return times;
  }

  // Launches the step operation by operation, even with cuda_graph: CUPTI attributes a graph's kernels to the graph,
  // not to operations. Also records events, because CUPTI may be missing or return nothing, and by then another step is
  // impossible: other ranks would not run it. Events cost device time, so short operations look longer than they are.
  std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) override {
    State& s = *state_;
    set_device(s.device.ordinal);
    const Stream origin = stream(0);
    const std::vector<Launch>& launches = s.step.order.launches;
    state_->broken = true;  // cleared on success
    steps_begun_ = step;
    current_step_ = step;
    ActivityRecorder recorder;
    std::string why = recorder.start();
    s.staging->fill(step, inputs);
    s.staging->copy(step, origin);
    const OwnedEvent begin(OwnedEvent::Timing::on);
    std::vector<OwnedEvent> events;  // before and after each operation
    for (std::size_t i = 0; i < 2 * program_.step.size(); ++i) events.emplace_back(OwnedEvent::Timing::on);
    begin.record(origin);
    enqueue(s.step, [&](program::OperationId operation, Stream on, bool before) {
      if (before) events[2 * operation].record(on);
      before ? recorder.push(static_cast<std::uint64_t>(operation) + 1) : recorder.pop();
      if (!before) events[2 * operation + 1].record(on);
    });
    const OwnedEvent end(OwnedEvent::Timing::off);
    end.record(origin);
    await(end, "the profiled step", timeout_s_);
    synchronize_device();  // the step is done, but CUPTI guarantees its records only after this
    if (why.empty()) {
      std::string problem;
      std::vector<program::Interval> intervals = operation_intervals(recorder.stop(problem), launches);
      if (!problem.empty()) s.warnings.push_back("the timeline is incomplete: " + problem);
      s.broken = intervals.empty();
      if (!s.broken) return intervals;
      why = "CUPTI recorded nothing of the step";
    }
    s.warnings.push_back("the timeline was taken with CUDA events, which make short operations look longer: " + why);
    std::map<program::OperationId, Extent> extents;
    for (const Launch& launch : launches) {
      const std::size_t at = 2 * launch.members.front();
      extents[launch.members.front()] = {events[at].seconds_since(begin), events[at + 1].seconds_since(begin)};
    }
    s.broken = false;
    return operation_intervals(extents, launches);
  }

  void read(const program::View& view, std::span<std::byte> to) override {
    set_device(state_->device.ordinal);
    const backend::Tensor t = tensor(view);
    backend::require_size(t, to.size());
    copy_out(stream(0), to.data(), t.data, t.bytes());
    synchronize(stream(0));
  }

  void write(const program::View& view, std::span<const std::byte> from) override {
    set_device(state_->device.ordinal);
    const backend::Tensor t = tensor(view);
    backend::require_size(t, from.size());
    copy_in(stream(0), t.data, from.data(), t.bytes());
    synchronize(stream(0));
  }

  std::shared_ptr<backend::Connections> release_connections() override {
    if (state_->broken) return nullptr;
    return state_->collectives.release();
  }

  backend::Progress progress() const override {
    backend::Progress p;
    p.step = std::min(current_step_.load(std::memory_order_relaxed), steps_begun_.load(std::memory_order_relaxed));
    p.in_communication = waiting_.load(std::memory_order_relaxed);
    return p;
  }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = state_->warnings;
    if (const std::string& why = state_->monitor.unavailable(); !why.empty()) {
      all.push_back("clocks, power and utilisation of the GPUs are not recorded: " + why);
    }
    return all;
  }

  void begin_watch() override { state_->monitor.start(); }

  machine::GpuStatistics end_watch() override { return state_->monitor.stop(); }

  std::int64_t device_memory_bytes() const override { return used_memory_bytes(); }

 private:
  // An operation list, prepared to run.
  struct List {
    LaunchList order;
    std::vector<std::function<void(Stream)>> runs;  // by operation
    std::map<program::OperationId, OwnedEvent> events;
    std::map<program::StreamId, OwnedEvent> edges;  // where stream 0 forks, and where the others join it
  };

  // Everything that holds GPU memory.
  struct State {
    Device device;
    program::Arena arena;
    Memory memory;
    std::vector<OwnedStream> streams;
    Collectives collectives;
    Compiler compile;
    List init, step;
    std::unique_ptr<Staging> staging;
    std::optional<Graph> graph;
    Ranges ranges;  // of the step, for Nsight Systems
    machine::GpuMonitor monitor;
    std::vector<std::string> warnings;
    bool broken = false;

    explicit State(const backend::ExecutableRequest& request)
        : device(use_device(request)),
          arena(program::plan_arena(*request.program)),
          collectives(request),
          ranges(request.program->step),
          monitor(device.bus_id) {
      memory = Memory(Memory::Kind::device, std::max<std::int64_t>(arena.bytes, 1), "the step's buffers");
      for (const Priority priority : priorities_of(*request.program)) streams.emplace_back(priority);
    }
  };

  backend::Tensor tensor(const program::View& v) const {
    return backend::locate(v, program_, state_->arena, state_->memory.data(), at_);
  }

  Stream stream(program::StreamId id) const { return state_->streams.at(id).get(); }

  List prepare(const std::vector<program::Operation>& operations) {
    List list;
    list.order = make_launches(operations, program_.streams.size());
    for (const program::Operation& op : operations) {
      list.runs.push_back(
          program::is_communication(op.action)
              ? state_->collectives.prepare(op.action, [this](const program::View& v) { return tensor(v); })
              : state_->compile(op));
    }
    for (const program::OperationId i : list.order.with_event) list.events.try_emplace(i, OwnedEvent::Timing::off);
    for (const program::StreamId other : list.order.streams) {
      for (const program::StreamId s : {program::StreamId{0}, other})
        list.edges.try_emplace(s, OwnedEvent::Timing::off);
    }
    return list;
  }

  // Enqueues a list on the streams, which fork from stream 0 and join it again. `around` (optional) is called before
  // and after each launch, with its first member.
  using Around = std::function<void(program::OperationId operation, Stream stream, bool before)>;
  void enqueue(const List& list, const Around& around = {}) {
    Ranges* ranges = &list == &state_->step ? &state_->ranges : nullptr;
    const std::set<program::StreamId>& others = list.order.streams;
    if (!others.empty()) list.edges.at(0).record(stream(0));
    for (const program::StreamId s : others) wait_for(stream(s), list.edges.at(0).get());
    for (const Launch& launch : list.order.launches) {
      const Stream on = stream(launch.stream);
      const program::OperationId first = launch.members.front();
      const bool is_group = launch.members.size() > 1;
      for (const program::OperationId w : launch.waits) wait_for(on, list.events.at(w).get());
      if (is_group) state_->collectives.group_start();
      for (const program::OperationId i : launch.members) {
        if (ranges != nullptr) ranges->before(i);
        if (around && i == first) around(first, on, true);
        list.runs[i](on);
      }
      if (is_group) state_->collectives.group_end();  // which launches everything
      if (around) around(first, on, false);
      for (const program::OperationId i : launch.members) {
        if (const auto event = list.events.find(i); event != list.events.end()) event->second.record(on);
      }
    }
    for (const program::StreamId s : others) {
      list.edges.at(s).record(stream(s));
      wait_for(stream(0), list.edges.at(s).get());
    }
    if (ranges != nullptr) ranges->go_to({});
  }

  // Polls the event and NCCL. After the deadline, throws PeerLost, or Error if there is only one rank.
  void await(const OwnedEvent& event, const char* what, double timeout_s) {
    const double deadline = system_clock().seconds() + timeout_s;
    waiting_ = !alone_;
    while (!event.done()) {
      if (const std::string failure = state_->collectives.failure(); !failure.empty()) {
        throw backend::PeerLost(fmt::format("{}: lost contact with another rank ({})", what, failure));
      }
      if (system_clock().seconds() > deadline) {
        const std::string text = fmt::format("{} did not end within {:.0f} s", what, timeout_s);
        if (alone_) throw Error(text);
        throw backend::PeerLost(text + ": a rank is missing or stuck");
      }
      std::this_thread::sleep_for(look_again);
    }
    waiting_ = false;
  }

  const program::Program& program_;
  program::Coordinates at_;
  bool with_graph_;
  double timeout_s_;
  double start_timeout_s_ = 0;  // of connect(), and of initialize(): NCCL connects in the rehearsal, too
  bool alone_;
  std::unique_ptr<State> state_;  // everything that holds GPU memory; leaked after a fault, when freeing would block
  std::atomic<std::int64_t> steps_begun_{-1};
  std::atomic<std::int64_t> current_step_{-1};
  std::atomic<bool> waiting_{false};
};

}  // namespace

std::unique_ptr<backend::Executable> make_executable(const backend::ExecutableRequest& request) {
  return std::make_unique<CudaExecutable>(request);
}

}  // namespace harness::cuda
