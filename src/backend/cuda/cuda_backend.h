#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/collectives.h"
#include "backend/cuda/profile.h"
#include "backend/cuda/runtime.h"
#include "machine/gpus.h"

namespace harness::cuda {

/// Turns compute operations into launches on fixed addresses. Whatever they need besides (algorithms, workspaces,
/// scratch) is chosen and allocated here, per stream, so that operations of different streams never share any; a launch
/// allocates nothing and may be captured.
class Compiler {
 public:
  Compiler(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor);
  ~Compiler();

  using Run = std::function<void(Stream)>;
  Run compile(const program::Operation& operation);

  /// Warnings for the results: choices that were not tuned, attention that could not be fused.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct OfStream;  // what the operations of one stream use one after the other
  Run prepare(const backend::Bound<program::Matmul>& op, OfStream& own);
  Run prepare(const backend::Bound<program::Attention>& op, OfStream& own);
  Run prepare(const backend::Bound<program::AttentionBackward>& op, OfStream& own);
  struct AttentionForm {
    program::AttentionShape shape;
    program::DType type;
    bool keeps_probabilities;
    std::int64_t documents;
    auto operator<=>(const AttentionForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
  };
  AttentionKernel& attention(const AttentionForm& form, OfStream& own);
  template <class Op>
  std::int64_t scratch_for(const Op& op) const;  // floats
  OfStream& of_stream(program::StreamId stream);
  void warn_once(const std::string& text);
  bool tf32() const { return settings_.precision == config::Precision::tf32; }

  std::function<backend::Tensor(const program::View&)> tensor_;
  backend::KernelContext context_;  // without scratch, which every stream has its own of
  config::Settings settings_;
  std::shared_ptr<const backend::Tuning> tuning_;
  std::map<program::StreamId, std::int64_t> scratch_of_;  // floats
  std::map<program::StreamId, std::unique_ptr<OfStream>> streams_;
  std::vector<std::string> warnings_;
};

/// A step of the host, which puts an operation list on streams in this order.
enum class CommandKind : std::uint8_t {
  launch,       // `operation` on `stream`
  record,       // `event` on `stream`
  wait,         // `stream` waits for the last record of `event`
  group_start,  // the launches up to group_end are communications of `stream` that start as one
  group_end,
};

struct Command {
  CommandKind kind = CommandKind::launch;
  program::StreamId stream = 0;
  program::OperationId operation = -1;
  std::int32_t event = -1;
  bool operator==(const Command&) const = default;
};

struct CommandList {
  std::vector<Command> commands;
  std::int32_t events = 0;  // numbered from 0
};

/// Every stream starts after what stream 0 held before (a fork) and stream 0 ends after all others (a join), so that
/// the list can be captured from stream 0 and lists follow each other in its order. Launches keep the order of the
/// list, in which all ranks start their communications; a fused group stands where its last member does. Pure. Throws
/// Error for an operation that waits for a part of a group that is not complete where it stands.
CommandList make_commands(const std::vector<program::Operation>& operations, std::size_t streams);

/// By stream: high for one that communicates in the step, low for one that computes beside the compute stream.
inline std::vector<Priority> priorities_of(const program::Program& program) {
  std::vector<Priority> priorities(program.streams.size(), Priority::normal);
  for (const program::Operation& op : program.step) {
    Priority& priority = priorities.at(op.stream);
    if (program::is_communication(op.action)) {
      priority = Priority::high;
    } else if (op.stream != 0 && priority != Priority::high) {
      priority = Priority::low;
    }
  }
  return priorities;
}

/// The inputs of the next steps, in pinned memory: the host fills a step's slot, the copy engine copies it. The slot of
/// step i is used again by step i + slots, so the caller fills it once step i is complete.
class Staging {
 public:
  static constexpr int slots = 3;

  Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor);

  /// Fills the slot of `step`. The host's work alone.
  void fill(std::int64_t step, const program::InputSource& inputs);
  /// Puts the copies of the filled slot into the Program's input buffers on `stream`.
  void copy(std::int64_t step, Stream stream);

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

/// A Program on one GPU: one allocation, a CUDA stream per stream of the Program (those that
/// communicate at high priority), events for its dependencies; with cuda_graph the step is captured once and launched
/// as one.
///
/// Before `init`, initialize() runs the step once over cleared memory and forgets what it left: NCCL connects lazily,
/// at the first call of each algorithm, and libraries load kernels at their first launch; neither may happen in a timed
/// step or inside a capture.
///
/// A step's completion is when all of its work is done: the closing all-reduce and the two words written after it.
class CudaExecutable : public backend::Executable {
 public:
  explicit CudaExecutable(const backend::ExecutableRequest& request);
  ~CudaExecutable() override;

  std::vector<RendezvousMessage> publish() override;
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s) override;
  void initialize() override;
  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) override;
  std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) override;
  void read(const program::View& view, std::span<std::byte> to) override;
  void write(const program::View& view, std::span<const std::byte> from) override;
  std::shared_ptr<backend::Connections> release_connections() override;
  backend::Progress progress() const override;
  std::vector<std::string> warnings() const override;
  void begin_watch() override;
  machine::GpuStatistics end_watch() override;
  std::int64_t device_memory_bytes() const override;

 private:
  /// An operation list made ready.
  struct List {
    CommandList commands;
    std::vector<std::function<void(Stream)>> runs;  // by operation
    std::vector<OwnedEvent> events;
  };
  struct State;

  backend::Tensor tensor(const program::View& view) const;
  List prepare(const std::vector<program::Operation>& operations);
  /// Puts a list on the streams, forked from stream 0 and joined there. `around` (optional) is called before and after
  /// each operation's launch; of a fused group, around the whole with its first member.
  using Around = std::function<void(program::OperationId operation, Stream stream, bool before)>;
  void enqueue(const List& list, const Around& around = {});
  /// Waits for the event, looking for failures. Throws PeerLost after the deadline.
  void await(const OwnedEvent& event, const char* what);
  Stream stream(program::StreamId id) const;

  const program::Program& program_;
  program::Coordinates at_;
  bool with_graph_;
  double timeout_s_;
  bool alone_;
  std::unique_ptr<State> state_;  // everything that holds GPU memory: leaked after a fault, for freeing would block
  std::atomic<std::int64_t> steps_begun_{-1};
  std::atomic<std::int64_t> current_step_{-1};
  std::atomic<bool> waiting_{false};
};

/// Everything that holds GPU memory.
struct CudaExecutable::State {
  Device device;
  program::Arena arena;
  Memory memory;
  std::vector<OwnedStream> streams;
  Collectives collectives;
  std::unique_ptr<Compiler> compiler;
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

/// NVIDIA GPUs: cuBLASLt for matrix products, cuDNN for fused attention, NCCL for communication, own kernels for the
/// rest.
const backend::Backend& cuda_backend();

}  // namespace harness::cuda
