#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
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

// The tasks of a block, each with its type of samples, one from every rank. A task without steps needs no other rank.

/// Identifies the rank's libraries and device, without running a step.
struct Probe {};
struct ProbeSamples {
  NameValues identity;    // library versions, CPU or GPU model, settings: equal on all ranks
  std::string device;     // as Backend::device()
  double peak_flops = 0;  // this rank's FLOP/s in matrix products of the block's precision; 0: not measured
};

/// Times copies between the rank's device and its host's memory, without a step. All ranks begin when the last is
/// ready.
struct CopyWithHost {
  double seconds = 2;  // in all, approximate
};
struct HostCopySamples {
  std::string device;         // as Backend::device()
  machine::HostCopies rates;  // zeros where the device has no memory of its own
};

/// Times the choices that the Program leaves open, without running a step.
struct Tune {
  double seconds = 45;  // in all, approximate
};
struct TuneSamples {
  NameValues tuning;  // the choices, by key
};

/// Runs one untimed step with the communication library's log enabled.
struct Observe {
  /// The first `logs` ranks return their logs: enough for every kind of communicator, few enough for rank 0 to hold.
  int logs = 64;
};
struct ObserveSamples {
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;
  std::string nccl_log;  // cut to most_bytes; empty on ranks that return none
};

/// Runs the warm-up and some profiled steps, untimed, and keeps the one of median length, because a single step may be
/// an outlier. Keeps the gradient norm of the very first step.
struct RecordTimeline {
  config::Timelines ranks = config::Timelines::roles;  // ranks that return their intervals
  int steps = 1;                                       // profiled steps
};
/// One operation kind's share of one rank's profiled step.
struct KindTotal {
  std::string kind;  // operation name
  std::string stream;
  double seconds = 0;
  std::int64_t operations = 0;
};
/// A rank's contribution to the squared gradient norm of the first step: the sum of squares, divided by n for gradients
/// that n ranks hold. Parameters sharded along the tensor axis are summed apart from replicated ones, which are too few
/// to show in a common sum. NaN: the step does not train.
struct GradientSquares {
  double sharded = std::numeric_limits<double>::quiet_NaN(), replicated = std::numeric_limits<double>::quiet_NaN();
};
/// A profiled step of one rank.
struct ProfiledStep {
  std::vector<program::Interval> timeline;  // empty if the rank returns totals only
  double step_s = 0;                        // until the last operation ended
  double loading_s = 0;                     // filling the inputs, within the step or concurrent with it
  std::vector<KindTotal> totals;
  std::vector<float> communication_s;  // program::communication_durations(); empty: too many
  program::StepSplit split;
};
/// The kept step. A worker cannot choose it alone: it offers all of its steps, and the ranks agree (choose_step()).
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
  int skipped_steps = 0;       // timed steps that skipped the update
  machine::GpuStatistics gpu;  // of this rank's device, during the timed steps
};

using Task = std::variant<TimeSteps, RecordTimeline, Observe, Tune, Probe, CopyWithHost>;
/// In the order of Task.
using TaskSamples =
    std::variant<TimedSamples, TimelineSamples, ObserveSamples, TuneSamples, ProbeSamples, HostCopySamples>;

/// The measurements that one rank returns from a block.
struct Samples {
  TaskSamples task;
  double first_step_s = 0;             // from the worker's receipt of the order to the end of its first step
  std::int64_t peak_memory_bytes = 0;  // on the device, or resident on the host: high-water mark
  std::vector<std::string> warnings;   // each with a remedy
};

/// Summarises a profiled step of one rank: its length up to the end of the last operation, its totals by kind and
/// stream, its split, and its communication durations, which are left out if those of all `ranks` would be too many for
/// rank 0. Excludes the intervals.
ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks);

/// Keeps the offered step of median length. step_s: the slowest rank's time of each step, equal on all ranks.
void choose_step(TimelineSamples& samples, std::span<const double> step_s);

/// A block: one task of one case, on as many ranks as its layout has. Holds everything that a worker needs to run it
/// and that its supervisor needs to judge it.
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
  NameValues tuning;        // choices of the tuning workers, equal for every block
  std::string wrap;         // a command that the workers are started under ("nsys profile …"), "": none
  bool share_gpus = false;  // several ranks may use one GPU
  NameValues environment;   // for the worker; overrides its supervisor's own
};

/// Worker processes, one on each of its ranks, that run blocks one after another. The blocks agree in all that is fixed
/// per process: backend, threads, step deadline, memory limit, wrap, and environment, including variables from
/// settings.
struct WorkerSet {
  static constexpr int alone = -1;  // for workers that run one block

  int number = alone;      // unique among the sets of a job
  std::vector<int> ranks;  // job ranks, ascending, one for each rank of the blocks' layouts; empty: the first ones
};

/// A block on a worker set. The first block of a set starts its workers, the last ends them.
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
  bool stopped = false;   // by a stop signal, not by a fault
  int culprit_rank = -1;  // of the job
  /// "rank 2 on node7: worker killed by signal 11 (segmentation fault) in step 3, matmul …"
  std::string reason;
  /// Equal for faults of the same kind at the same rank. A case that fails twice with one signature is dropped.
  std::string signature;
  double start_unix_s = 0;
  double setup_s = 0;              // spawn to go, slowest rank
  double total_s = 0;              // spawn to the end of the workers, or until they wait for another block
  std::vector<Samples> samples;    // by rank of the layout, when ok
  machine::Conditions conditions;  // over the whole block, from before its work starts until after it ends

  /// The samples of one rank. T: the sample type of the requested task.
  template <class T>
  const T& of(std::size_t rank) const {
    return std::get<T>(samples.at(rank).task);
  }
};

/// Answers a question that rank 0 asks of every rank. Question and answer are opaque bytes to the job. A call takes
/// seconds at most and throws nothing.
using Answer = std::function<std::string(int rank, const std::string& question)>;

/// Other ranks no longer answer. Calls of a Job throw this instead of waiting forever. After it, only abandon() may be
/// called.
class PeersLost : public Error {
 public:
  using Error::Error;
};

/// Runs blocks, by supervisors that start workers or in virtual time. Rank 0 leads; the others carry out its calls in
/// follow().
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
  /// Rank 0: asks every rank and returns the answers, by rank.
  virtual std::vector<std::string> ask(const std::string& question) = 0;

  /// Other ranks: carries out the calls of rank 0 until finish(). Returns the exit code that rank 0 gave.
  virtual int follow() = 0;
  /// Rank 0: ends follow() everywhere.
  virtual void finish(int exit_code) = 0;
  /// All ranks, as the last call.
  virtual void leave() = 0;
  /// Replaces finish() and leave(): ends the processes of all ranks, if there are any, and then does not return.
  virtual void abandon(int /*exit_code*/) {}

  /// Stop requests so far (stop_numbers) on any rank: 0 none, 1 finish the block, 2 stop now. Rank 0 learns of them
  /// with a short delay.
  virtual int stop_requests() const = 0;
  /// When the allocation ends, as Slurm reports it; 0 if unknown.
  virtual double allocation_end_unix_s() const = 0;
  /// The clock that times the blocks.
  virtual const Clock& clock() const = 0;
};

/// Nodes whose ranks cannot each have a GPU of their own. Nodes whose GPUs cannot be listed are left out.
struct GpuShortage {
  std::vector<std::string> blind;    // hosts on which a rank sees none
  std::vector<std::string> crowded;  // "node1 has 8 ranks and 4 GPUs"
};
GpuShortage gpu_shortage(const std::vector<RankPlace>& places);

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

/// Returns the variables, sorted by name, that can change a measurement and may be published: an allow-list of prefixes
/// (NCCL_, OMP_, UCX_ …).
NameValues recorded_environment(const NameValues& environment);

/// A worker's environment: the supervisor's own, without what launchers set for their processes and without any tuning
/// variable; then rank 0's tuning variables, so that all ranks have the same; then `forced`; then `request`. Later ones
/// win. The variable that selects a rank's devices (CUDA_VISIBLE_DEVICES) is not replaced.
NameValues worker_environment(const NameValues& own, const NameValues& rank0_recorded, const NameValues& forced,
                              const NameValues& request);

/// Returns a line for each environment variable that contradicts the configuration: it is set, and a variable of the
/// experiment, swept or given in the baseline, would set it to another value.
std::vector<std::string> contradictions(const NameValues& environment, const config::Experiment& experiment);

}  // namespace harness::job
