#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "config/experiment.h"
#include "job/task.h"
#include "machine/conditions.h"
#include "machine/gpus.h"

namespace harness::job {

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
  /// "rank 2 on node7: worker killed by signal 11 (segmentation fault) in step 3, matmul …". Of a block that is ok: why
  /// it was started a second time; "": it was not.
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

  /// Rank 0: runs a block on its worker set, and returns when it has ended. A block that fails ends its set: the next
  /// one on that set starts new workers.
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

}  // namespace harness::job
