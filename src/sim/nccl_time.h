#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "config/settings.h"
#include "program/links.h"

namespace harness::sim {

/// There is no prediction of a case, and this is why.
struct NotPredicted : Error {
  /// `where`: in the step, after a space.
  explicit NotPredicted(const std::string& why, const std::string& where = "")
      : Error(where.empty() ? why : fmt::format("{} {}", why, where)), cause(why) {}
  std::string cause;  // without where: the same for all cases that have it
};

// NCCL's own model of a collective, by which it chooses algorithm and protocol: ncclTopoTuneModel() and
// ncclTopoGetAlgoTime() of src/graph/tuning.cc in NCCL 2.28.9 (BSD-3-Clause), whose latencies in microseconds and
// bandwidths per channel are in nccl_time.cpp. It knows CollNet where the switches between nodes add up (SHARP). Here
// it says what a choice that settings force is to NCCL's own, whose time is known (link_time.h).

/// In the order of NCCL's numbers (nccl/values.h), in which the first of equals is chosen.
enum class NcclAlgorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

/// A communicator, and the links that it has for itself.
struct NcclGroup {
  int ranks = 1, nodes = 1;
  double within_bytes_per_s = 0;   // of a rank's NVLinks together, one direction, as their data sheet has it
  double between_bytes_per_s = 0;  // of a node's network, as much as the group has of it
  int rails = 1;                   // network cards of a node that carry it
  int compute_capability = 80;     // 90 is 9.0
  bool nvswitch = false;
  bool network_reduces = false;  // the switches between nodes add up (SHARP)
};

/// The time of the quickest step that NCCL knows, over NVLink or over the network: no all-reduce takes less.
double least_step_seconds(bool between_nodes);

/// How long NCCL expects a collective of `bytes` (nccl-tests' size) to take. 0: the algorithm does not do it here.
/// CollNet takes several nodes and switches between them that add up (NcclGroup::network_reduces).
double nccl_seconds(program::Collective kind, double bytes, NcclAlgorithm algorithm, NcclProtocol protocol,
                    const NcclGroup& group);

/// The time that NCCL takes for a collective with its settings, against what is known of it.
struct NcclEffect {
  double slower = 1;       // how many times as long; below 1 where SHARP beats what NCCL takes without it
  double more_blocks = 1;  // how many times as many thread blocks, and so multiprocessors, it takes
};

/// The effect of the same settings on the same group, over the size.
class NcclEffects {
 public:
  /// Throws NotPredicted where the settings leave NCCL nothing to choose, with which it ends.
  NcclEffects(program::Collective kind, const NcclGroup& group, const config::Settings& settings);
  /// Whether there is one at some size.
  bool some() const { return at_ != nullptr; }
  NcclEffect at(double bytes) const { return some() ? at_(bytes) : NcclEffect{}; }

 private:
  std::function<NcclEffect(double bytes)> at_;
};

}  // namespace harness::sim
