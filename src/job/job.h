#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "config/experiment.h"
#include "machine/conditions.h"
#include "machine/gpus.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::job {

// The tasks of a block, each with the type of samples that every rank returns. A task that runs no step needs no other
// rank.

/// Asks what the rank runs on, without a step.
struct Probe {};
struct ProbeSamples {
  NameValues identity;    // library versions, CPU or GPU model, settings: equal on all ranks
  std::string device;     // as Backend::device()
  double peak_flops = 0;  // of products in the block's precision, FLOP/s of this rank; 0: not measured
};

/// Copies between the rank's device and the memory of its host, without a step. All ranks begin when the last is ready.
struct CopyWithHost {
  double seconds = 2;  // about, in all
};
struct HostCopySamples {
  std::string device;         // as Backend::device()
  machine::HostCopies rates;  // zeros where the device has no memory of its own
};

/// Times the choices that the Program leaves open, without a step.
struct Tune {
  double seconds = 45;  // about, in all
};
struct TuneSamples {
  NameValues tuning;  // what was found, by key
};

/// Runs one untimed step with the communication library's log.
struct Observe {
  /// The number of ranks, the first ones, that return their logs: enough to hold one of every kind of communicator, and
  /// little enough for rank 0.
  int logs = 64;
};
struct ObserveSamples {
  std::string nccl_log;  // as much of it as is kept
};

/// Runs the warm-up and some profiled steps, untimed, and keeps the one that is the median by its length: one alone may
/// be a hiccup. Keeps the norm of the gradients of the first step of all.
struct RecordTimeline {
  config::Timelines ranks = config::Timelines::roles;  // whose intervals come home
  int steps = 1;                                       // profiled ones
};
/// One operation kind's share of one rank's profiled step.
struct KindTotal {
  std::string kind;  // operation name
  std::string stream;
  double seconds = 0;
  std::int64_t operations = 0;
};
/// A rank's contribution to the squared norm of the gradients of the first step: the sum of their squares, divided by n
/// where n ranks hold the same numbers. Parameters that the tensor axis shards are summed apart from the replicated
/// ones, because the few replicated ones would not show in one sum. NaN: the step does not train.
struct GradientSquares {
  double sharded = std::numeric_limits<double>::quiet_NaN(), replicated = std::numeric_limits<double>::quiet_NaN();
};
/// A profiled step of one rank.
struct ProfiledStep {
  std::vector<program::Interval> timeline;  // empty where only its totals come home
  double step_s = 0;                        // until the last operation ended
  double loading_s = 0;                     // filling the inputs, within the step or concurrent with it
  std::vector<KindTotal> totals;
  std::vector<float> communication_s;  // program::communication_durations(); empty: too many
  program::StepSplit split;
};
/// The step that was kept. A worker does not know it: it offers all of them, and the ranks agree (choose_step()).
struct TimelineSamples : ProfiledStep {
  GradientSquares gradient;
  std::vector<ProfiledStep> offered;  // in order; empty once the ranks have agreed
};

/// Runs the warm-up and the timed steps.
struct TimeSteps {
  int steps = 6;
};
struct TimedSamples {
  std::vector<double> step_s;  // warm-up steps first, then the timed ones
  std::vector<float> losses;   // of the same steps
  double timed_total_s = 0;    // around all timed steps; must agree with their sum
  int skipped_steps = 0;       // timed steps whose update was left out
  machine::GpuStatistics gpu;  // of this rank's device, during the timed steps
};

using Task = std::variant<TimeSteps, RecordTimeline, Observe, Tune, Probe, CopyWithHost>;
/// In the order of Task.
using TaskSamples =
    std::variant<TimedSamples, TimelineSamples, ObserveSamples, TuneSamples, ProbeSamples, HostCopySamples>;

/// The measurements that one rank returns from a block.
struct Samples {
  TaskSamples task;
  double first_step_s = 0;             // from the worker's start to the end of its first step
  std::int64_t peak_memory_bytes = 0;  // on the device, or resident on the host: high-water mark
  std::vector<std::string> warnings;   // each with a remedy
};

/// Sums up a profiled step of one rank: its length until the last operation ended, its totals by kind and stream, its
/// split, and the durations of its communications, unless those of all `ranks` are more than rank 0 should hold. Leaves
/// out the intervals themselves.
ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks);

/// Keeps of the steps that a worker offers the median by length. step_s: of the slowest rank in each of them, the same
/// on all ranks, so that all keep the same step.
void choose_step(TimelineSamples& samples, std::span<const double> step_s);

/// A block: one task of one case, on as many ranks as its layout has. Holds everything a worker needs to run it, and
/// what its supervisor needs to judge it.
struct BlockRequest {
  std::string case_name;
  config::BackendKind backend{};
  config::Model model;
  config::Settings settings;
  program::Layout layout;
  Task task;
  int warmup_steps = 2;
  std::uint64_t seed = 1;
  config::Deadlines deadlines;
  double memory_limit_bytes = 0;
  NameValues tuning;        // what tuning workers found, for every block alike
  std::string wrap;         // a command that the workers are started under ("nsys profile …"), "": none
  bool share_gpus = false;  // several ranks may use one GPU
  NameValues environment;   // for the worker, over its supervisor's own
};

/// Worker processes, one on each of its ranks, that run blocks one after another. The blocks agree in all that a
/// process has only once: backend, threads, a step's deadline, memory limit, wrap, and the environment, which settings
/// may be a part of.
struct WorkerSet {
  static constexpr int alone = -1;  // of workers that run one block

  int number = alone;      // its own among the sets of a job
  std::vector<int> ranks;  // of the job, ascending, one for each rank of the blocks' layouts; empty: the first ones
};

/// A block on a worker set. The first starts the workers, the last ends them.
struct BlockOnSet {
  WorkerSet set;
  BlockRequest request;
  bool last = true;
};

/// The place of a rank. Gathered once.
struct RankPlace {
  int rank = 0, local_rank = 0, local_ranks = 1, node = 0;
  std::string host, device;
  int cores = 0;            // of the node that this job may use
  double memory_bytes = 0;  // of the node
  machine::GpuView gpus;    // that this rank may see
};

/// The share of a node's memory that each of `local_ranks` ranks may use: a tenth is left to the system.
inline double share_of_memory(double node_bytes, int local_ranks) {
  return 0.9 * node_bytes / local_ranks;
}

/// The outcome of a block, at rank 0.
struct BlockOutcome {
  bool ok = false;
  bool stopped = false;   // by SIGINT/SIGTERM, not by a fault
  int culprit_rank = -1;  // of the job
  /// "rank 2 on node7: worker killed by signal 11 (segmentation fault) in step 3, matmul …"
  std::string reason;
  /// Equal for faults of the same kind at the same rank: a case that fails twice alike is dropped.
  std::string signature;
  double start_unix_s = 0;
  double setup_s = 0;              // spawn to go, slowest rank
  double total_s = 0;              // spawn to the end of the workers, or until they wait for another block
  std::vector<Samples> samples;    // by rank of the layout, when ok
  machine::Conditions conditions;  // from the start of its workers to their end

  /// The samples of one rank. T: the sample type of the requested task.
  template <class T>
  const T& of(std::size_t rank) const {
    return std::get<T>(samples.at(rank).task);
  }
};

/// Answers a question that rank 0 asks of every rank. Question and answer are opaque bytes to the job. A call takes
/// seconds at most and throws nothing.
using Answer = std::function<std::string(int rank, const std::string& question)>;

/// Other ranks no longer answer: what a call of a Job ends with instead of waiting for them for ever. All that is left
/// to do with the job is abandon().
class PeersLost : public Error {
 public:
  using Error::Error;
};

/// Runs blocks: by supervisors that start workers, or in virtual time. Rank 0 leads, the others follow: calls on rank 0
/// that say so are carried out by every rank.
class Job {
 public:
  virtual ~Job() = default;  // does not block

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The places of all ranks, by rank; at rank 0 only.
  virtual const std::vector<RankPlace>& places() const = 0;

  /// Rank 0: runs a block, whose layout has at most size() ranks, on its worker set, and returns when it has ended. A
  /// block that fails ends its set: the next one on that set starts new workers.
  virtual BlockOutcome run(const BlockOnSet& block) = 0;
  /// Rank 0: runs one block in processes of its own, on the first ranks.
  BlockOutcome run_alone(const BlockRequest& request) { return run({{}, request, true}); }
  /// Rank 0: asks every rank, and returns what they answer, by rank.
  virtual std::vector<std::string> ask(const std::string& question) = 0;

  /// Other ranks: carries out the calls of rank 0 until finish(). Returns the exit code that rank 0 gave.
  virtual int follow() = 0;
  /// Rank 0: ends follow() everywhere.
  virtual void finish(int exit_code) = 0;
  /// All ranks, as the last call.
  virtual void leave() = 0;
  /// In place of finish() and leave(): ends the processes of all ranks and does not return, where there are any.
  virtual void abandon(int /*exit_code*/) {}

  /// Stop requests so far (SIGINT, SIGTERM) on any rank: 0 none, 1 finish the block, 2 stop now. Rank 0 learns of them
  /// with a short delay.
  virtual int stop_requests() const = 0;
  /// When the allocation ends, as Slurm reports it; 0 if unknown.
  virtual double allocation_end_unix_s() const = 0;
  /// The clock that times the blocks.
  virtual const Clock& clock() const = 0;
};

/// The GPUs of one node, as its ranks see them.
struct NodeGpus {
  std::string host;
  int ranks = 0;
  bool unknown = false;        // a rank could not list them
  bool blind_rank = false;     // a rank sees none
  std::set<std::string> gpus;  // that its ranks see, together
};

/// The GPUs of every node, by its number.
std::map<int, NodeGpus> gpus_by_node(const std::vector<RankPlace>& places);

/// The signals that ask a sweep to stop. mpirun passes SIGUSR1 and SIGUSR2 on at once, and Slurm sends one with
/// --signal.
inline constexpr std::array<int, 4> stop_numbers{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

/// Counts stop signals from now on, instead of letting them end the process. Ignores SIGPIPE.
void count_stop_signals();
/// The number received so far.
int stop_signals();
/// Seconds since the first SIGTERM; negative if there was none.
double seconds_since_sigterm();

/// The environment of this process.
NameValues own_environment();

/// The part that can change a measurement and may be published: an allow-list of prefixes (NCCL_, OMP_, UCX_ …).
/// Sorted by name.
NameValues recorded_environment(const NameValues& environment);

/// A worker's environment: the supervisor's own, without what launchers set for their processes and without any tuning
/// variable; then rank 0's tuning variables, so that all ranks have the same; then `forced`; then `request`. Later ones
/// win. The variable that selects a rank's devices (CUDA_VISIBLE_DEVICES) is not replaced.
NameValues worker_environment(const NameValues& own, const NameValues& rank0_recorded, const NameValues& forced,
                              const NameValues& request);

/// Environment variables that contradict the configuration: a line for each that is set and that a variable of the
/// experiment, swept or given in the baseline, would set to another value.
std::vector<std::string> contradictions(const NameValues& environment, const config::Experiment& experiment);

}  // namespace harness::job
