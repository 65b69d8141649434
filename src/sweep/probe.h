#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"
#include "machine/conditions.h"
#include "machine/topology.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/peaks.h"

namespace harness::sweep {

/// Where the ranks of a job stand.
machine::Topology topology_of(const std::vector<job::RankPlace>& places);

/// What the first worker of every rank found out about the machine.
struct Machine {
  std::string device;                    // the GPU that all ranks have; "" on cpu
  NameValues identity;                   // library versions, CPU or GPU model: equal on all ranks
  NameValues environment;                // rank 0's, as far as it may be published
  std::vector<job::RankPlace> places;    // by rank
  std::vector<store::ResultRank> ranks;  // the same as rows of the result
  std::vector<std::string> warnings;
  Peaks peaks{{}};                 // what these workers reached, with all cores of their nodes
  machine::Conditions conditions;  // while these workers ran

  machine::Topology topology() const;
};

/// Starts one worker on every rank, checks that all ranks have the same program, libraries and devices, and measures
/// the rate of matrix products once. Throws Error that names the ranks that differ, two ranks on one GPU, or an
/// environment that contradicts the configuration.
Machine probe(job::Job& job, const plan::Plan& plan);

}  // namespace harness::sweep
