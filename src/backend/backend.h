#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/bound.h"
#include "base/rendezvous.h"
#include "base/text.h"
#include "config/registry.h"
#include "config/settings.h"
#include "machine/conditions.h"
#include "program/memory.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::backend {

/// How far a rank's step has got, for finding the rank that hangs. Any thread may read it at any time.
struct Progress {
  std::int64_t step = -1;               // number of the latest execution, from 0; -1: none yet
  program::OperationId operation = -1;  // the compute stream's current operation; -1: none (finished or not begun)
  bool in_communication = false;        // every stream that has work is in a communication or waiting for one
};

/// Another rank exited or did not answer. This rank is a victim: supervisors look for the cause elsewhere.
class PeerLost : public Error {
 public:
  using Error::Error;
};

/// A rank's connections to its peers, kept from one Executable of a process to the next. They belong to one backend and
/// are opaque to all other code.
class Connections {
 public:
  Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  virtual ~Connections() = default;
};

/// One rank's Program, ready to run. Lifecycle: construct → publish → connect → initialize → run… One thread makes all
/// calls but progress(). Destruction frees memory and never waits for another rank. Persistent and output buffers may
/// be read and written between runs only, which involves no other rank.
class Executable : public program::BufferAccess {
 public:
  /// Opens the endpoints that peers connect to and returns the messages for the peers. Local.
  virtual std::vector<RendezvousMessage> publish() = 0;
  /// Connects all communicators. Collective over the job's ranks.
  virtual void connect(const std::vector<RendezvousMessage>& received, double timeout_s) = 0;
  /// Runs `init`. Collective if it communicates.
  virtual void initialize() = 0;

  /// Runs `steps` steps; inputs are numbered from first_step. Returns steps + 1 times on a monotonic clock of this
  /// host: [0] is the start of the first step, [i] the completion of the closing all-reduce of the i-th. Steps run as
  /// closely after each other as the backend can. Collective.
  virtual std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) = 0;

  /// Runs one step and returns the intervals of its operations. Slower than run(). Collective.
  virtual std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) = 0;

  virtual Progress progress() const = 0;
  /// Warnings for the results, each with a remedy ("bf16 is emulated on this CPU: …").
  virtual std::vector<std::string> warnings() const { return {}; }

  /// Samples the device's clocks, power and utilization between these two calls, if the device reports them.
  virtual void begin_watch() {}
  virtual machine::GpuStatistics end_watch() { return {}; }
  /// Hands the connections over to the next Executable (ExecutableRequest::connections); nullptr if none is worth
  /// keeping. Must be the last call, between runs. Local.
  virtual std::shared_ptr<Connections> release_connections() { return nullptr; }

  /// Device memory in use now; 0 if the Executable runs in host memory.
  virtual std::int64_t device_memory_bytes() const { return 0; }
};

/// Returns the tensor of a view in the memory that begins at `base`, on the rank at these coordinates. Throws Error if
/// the view reaches outside its buffer.
inline Tensor locate(const program::View& view, const program::Program& program, const program::Arena& arena,
                     std::byte* base, const program::Coordinates& at) {
  const program::View v = view.on(at);
  const program::Buffer& b = program.buffers.at(v.buffer);
  if (v.offset < 0 || v.count < 0 || v.offset + v.count > b.count) fail("a view reaches outside buffer {}", b.name);
  return {base + arena.offset_bytes[v.buffer] + v.offset * program::size_of(b.type), b.type, v.count};
}

/// Throws Error if a tensor differs in size from the memory that it is copied to or from.
inline void require_size(const Tensor& tensor, std::size_t bytes) {
  if (std::cmp_not_equal(tensor.bytes(), bytes))
    fail("a view of {} bytes was to be copied to or from {} bytes", tensor.bytes(), bytes);
}

/// The choices of an untimed tuning worker, by a key for the tuned operation ("matmul bf16 m4096 …"). Only the backend
/// interprets the text. Recorded with the results; every block of a sweep uses the same choices.
using Tuning = std::map<std::string, std::string>;

struct ExecutableRequest;

/// For tests of the cpu backend: returns the function that runs in place of an operation's work.
using Around = std::function<std::function<void()>(const program::Operation& operation, std::function<void()> work)>;

struct ExecutableRequest {
  const program::Program* program = nullptr;  // lowered for this backend; must outlive the Executable
  std::vector<program::Group> groups;
  program::Layout layout;
  int rank = 0;  // within the layout
  config::Settings settings;
  std::uint64_t seed = 1;
  int threads = 1;
  double timeout_s = 30;                   // for one communication
  int local_rank = 0, local_ranks = 1;     // among the job's ranks on this node
  bool share_devices = false;              // allows more ranks than devices on a node: for tests
  std::shared_ptr<const Tuning> tuning{};  // nullptr: the backend's defaults
  /// Connections of the previous Executable, given on all ranks or on none. Those that this Program needs are reused.
  std::shared_ptr<Connections> connections{};
  double tuning_s = 45;  // approximate time limit of tune()
  std::function<Around(const ExecutableRequest& request)> around{};
};

/// Creates Executables, which run Programs. Stateless.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual config::BackendKind kind() const = 0;
  /// The fused operations that this backend runs as they are. program::lower() splits the others.
  virtual program::FusedSet declared() const { return config::traits_of(kind()).fused; }
  // `where`: a request without a Program, which says where to run: threads, local_rank, share_devices.

  /// Properties that all ranks must agree on, as name → value: library versions, CPU or GPU model.
  virtual std::vector<std::pair<std::string, std::string>> identity(const ExecutableRequest& where) const = 0;
  /// Address and name of the rank's device, if no other rank of the node may use it; "" if ranks may share it.
  virtual std::string device(const ExecutableRequest& /*where*/) const { return {}; }
  virtual std::unique_ptr<Executable> create(const ExecutableRequest& request) const = 0;
  /// Times the choices that the Program leaves open and that `request.tuning` does not settle yet. Local; slow.
  virtual Tuning tune(const ExecutableRequest& /*request*/) const { return {}; }
  /// Measures, for about `seconds`, the sustained FLOP/s of this rank's share of the machine in large matrix products
  /// of random numbers; 0: unknown. To measure a peak, all ranks call it at once.
  virtual double measure_matmul_flops(config::Precision /*precision*/, const ExecutableRequest& /*where*/,
                                      double /*seconds*/) const {
    return 0;
  }
  /// Measures, for about `seconds`, bytes per second, read plus written, of a copy too large for any cache; 0: unknown.
  virtual double measure_copy_bandwidth(const ExecutableRequest& /*where*/, double /*seconds*/) const { return 0; }
  /// Times copies of pinned host memory to the device, back, and both at once, for about `seconds` in all. Zeros if the
  /// device has no memory of its own. Local; to measure links that devices share, all ranks call it at once.
  virtual machine::HostCopies measure_host_copies(const ExecutableRequest& /*where*/, double /*seconds*/) const {
    return {};
  }
};

}  // namespace harness::backend
