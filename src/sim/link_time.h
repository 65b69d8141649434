#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/calibration.h"
#include "config/experiment.h"
#include "config/settings.h"
#include "program/links.h"

namespace harness::sim {

// ---- NCCL's own choice ---------------------------------------------------------------------------------------------

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
// it says what a choice that settings force is to NCCL's own, whose time is known (lines_seconds()).

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

/// Who sends at once along an axis: the ranks that stand at the same place on it.
class Senders {
 public:
  /// `layout` and `network` must outlive the object.
  Senders(const program::Peer& peer, const program::Layout& layout, const Network& network);
  /// How many ranks of its node send to other nodes together with this one, itself among them; 0: it does not.
  int beside(int rank) const { return leaves_node(rank) ? leaving_.at(place_of(rank)) : 0; }

 private:
  bool leaves_node(int rank) const {
    return network_.node_of[rank] != network_.node_of[layout_.neighbour(rank, peer_.axis, peer_.offset)];
  }
  // Node, and coordinate on the axis.
  std::pair<int, int> place_of(int rank) const {
    return {network_.node_of[rank], layout_.coordinates(rank)[peer_.axis]};
  }

  program::Peer peer_;
  const program::Layout& layout_;
  const Network& network_;
  std::map<std::pair<int, int>, int> leaving_;  // by place
};
/// Bytes per second that the instances of a group have of a node's network each: an equal part, and no more than the
/// network cards of their ranks carry.
double network_rate(const Spread& spread, const Network& network);
/// A group as NCCL sees it.
NcclGroup nccl_group(const Spread& spread, const Network& network);

/// The share of a node's rate that large collectives and messages get: the hardware's, else the calibration's.
double network_share(const Network& network, const config::Calibration& calibration);

/// One collective of `bytes` (nccl-tests' "size"), as NCCL chooses among its algorithms and protocols: the least of
/// straight lines, a start and a time per byte for each of them, so it never falls with the size. Between nodes it
/// takes no less than its part within a node. Of an all-reduce 2 (n - 1) / n of the bytes pass each rank, of its halves
/// (n - 1) / n (Patarasuk and Yuan 2009). Throws nothing; 0 for one rank.
///
/// Sources of the lines, by what they were fitted to:
/// - a node without NVLink SHARP: VIA-Research/vTrain, A100, 1024 sizes of 1 MiB and more; below that LL's steps.
/// - a node with it: NVIDIA dgxc-benchmarking's table of 8 H100, 32 KiB to 8 GiB.
/// - a rack of more than 8: NVIDIA/nccl-tests#43 and CoreWeave's and NVIDIA's tables of GB200 NVL72, 4 to 1440 GPUs.
/// - between nodes: a ring's step of 5 us is what SimAI's 77 rates of 16 to 1024 ranks and B200 rings of 512 come to;
///   trees and NVLSTree are together's B200 tables (1 to 64 nodes).
double lines_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                     const config::Calibration& calibration);

/// The law below CollectiveTime: one collective of `bytes` (nccl-tests' size) by the calibration's measured curve, else
/// by lines_seconds().
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
  double more_blocks(double bytes) const { return effects_.at(bytes).more_blocks; }

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
