#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "machine/conditions.h"
#include "machine/gpus.h"
#include "measure/block.h"

namespace harness::launch {

/// Everything a worker needs to run one block, and what its supervisor needs to judge it. Serialised as JSON on the way
/// down; settings travel as registry text.
struct BlockRequest {
  std::string case_name;
  config::BackendKind backend{};
  config::Model model;
  config::Settings settings;
  program::Layout layout;  // layout.ranks() supervisors start a worker, the others sit the block out
  measure::BlockMode mode = measure::BlockMode::timed;
  int warmup_steps = 2, steps = 6;
  std::uint64_t seed = 1;
  config::Deadlines deadlines;
  double memory_limit_bytes = 0;
  std::vector<std::pair<std::string, std::string>> tuning;  // what tuning workers found, for every block alike
  std::string wrap;         // a command that the workers are started under ("nsys profile …"), "": none
  bool share_gpus = false;  // several ranks may use one GPU
  config::Timelines timeline = config::Timelines::roles;
  std::vector<std::pair<std::string, std::string>> environment;  // for the worker, over its supervisor's own
};

/// Where a rank runs. Gathered once.
struct RankPlace {
  int rank = 0, local_rank = 0, local_ranks = 1, node = 0;
  std::string host, device;
  int cores = 0;            // of the node that this job may use
  double memory_bytes = 0;  // of the node
  machine::GpuView gpus;    // that this rank may see
};

/// How a block went, at rank 0.
struct BlockOutcome {
  bool ok = false;
  bool stopped = false;  // by SIGINT/SIGTERM, not by a fault
  int culprit_rank = -1;
  /// "rank 2 on node7: worker killed by signal 11 (segmentation fault) in step 3, matmul …". Of a block that is ok: why
  /// it was started a second time; "": it was not.
  std::string reason;
  std::string
      signature;  // equal for faults of the same kind at the same rank: a case that fails twice alike is dropped
  double start_unix_s = 0;                     // of the block
  double setup_s = 0;                          // spawn to go, slowest rank
  std::vector<measure::BlockSamples> samples;  // per rank of the layout, when ok
  machine::Conditions conditions;              // from the start of its workers to their end
};

/// The supervisors of a job. Rank 0 leads, the others follow: calls on rank 0 that say so are carried out by every
/// rank. A supervisor never blocks inside MPI while workers run: it polls and sleeps. Touches no GPU.
class Job {
 public:
  /// MPI_Init. Throws Error with advice for the usual launch mistake: many processes that each take themselves for
  /// rank 0 of 1. The message is empty in all of these processes but the first, so that it is printed once.
  static std::unique_ptr<Job> join();
  virtual ~Job() = default;  // does not block and calls no MPI

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// By rank, at rank 0.
  virtual const std::vector<RankPlace>& places() const = 0;

  /// Rank 0: runs one block on all ranks of its layout and returns when every worker is gone.
  virtual BlockOutcome run(const BlockRequest& request) = 0;
  /// Other ranks: carries out the calls of rank 0 until finish(). Returns the exit code that rank 0 gave.
  virtual int follow() = 0;
  /// Rank 0: ends follow() everywhere.
  virtual void finish(int exit_code) = 0;
  /// All ranks, as the last call: MPI_Finalize.
  virtual void leave() = 0;

  /// Stop requests so far (SIGINT, SIGTERM) on any rank: 0 none, 1 finish the block, 2 stop now. Rank 0 learns of them
  /// with a short delay.
  virtual int stop_requests() const = 0;
  /// Unix time at which the allocation ends, as Slurm reports it; 0 if unknown.
  virtual double allocation_end_unix_s() const = 0;
};

/// The hidden verb `worker`: reads its order from stdin, runs one block and answers on stdout. Returns its exit code.
int worker_main();

}  // namespace harness::launch
