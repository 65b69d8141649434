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

/// There is no prediction of a case, and this is why.
struct NotPredicted : Error {
  /// `where`: in the step, after a space.
  explicit NotPredicted(const std::string& why, const std::string& where = "")
      : Error(where.empty() ? why : fmt::format("{} {}", why, where)), cause(why) {}
  std::string cause;  // without where: the same for all cases that have it
};

// ---- the links of a job --------------------------------------------------------------------------------------------

/// The links between GPUs.
struct Network {
  double rank_bytes_per_s = 0;   // of one GPU towards the others of its node, one direction
  double node_bytes_per_s = 0;   // of one node towards the others
  bool switches_reduce = false;  // NVLink SHARP
  std::vector<int> node_of;      // by rank of the layout
  int ranks_of_node = 0;         // that share its network cards; 0: not known
  int nics_of_node = 0;          // 0: not known; then one rank may have all of them
  int compute_capability = 0;
  bool nvswitch = false;
  bool network_reduces = false;  // SHARP
  double network_share = 0;      // of a node's rate, by large collectives; 0: as the calibration has it
};
/// The network of these machines and ranks. A machine that has fewer ranks than GPUs has as much of its network as they
/// have network cards; what `fabric` says is for the ranks that there are.
Network network_of(const config::Hardware& hardware, const config::Fabric& fabric, std::vector<int> node_of);

/// Where the members of one instance of a group stand, and what faults leave them.
struct Spread : program::Spread {
  double network = 1;  // share of its part of the network that the member with the least of it has

  auto operator<=>(const Spread&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// By rank, how many ranks of its node send to other nodes at once with it, itself among them: those at the same place
/// on the axis. 0: it does not send to another node.
std::vector<int> senders_along(const program::Peer& peer, const program::Layout& layout, const Network& network);
/// Bytes per second that the instances of a group have of a node's network each: an equal part, and no more than the
/// network cards of their ranks carry.
double network_rate(const Spread& spread, const Network& network);

// ---- NCCL's own choice ---------------------------------------------------------------------------------------------

// NCCL's own model of a collective, by which it chooses algorithm and protocol: ncclTopoTuneModel() and
// ncclTopoGetAlgoTime() of src/graph/tuning.cc in NCCL 2.28.9 (BSD-3-Clause), whose latencies in microseconds and
// bandwidths per channel are in nccl_time.cpp. It knows CollNet where the switches between nodes add up (SHARP). Here
// it says what a choice that settings force is to NCCL's own, whose time is known (collective_seconds()).

/// The time of the quickest step that NCCL knows, over NVLink or over the network: no all-reduce takes less.
double least_step_seconds(bool between_nodes);

/// The time that NCCL takes for a collective with its settings, against what is known of it.
struct NcclEffect {
  double slower = 1;       // how many times as long; below 1 where SHARP beats what NCCL takes without it
  double more_blocks = 1;  // how many times as many thread blocks, and so multiprocessors, it takes
};

/// The effect of the same settings on the same group, over the size; empty where there is none at any size. Throws
/// NotPredicted where the settings leave NCCL nothing to choose, with which it ends.
using NcclEffects = std::function<NcclEffect(double bytes)>;
NcclEffects nccl_effects(program::Collective kind, const Spread& spread, const Network& network,
                         const config::Settings& settings);

// ---- times over links ----------------------------------------------------------------------------------------------

/// The share of a node's rate that large collectives and messages get: the hardware's, else the calibration's.
double network_share(const Network& network, const config::Calibration& calibration);

/// The law below CollectiveTime: one collective of `bytes` (nccl-tests' "size") by the calibration's measured curve;
/// else as NCCL chooses among its algorithms and protocols: the least of straight lines, a start and a time per byte
/// for each of them, so it never falls with the size. Between nodes it takes no less than its part within a node. Of an
/// all-reduce 2 (n - 1) / n of the bytes pass each rank, of its halves (n - 1) / n (Patarasuk and Yuan 2009). Throws
/// nothing; 0 for one rank.
///
/// Sources of the lines, by what they were fitted to:
/// - a node without NVLink SHARP: VIA-Research/vTrain, A100, 1024 sizes of 1 MiB and more; below that LL's steps.
/// - a node with it: NVIDIA dgxc-benchmarking's table of 8 H100, 32 KiB to 8 GiB.
/// - a rack of more than 8: NVIDIA/nccl-tests#43 and CoreWeave's and NVIDIA's tables of GB200 NVL72, 4 to 1440 GPUs.
/// - between nodes: a ring's step of 5 us is what SimAI's 77 rates of 16 to 1024 ranks and B200 rings of 512 come to;
///   trees and NVLSTree are together's B200 tables (1 to 64 nodes).
double collective_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                          const config::Calibration& calibration);

/// One message of `bytes` to another rank, which `senders` ranks of a node send to other nodes at once (0: it stays on
/// the node). `there`: the tensor ranks of the receiver, which gather what each was sent of it, where the software
/// scatters messages. `share`: of its part of the network, that of the two which has less.
double message_seconds(double bytes, int senders, const Spread& there, const Network& network,
                       const config::Calibration& calibration, double share = 1);

/// The time of a size by a measured curve. Beyond its points it goes on as the law of its kind does, law(size) in
/// seconds, from where it ends: a start alone, such as of filling four bytes, says nothing of a megabyte.
template <class Law>
double seconds_by(const config::Curve& curve, double size, Law&& law) {
  if (curve.empty()) return law(size);
  const double within = std::clamp(size, curve.points().front().size, curve.points().back().size);
  const double seconds = curve.seconds_at(within);
  return within == size ? seconds : seconds * law(size) / law(within);
}

/// How long one collective takes over its size (nccl-tests' "size"), for one group on its links and with the settings
/// of NCCL. This is the one place that says it: a larger size never takes less time, whatever the laws and the measured
/// curves below say of it.
class CollectiveTime {
 public:
  /// Throws NotPredicted for settings with which NCCL ends.
  CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                 const config::Calibration& calibration, const config::Settings& settings);

  double seconds(double bytes) const;
  /// How many times as many thread blocks as usual, and so multiprocessors, it takes.
  double more_blocks(double bytes) const { return effects_ ? effects_(bytes).more_blocks : 1; }

 private:
  double law(double bytes) const;

  program::Collective kind_;
  Spread spread_;
  const Network& network_;
  const config::Calibration& calibration_;
  NcclEffects effects_;
  config::Curve rising_;  // of the law with its effects, where there are some
};

}  // namespace harness::sim
