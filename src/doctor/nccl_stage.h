#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.h"
#include "doctor/stage.h"
#include "nccl/log.h"
#include "nccl/topology.h"

namespace harness::doctor {

inline constexpr double nccl_limit_s = 30;

/// Runs one all-reduce over all ranks, in processes of their own, with NCCL's log, and says what NCCL did: the network
/// that it took, GPUDirect RDMA, adapters, interfaces, NVLS, versions.
std::vector<StageFinding> run_nccl_stage(const Bench& bench, double limit_s = nccl_limit_s);

/// NCCL's log of one rank.
struct RankLog {
  int rank = 0;
  nccl::Observed seen;
};

/// Judges the logs. A node without one is unknown.
std::vector<StageFinding> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs);

/// The checks of judge_nccl(), for docs/doctor.md.
std::vector<About> nccl_checks();

using Words = std::set<std::string>;

/// The logs of one node's ranks together.
struct NodeLog {
  const Node& node;
  bool several_nodes = false;  // the job has others
  std::vector<const RankLog*> logs = {};
  Words networks = {}, interfaces = {}, versions = {}, nvls = {}, warnings = {}, mtus = {};
  Words direct = {}, direct_sends = {}, direct_receives = {};  // GPUDirect RDMA: of both ends of connections, of each
  std::size_t with_dma_buf = 0;                                // logs that say so
  std::vector<std::string> devices = {};                       // as NCCL numbers them
  std::set<std::size_t> used = {};                             // of these, by connections that leave the node
  bool through_host = false;                                   // ranks of the node talk through host memory
  bool over_nvlink = false;                                    // to other nodes, in one NVLink domain

  std::size_t gpus() const { return std::max(node.facts.under("gpu").size(), node.facts.under("nvml").size()); }
  bool communicates() const { return !used.empty(); }
  bool on_sockets() const { return networks.contains("Socket"); }
};

NodeLog log_of(const Node& node, const std::vector<RankLog>& all, bool several_nodes);

/// All values of a fact (nccl/log.h) in the logs.
Words values_of(const std::vector<const RankLog*>& logs, std::string_view fact);
std::string text_of(const Words& words);

}  // namespace harness::doctor
