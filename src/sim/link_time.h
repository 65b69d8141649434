#pragma once

#include <algorithm>
#include <compare>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/calibration.h"
#include "config/experiment.h"
#include "config/settings.h"
#include "program/links.h"

namespace harness::sim {

/// Thrown for a case that has no prediction, with the reason.
struct NotPredicted : Error {
  /// `where`: the place in the step, appended after a space.
  explicit NotPredicted(const std::string& why, const std::string& where = "")
      : Error(where.empty() ? why : fmt::format("{} {}", why, where)), cause(why) {}
  std::string cause;  // without `where`: equal for all cases with this reason
};

// ---- the links of a job --------------------------------------------------------------------------------------------

/// The links between GPUs.
struct Network {
  double rank_bytes_per_s = 0;   // from one GPU to the others on its node, one direction
  double node_bytes_per_s = 0;   // from one node to the others
  bool switches_reduce = false;  // NVLink SHARP
  std::vector<int> node_of;      // by rank of the layout
  int ranks_of_node = 0;         // ranks that share its network cards; 0: not known
  int nics_of_node = 0;          // 0: not known; then one rank may use all of them
  int compute_capability = 0;
  bool nvswitch = false;
  bool network_reduces = false;  // SHARP
  double network_share = 0;      // share of a node's rate that large collectives reach; 0: as in the calibration
};
/// Returns the network of these machines and ranks. A node with fewer ranks than GPUs gets that share of its network
/// and of its network cards; rates in `fabric` are those of the ranks in use.
Network network_of(const config::Hardware& hardware, const config::Fabric& fabric, std::vector<int> node_of);

/// The placement of one instance of a group, and what faults leave to its members.
struct Spread : program::Spread {
  double network = 1;  // the smallest share of its part of the network that any member has left

  auto operator<=>(const Spread&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// Returns for each rank how many ranks of its node, itself included, send to other nodes at the same time: those with
/// the same coordinate on the axis. 0: it sends to no other node.
std::vector<int> senders_along(const program::Peer& peer, const program::Layout& layout, const Network& network);
/// Returns the bytes per second that each instance of a group gets of a node's network: an equal part, and no more than
/// the network cards of its ranks carry.
double network_rate(const Spread& spread, const Network& network);

// ---- NCCL's own choice ---------------------------------------------------------------------------------------------

// NCCL's own model of a collective, by which it chooses algorithm and protocol: ncclTopoTuneModel() and
// ncclTopoGetAlgoTime() of src/graph/tuning.cc in NCCL 2.28.9 (BSD-3-Clause). Its latencies in microseconds and
// bandwidths per channel are in nccl_time.cpp. CollNet counts where switches between nodes reduce (SHARP). The model
// only gives the time of a forced choice relative to NCCL's own, whose time collective_seconds() has.

/// Returns the time of NCCL's quickest step over NVLink or over the network: no all-reduce takes less.
double least_step_seconds(bool between_nodes);

/// A collective with NCCL settings, relative to NCCL's own choice.
struct NcclEffect {
  double slower = 1;       // factor on the time; below 1 where SHARP beats NCCL without it
  double more_blocks = 1;  // factor on its thread blocks, and so multiprocessors
};

/// The effect of given settings on a given group, by size; empty if there is none at any size. nccl_effects() throws
/// NotPredicted if the settings leave NCCL nothing to choose, which ends it with an error.
using NcclEffects = std::function<NcclEffect(double bytes)>;
NcclEffects nccl_effects(program::Collective kind, const Spread& spread, const Network& network,
                         const config::Settings& settings);

// ---- times over links ----------------------------------------------------------------------------------------------

/// Returns the share of a node's rate that large collectives and messages reach: the hardware's, else the
/// calibration's.
double network_share(const Network& network, const config::Calibration& calibration);

/// The law below CollectiveTime: the time of one collective of `bytes` (nccl-tests' "size"). Uses the calibration's
/// measured curve if there is one; else, as NCCL chooses among algorithms and protocols, the minimum of straight lines,
/// each with a start and a time per byte, so it never falls with the size. Between nodes it takes at least the time of
/// its part within a node. For an all-reduce, 2 (n - 1) / n of the bytes pass each rank, for reduce-scatter and
/// all-gather (n - 1) / n (Patarasuk and Yuan 2009). Throws nothing; returns 0 for one rank.
///
/// Sources of the lines, by what they were fitted to:
/// - a node without NVLink SHARP: VIA-Research/vTrain, A100, 1024 sizes of 1 MiB and more; below that LL's steps.
/// - a node with it: NVIDIA dgxc-benchmarking's table of 8 H100, 32 KiB to 8 GiB.
/// - a rack of more than 8: NVIDIA/nccl-tests#43 and CoreWeave's and NVIDIA's tables of GB200 NVL72, 4 to 1440 GPUs.
/// - between nodes: a ring's step of 5 us agrees with SimAI's 77 rates of 16 to 1024 ranks and B200 rings of 512; trees
///   and NVLSTree come from together's B200 tables (1 to 64 nodes).
double collective_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                          const config::Calibration& calibration);

/// Returns the time of one message of `bytes` to another rank. `senders`: how many ranks of a node send to other nodes
/// at once (0: it stays on the node). `there`: the tensor ranks of the receiver, which gather their parts of the
/// message if the software scatters messages. `share`: the smaller share of its part of the network that either end has
/// left.
double message_seconds(double bytes, int senders, const Spread& there, const Network& network,
                       const config::Calibration& calibration, double share = 1);

/// Returns the time of a size by a measured curve. Beyond its points, it continues from the nearest end as law(size),
/// in seconds, does: a start alone, such as that of filling four bytes, says nothing about a megabyte.
template <class Law>
double seconds_by(const config::Curve& curve, double size, Law&& law) {
  if (curve.empty()) return law(size);
  const double within = std::clamp(size, curve.points().front().size, curve.points().back().size);
  const double seconds = curve.seconds_at(within);
  return within == size ? seconds : seconds * law(size) / law(within);
}

/// The time of a collective by size (nccl-tests' "size"), for one group on its links and with NCCL's settings. Every
/// caller gets it here: a larger size never takes less time, whatever the laws and measured curves below say.
class CollectiveTime {
 public:
  /// Throws NotPredicted for settings that end NCCL with an error. `network` and `calibration` must outlive it.
  CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                 const config::Calibration& calibration, const config::Settings& settings);

  double seconds(double bytes) const;
  /// Returns the factor on its usual number of thread blocks, and so multiprocessors.
  double more_blocks(double bytes) const { return effects_ ? effects_(bytes).more_blocks : 1; }

 private:
  double law(double bytes) const;

  program::Collective kind_;
  Spread spread_;
  const Network& network_;
  const config::Calibration& calibration_;
  NcclEffects effects_;
  config::Curve rising_;  // the law with its effects, if there are any
};

}  // namespace harness::sim
