#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/part.h"
#include "evidence/input.h"

namespace harness::traces {

/// Texts that occur often, each kept once. Memory is bounded: a text is cut after `longest` bytes, and once all texts
/// together exceed `most_bytes`, every new one gets the number of one placeholder.
class Names {
 public:
  static constexpr std::size_t longest = 4096, most_bytes = 32u << 20;

  std::uint32_t number_of(std::string_view text);
  const std::string& operator[](std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::size_t bytes_ = 0;
};

/// The kinds of work on a GPU. graph: a whole CUDA graph that the profiler recorded as one event.
enum class Work : std::uint8_t { kernel, copy, set, graph };

/// A thread of the host by its number in Capture::threads; no_thread: it is not known.
using Thread = std::uint16_t;
inline constexpr Thread no_thread = UINT16_MAX;

/// A class of kernels: an index into class_names(). Those of communication come first.
using Class = std::uint8_t;

/// Times in whole nanoseconds since 1970, or since the start of the session where the file does not say.
struct GpuEvent {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t launch_ns = 0;  // when the call began that launched it
  std::uint32_t name = 0;      // in Capture::names
  std::uint32_t stream = 0;
  std::int32_t operation = -1;  // in Capture::operations: its arguments; -1: none are recorded
  Thread thread = no_thread;    // that launched it
  Work work = Work::kernel;
  Class kernel_class = 0;  // as classify() gives it; of a CUDA graph, a copy or a memset "without_a_class"

  bool is_kernel() const { return work == Work::kernel || work == Work::graph; }
  /// False: its launch is not in the file.
  bool is_launched() const { return thread != no_thread; }
};

/// Why nothing ran on a GPU, by the event that ended the gap and the call that launched it.
enum class Cause : std::uint8_t {
  queued,        // it had been launched before the gap: dispatch between kernels
  launch,        // the call itself, and its way to the GPU
  profiler,      // overhead of the profiler
  loading,       // the data loader was waited for
  allocation,    // cudaMalloc, cudaFree and the like
  module,        // code was loaded
  synchronised,  // the host had waited for the GPU, and launched late
  garbage,       // Python's garbage collection
  host,          // the host was too slow to launch
  unknown,       // the launch is not in the file
};
inline constexpr std::size_t cause_count = 10;
std::string_view key_of(Cause cause);    // "synchronised"
std::string_view title_of(Cause cause);  // "after a synchronisation"

/// A stretch of time on a thread of the host: something with a name, or a call of the CUDA or HIP runtime or driver
/// that allocates, loads code or may wait for the GPU. No other calls are kept.
struct HostRange {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t name = 0;
  Thread thread = no_thread;
  std::optional<Cause> cause = {};  // of idle time meanwhile, or behind a wait: synchronised; absent: an annotation
};

/// The threads of the host that a file tells of.
class Threads {
 public:
  /// no_thread for all but the first 65,535.
  Thread number_of(std::uint64_t process, std::uint64_t id);
  std::uint64_t process_of(Thread thread) const { return thread == no_thread ? 0 : processes_[thread]; }

 private:
  std::vector<std::uint64_t> processes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Thread> numbers_;
};

/// The arguments of a collective; in traces that harness wrote, of every operation. 0, NaN and "": not recorded.
struct Operation {
  std::uint32_t kind = 0, group = 0, phase = 0;  // names: "allreduce", "DATA_PARALLEL_GROUP"; "forward"
  std::int64_t bytes_in = 0, bytes_out = 0, group_size = 0;
  std::optional<Part> part = {};  // of the step, as harness counts it
  double waiting_s = NAN, bubble_s = NAN;
};

/// A stretch of a device's time with a name: "all", "host:ProfilerStep#4", "device:ProfilerStep#4".
struct Window {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
};

/// A GPU as one process saw it.
struct Device {
  std::int64_t id = 0;
  std::uint64_t process = 0;       // as of Threads
  std::string label;               // "0"; "0/4001" where several processes have a device of that number
  std::string gpu;                 // "NVIDIA H100 80GB HBM3"; "": not recorded
  std::vector<GpuEvent> events;    // by start; equal ones in the order of the file
  std::vector<Window> steps = {};  // marked on the GPU itself: in traces that harness wrote
  double loading_s = 0;            // before the first operation of the step, in traces that harness wrote
};

/// Where a trace comes from.
struct Source {
  std::string file;    // as it was named
  std::string format;  // "PyTorch profiler", "Nsight Systems", "harness trace"
  std::string version;
  std::optional<std::int64_t> rank, world;
  bool rank_guessed = false;  // from the file's name
};

/// A trace file: what the analysis needs and nothing else. Call stacks, shapes, tensors, user and host names, paths and
/// environments are never kept.
struct Capture : Source {
  bool cut_short = false;  // the file breaks off: its last step is not whole
  Names names;
  std::vector<Device> devices;  // those that ran a kernel
  Threads threads;
  std::vector<HostRange> ranges;
  std::int64_t first_call_ns = INT64_MAX, last_call_ns = INT64_MIN;  // of CUDA or HIP, kept or not
  std::vector<Operation> operations;
  std::vector<Thread> backward_threads;  // that run the backward pass, where the trace says it
  std::vector<std::string> notes;        // what was repaired or left out, in whole sentences

  /// Adds the note "3 kernels `what`." unless there are none.
  void note(std::size_t number, std::string_view noun, std::string_view what);
};

/// Source::format of what `harness trace` wrote. Its devices are the ranks of a job.
inline constexpr std::string_view own_format = "harness trace";

/// No time beyond this is taken from a file.
inline constexpr std::int64_t latest_ns = INT64_MAX / 4;

/// More events of a file than this are refused: about 2 GB in memory.
inline constexpr std::size_t most_events = 20'000'000;

/// "rank3", "rank_3", "worker 3" or a number below 65536 before the ending in a file's name.
std::optional<std::int64_t> rank_in_name(const std::string& path);

/// Brings a capture into the order that the analysis expects, classes its kernels and drops devices without any. GPU
/// events more than ten seconds outside of all host calls carry a wrong clock: they are dropped with a note.
void finish(Capture& capture);

/// Takes the calls of CUDA or HIP while a file is read, and joins GPU events with those that launched them: by a
/// correlation, which is unique within a process only.
class Calls {
 public:
  explicit Calls(Capture& capture) : capture_(capture) {}

  /// The last event of a device has this correlation; 0: none.
  void await(std::size_t device, std::uint64_t correlation);
  /// `call`: what it may cause follows from its name; one that causes nothing is not kept.
  void take(HostRange call);
  /// A call, after all events. Of several with one correlation the first to begin has launched its events.
  void join(std::uint64_t correlation, std::int64_t start_ns, Thread thread);

 private:
  struct Awaited {
    std::uint64_t correlation = 0;
    std::uint32_t device = 0, event = 0;
  };
  std::pair<std::uint64_t, std::uint64_t> key_of(const Awaited& awaited) const {
    return {capture_.devices[awaited.device].process, awaited.correlation};
  }

  Capture& capture_;
  std::unordered_map<std::uint32_t, std::optional<Cause>> causes_;  // by name
  std::vector<Awaited> awaited_;  // by process and correlation, once a call was joined
  bool sorted_ = false;
};

// ---- readers

/// Reads a trace of the PyTorch profiler (Kineto, JSON; all versions since 2020), or of `harness trace`, as a stream. A
/// file that was cut short gives what came before, and events that cannot be parsed are left out, both with a note.
/// Throws Error for a file that is no such trace, for one with more than 1 % of its events damaged, and for one with
/// more than most_events.
Capture read_kineto(evidence::Input& input, const std::string& path);

/// Reads an export of Nsight Systems (`nsys export --type sqlite`), schemas 2 and 3. The file is opened read-only; only
/// the tables and columns that the analysis needs are read, where they exist. Throws Error for a database that is no
/// such export, that is damaged or holds more than most_events, and where the build has no SQLite.
Capture read_nsight(const std::string& path);

/// "comm.allreduce", "attention", "matrix_products", "norm" …; the last is "without_a_class".
std::span<const std::string_view> class_names();
bool is_communication(Class kernel_class);
bool is_unknown(Class kernel_class);

/// The class of a kernel by its name, mangled or not, of CUDA and ROCm. The first rule that fits decides.
Class class_of(std::string_view kernel);

/// Gives each kernel its class: by its name, or by the arguments of its collective where the name tells nothing, or
/// only that it communicates (RCCL has one kernel for all collectives).
void classify(Capture& capture);

/// The name of a class for people: "all-reduce", "matrix products".
std::string_view title_of(Class kernel_class);

}  // namespace harness::traces
