#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"
#include "machine/conditions.h"
#include "machine/topology.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/limits.h"

namespace harness::sweep {

/// The node of every rank of a job.
machine::Topology topology_of(const std::vector<job::RankPlace>& places);

/// The machine, as the first worker of every rank found it.
struct Machine {
  std::string device;                    // the GPU that all ranks have; "" on cpu
  NameValues identity;                   // library versions, CPU or GPU model: equal on all ranks
  NameValues environment;                // rank 0's, as far as it may be published
  std::vector<job::RankPlace> places;    // by rank
  std::vector<store::ResultRank> ranks;  // the same as rows of the result
  std::vector<std::string> warnings;
  Peaks peaks;                     // what these workers reached, with all cores of their nodes
  machine::Conditions conditions;  // while these workers ran

  machine::Topology topology() const;
};

/// Starts one worker on every rank, checks that all ranks have the same program, libraries and devices, and measures
/// the rate of matrix products once. Throws Error that names the ranks that differ, two ranks on one GPU, or an
/// environment that contradicts the configuration.
Machine probe(job::Job& job, const plan::Plan& plan);

/// A line for every name whose value is not the same on all ranks: "oneDNN: 3.1 on 7 ranks, but 2.6.3 on rank 3
/// (node7)". The most frequent value is taken to be right. A name that a rank does not have counts as "absent".
/// `places` by rank.
std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places);

/// Lists values that may differ between ranks, each with its number of ranks, in the order of the lowest rank:
/// "CPUs 0-7 (4 ranks), CPUs 8-15 (4 ranks)". Lists at most 8 values.
std::string said_by_ranks(const std::vector<std::string>& by_rank);

/// Throws Error if a rank has no GPU, or if a node has fewer GPUs than ranks and `share_gpus` is not set. Nodes whose
/// GPUs cannot be listed pass: their workers find out. `config` is the path that the error's advice names.
void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config);

}  // namespace harness::sweep
