#pragma once

#include <vector>

#include "doctor/stage.h"
#include "nccl/log.h"

namespace harness::doctor {

inline constexpr double nccl_limit_s = 30;

/// Runs one all-reduce over all ranks, in processes of their own, with NCCL's log, and says what NCCL did: the network
/// that it took, GPUDirect RDMA, adapters, interfaces, NVLS, versions.
std::vector<Said> run_nccl_stage(const Bench& bench, double limit_s = nccl_limit_s);

/// What NCCL said of itself on one rank.
struct RankLog {
  int rank = 0;
  nccl::Observed seen;
};

/// The same of logs. Of a node without one it is unknown.
std::vector<Said> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs);

/// What judge_nccl() looks at, for docs/doctor.md.
std::vector<StageCheck> nccl_checks();

}  // namespace harness::doctor
