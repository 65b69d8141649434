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

/// Stores each distinct text once in bounded memory. Texts are cut after `longest` bytes. Once all texts together
/// exceed `most_bytes`, every new one gets the number of a shared placeholder.
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

/// The kinds of work on a GPU. graph: a whole CUDA graph, recorded as one event.
enum class Work : std::uint8_t { kernel, copy, set, graph };

/// A host thread by its number in Capture::threads; no_thread: unknown.
using Thread = std::uint16_t;
inline constexpr Thread no_thread = UINT16_MAX;

/// A kernel class: an index into class_names(). Communication classes come first.
using Class = std::uint8_t;

/// Times are whole nanoseconds since 1970, or since the start of the session if the file gives no date.
struct GpuEvent {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t launch_ns = 0;  // start of the call that launched it
  std::uint32_t name = 0;      // in Capture::names
  std::uint32_t stream = 0;
  std::int32_t operation = -1;  // arguments in Capture::operations; -1: none recorded
  Thread thread = no_thread;    // thread that launched it
  Work work = Work::kernel;
  Class kernel_class = 0;  // set by classify(); "without_a_class" for CUDA graphs, copies and memsets
  std::int64_t launch_end_ns = 0;

  bool is_kernel() const { return work == Work::kernel || work == Work::graph; }
  /// False if the file does not contain its launch.
  bool is_launched() const { return thread != no_thread; }
};

/// Why the GPU was idle, judged by the event that ended the gap and by the call that launched that event.
enum class Cause : std::uint8_t {
  queued,        // launched before the gap: dispatch between kernels
  launch,        // the launch call and its latency to the GPU
  profiler,      // profiler overhead
  loading,       // waiting for the data loader
  allocation,    // cudaMalloc, cudaFree and the like
  module,        // code loading
  synchronised,  // the host waited for the GPU and then launched late
  garbage,       // Python garbage collection
  host,          // the host launched too slowly
  unknown,       // the launch is not in the file
};
inline constexpr std::size_t cause_count = 10;
std::string_view key_of(Cause cause);    // "synchronised"
std::string_view title_of(Cause cause);  // "after a synchronisation"

/// A time range on a host thread: a named range, or a CUDA/HIP runtime or driver call that allocates, loads code or may
/// wait for the GPU. Other calls are not kept.
struct HostRange {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t name = 0;
  Thread thread = no_thread;
  std::optional<Cause> cause = {};  // cause of idle time during it, or after it for synchronised; absent: an annotation
};

/// The host threads that occur in a file.
class Threads {
 public:
  /// Returns no_thread for all but the first 65,535 threads.
  Thread number_of(std::uint64_t process, std::uint64_t id);
  std::uint64_t process_of(Thread thread) const { return thread == no_thread ? 0 : processes_[thread]; }

 private:
  std::vector<std::uint64_t> processes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Thread> numbers_;
};

/// The arguments of a collective, or of any operation in traces that harness wrote. 0, NaN and "": not recorded.
struct Operation {
  std::uint32_t kind = 0, group = 0, phase = 0;  // names: "allreduce", "DATA_PARALLEL_GROUP"; "forward"
  std::uint32_t members = 0;                     // name: "[0, 8, 16, 24]"
  std::int64_t bytes_in = 0, bytes_out = 0, group_size = 0;
  std::optional<Part> part = {};  // part of the step in harness terms
  double waiting_s = NAN, bubble_s = NAN;
};

/// A named time window on a device: "all", "host:ProfilerStep#4", "device:ProfilerStep#4".
struct Window {
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  double seconds() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};

struct Device {
  std::int64_t id = 0;
  std::uint64_t process = 0;       // process of Threads
  std::string label;               // "0"; "0/4001" if several processes use this device number
  std::string gpu;                 // "NVIDIA H100 80GB HBM3"; "": not recorded
  std::vector<GpuEvent> events;    // by start, then in file order
  std::vector<Window> steps = {};  // marked on the GPU itself, in traces that harness wrote
  double loading_s = 0;            // before the step's first operation, in traces that harness wrote
};

struct Source {
  std::string file;    // path as given
  std::string format;  // "PyTorch profiler", "Nsight Systems", "harness trace"
  std::string version;
  std::optional<std::int64_t> rank, world;
  bool rank_guessed = false;  // guessed from the file name
};

/// The parts of a trace file that the analysis needs. Call stacks, shapes, tensors, user and host names, paths and
/// environments are never kept.
struct Capture : Source {
  bool cut_short = false;  // the file is truncated; its last step is incomplete
  Names names;
  std::vector<Device> devices;  // devices that ran a kernel
  Threads threads;
  std::vector<HostRange> ranges;
  std::int64_t first_call_ns = INT64_MAX, last_call_ns = INT64_MIN;  // CUDA or HIP calls, kept or not
  std::vector<Operation> operations;
  std::vector<Thread> backward_threads;  // threads that run the backward pass, if the trace shows it
  std::vector<std::string> notes;        // repairs and omissions, in full sentences

  /// Adds the note "3 kernels `what`." unless there are none.
  void note(std::size_t number, std::string_view noun, std::string_view what);
};

/// Source::format of files that `harness trace` wrote. Their devices are the ranks of a job.
inline constexpr std::string_view own_format = "harness trace";

/// Later times in a file are rejected.
inline constexpr std::int64_t latest_ns = INT64_MAX / 4;

/// Files with more events are refused: about 2 GB in memory.
inline constexpr std::size_t most_events = 20'000'000;

/// Returns the rank in a file name: from "rank3", "rank_3", "worker 3", or "_3" below 65536 before the extension.
std::optional<std::int64_t> rank_in_name(const std::string& path);

/// Sorts a capture as the analysis expects, classifies its kernels and drops devices without kernels. GPU events more
/// than ten seconds outside all host calls have a wrong clock and are dropped with a note, and so are devices with less
/// than a hundredth of the kernel time of another device of their process.
void finish(Capture& capture);

/// Collects CUDA or HIP calls while a file is read, and links GPU events to the calls that launched them by
/// correlation, which is unique only within a process.
class Calls {
 public:
  explicit Calls(Capture& capture) : capture_(capture) {}

  /// Registers the correlation of a device's last event; 0: none.
  void await(std::size_t device, std::uint64_t correlation);
  /// Takes a call and derives its cause from its name. Calls without a cause are not kept.
  void take(HostRange call);
  /// Links a call to its events, after all events were added. The earliest call of a correlation launched its events.
  void join(std::uint64_t correlation, std::int64_t start_ns, std::int64_t end_ns, Thread thread);

 private:
  struct Awaited {
    std::uint64_t correlation = 0;
    std::uint32_t device = 0, event = 0;
  };

  Capture& capture_;
  std::unordered_map<std::uint32_t, std::optional<Cause>> causes_;  // by name number
  std::vector<Awaited> awaited_;  // sorted by process and correlation at the first join()
  bool sorted_ = false;
};

// ---- readers

/// Reads a trace of the PyTorch profiler (Kineto JSON, all versions since 2020) or of `harness trace` as a stream. A
/// truncated file yields what precedes the truncation, and events that cannot be parsed are skipped, both with a note.
/// Throws Error if the file is not such a trace, if more than 1 % of its events are damaged, or if it holds more than
/// most_events.
Capture read_kineto(evidence::Input& input, const std::string& path);

/// Reads an Nsight Systems export (`nsys export --type sqlite`), schemas 2 and 3. Opens the file read-only and reads
/// only the tables and columns that the analysis needs, if they exist. Throws Error if the database is not such an
/// export, is damaged or holds more than most_events, or if harness was built without SQLite.
Capture read_nsight(const std::string& path);

/// Returns "comm.allreduce", "attention", "matrix_products", "norm" …; the last is "without_a_class".
std::span<const std::string_view> class_names();
bool is_communication(Class kernel_class);
bool is_unknown(Class kernel_class);

/// Returns the class of a CUDA or ROCm kernel by its name, mangled or not. The first matching rule applies.
Class class_of(std::string_view kernel);

/// Classifies each kernel by its name, or by the arguments of its collective if the name says nothing or only that it
/// communicates (RCCL has one kernel for all collectives, NCCL one for sends and all-to-alls).
void classify(Capture& capture);

/// Returns the display name of a class: "all-reduce", "matrix products".
std::string_view title_of(Class kernel_class);

}  // namespace harness::traces
