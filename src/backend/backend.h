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

/// Where a rank's step has got to, for finding out who hangs. Safe to read from another thread at any time.
struct Progress {
  std::int64_t step = -1;               // executions begun, from 0; -1: none yet
  program::OperationId operation = -1;  // the compute stream's current operation; -1: none (finished or not begun)
  bool in_communication = false;        // every stream that has work is in a communication or waiting for one
};

/// Another rank went away or did not answer: its fault, not ours. Supervisors look for the cause elsewhere.
class PeerLost : public Error {
 public:
  using Error::Error;
};

/// The connections of a rank with its peers, kept from one Executable of a process to the next. Of one backend, which
/// alone knows what is in them.
class Connections {
 public:
  Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  virtual ~Connections() = default;
};

/// One rank's Program, ready to run. Lifecycle: construct → publish → connect → initialize → run…  All but progress()
/// are called by one thread. Destruction frees memory and never waits for another rank. Persistent and output buffers
/// are read and written between runs only, without another rank.
class Executable : public program::BufferAccess {
 public:
  /// Opens what peers will connect to. Local.
  virtual std::vector<RendezvousMessage> publish() = 0;
  /// Connects all communicators. Collective over the job's ranks.
  virtual void connect(const std::vector<RendezvousMessage>& received, double timeout_s) = 0;
  /// Runs `init`. Collective if it communicates.
  virtual void initialize() = 0;

  /// Runs `steps` steps, numbered from first_step for the inputs, and returns their completion times on a monotonic
  /// clock of this host, steps + 1 values: [0] is when the first began, [i] when the closing all-reduce of step i did.
  /// Steps follow each other as fast as the backend can. Collective.
  virtual std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) = 0;

  /// Runs one step and returns what every operation did. Slower than run(). Collective.
  virtual std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) = 0;

  virtual Progress progress() const = 0;
  /// Warnings for the results, each with a remedy ("bf16 is emulated on this CPU: …").
  virtual std::vector<std::string> warnings() const { return {}; }

  /// Between these two the device's clocks, power and use are sampled, where it has any that can be.
  virtual void begin_watch() {}
  virtual machine::GpuStatistics end_watch() { return {}; }
  /// The last call, between runs: hands its connections over to the next Executable (ExecutableRequest::connections).
  /// nullptr: it has none worth keeping. Local.
  virtual std::shared_ptr<Connections> release_connections() { return nullptr; }

  /// Memory in use on the device now, 0 where the host's is meant.
  virtual std::int64_t device_memory_bytes() const { return 0; }
};

/// Where a view lies in the memory that begins at `base`, on the rank at these coordinates. Throws Error if it reaches
/// outside its buffer.
inline Tensor locate(const program::View& view, const program::Program& program, const program::Arena& arena,
                     std::byte* base, const program::Coordinates& at) {
  const program::View v = view.on(at);
  const program::Buffer& b = program.buffers.at(v.buffer);
  if (v.offset < 0 || v.count < 0 || v.offset + v.count > b.count) fail("a view reaches outside buffer {}", b.name);
  return {base + arena.offset_bytes[v.buffer] + v.offset * program::size_of(b.type), b.type, v.count};
}

/// Throws Error if a tensor is not as large as what it is copied to or from.
inline void require_size(const Tensor& tensor, std::size_t bytes) {
  if (std::cmp_not_equal(tensor.bytes(), bytes))
    fail("a view of {} bytes was to be copied to or from {} bytes", tensor.bytes(), bytes);
}

/// The choices of an untimed tuning worker, by a key that says what was tuned ("matmul bf16 m4096 …"): opaque text to
/// everybody but the backend. Recorded with the results; every block of a sweep reads the same.
using Tuning = std::map<std::string, std::string>;

struct ExecutableRequest;

/// For tests, of the cpu backend: what runs in the place of the work of an operation.
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
  bool share_devices = false;              // more ranks than devices on a node are meant to be: for tests
  std::shared_ptr<const Tuning> tuning{};  // nullptr: the backend's defaults
  /// Connections of the Executable before, on all ranks alike or on none. Those that this Program needs are not made
  /// anew.
  std::shared_ptr<Connections> connections{};
  double tuning_s = 45;  // about how long tune() may try
  std::function<Around(const ExecutableRequest& request)> around{};
};

/// A way to run Programs. Stateless; makes Executables.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual config::BackendKind kind() const = 0;
  /// The fused forms that it runs as they stand.
  virtual program::FusedSet declared() const { return config::traits_of(kind()).fused; }
  // Where a request is asked for and no Program is made, it says where to run: threads, local_rank, share_devices.

  /// Name → value of what ranks must agree on: library versions, CPU or GPU model.
  virtual std::vector<std::pair<std::string, std::string>> identity(const ExecutableRequest& where) const = 0;
  /// The device a rank runs on, which no two ranks of a node may share: its address and name; "" if they may.
  virtual std::string device(const ExecutableRequest& /*where*/) const { return {}; }
  virtual std::unique_ptr<Executable> create(const ExecutableRequest& request) const = 0;
  /// Times the choices that the Program leaves open and that `request.tuning` does not settle yet. Local; slow.
  virtual Tuning tune(const ExecutableRequest& /*request*/) const { return {}; }
  /// Sustained FLOP/s of this rank's share of the machine on large matrix products of random numbers, for about
  /// `seconds`; 0: unknown. For a peak, all ranks call it at once.
  virtual double measure_matmul_flops(config::Precision /*precision*/, const ExecutableRequest& /*where*/,
                                      double /*seconds*/) const {
    return 0;
  }
  /// Bytes per second, read plus written, of copying memory that no cache holds, for about `seconds`; 0: unknown.
  virtual double measure_copy_bandwidth(const ExecutableRequest& /*where*/, double /*seconds*/) const { return 0; }
  /// Copies pinned memory of the host to the device, then back, then both at once, for about `seconds` in all. Zeros
  /// where the device has no memory of its own. Local; for what devices share, all ranks call it at once.
  virtual machine::HostCopies measure_host_copies(const ExecutableRequest& /*where*/, double /*seconds*/) const {
    return {};
  }
};

}  // namespace harness::backend
