#include "sim/link_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sim/collective_lines.h"

namespace harness::sim {
namespace {

int rails_of_rank(const Network& network) {
  return std::max(1, network.nics_of_node / std::max(1, network.ranks_of_node));
}

}  // namespace

Network network_of(const config::Hardware& hardware, const config::Fabric& fabric, std::vector<int> node_of) {
  std::map<int, int> on_node;
  int most = 0;
  for (const int node : node_of) most = std::max(most, ++on_node[node]);
  const double in_use = hardware.gpus_of_node > most ? static_cast<double>(most) / hardware.gpus_of_node : 1;
  const bool stated = fabric.node_bytes_per_s > 0;
  Network network;
  network.rank_bytes_per_s = fabric.rank_bytes_per_s > 0 ? fabric.rank_bytes_per_s : hardware.nvlink_bytes_per_s;
  network.node_bytes_per_s = stated ? fabric.node_bytes_per_s : hardware.node_bytes_per_s * in_use;
  network.switches_reduce = hardware.nvswitch && hardware.switches_may_reduce();
  network.node_of = std::move(node_of);
  network.ranks_of_node = most;
  network.nics_of_node = static_cast<int>(hardware.nics_of_node * in_use);
  network.compute_capability = hardware.compute_capability;
  network.nvswitch = hardware.nvswitch;
  network.network_reduces = hardware.network_reduces;
  network.network_share = hardware.network_share;
  return network;
}

double network_rate(const Spread& spread, const Network& network) {
  const double even = network.node_bytes_per_s / spread.instances_on_a_node;
  if (network.nics_of_node == 0 || network.ranks_of_node == 0) return even;
  const double of_ranks =
      std::max(1.0 / network.nics_of_node, static_cast<double>(spread.most_on_a_node) / network.ranks_of_node);
  return std::min(even, network.node_bytes_per_s * of_ranks);
}

NcclGroup nccl_group(const Spread& spread, const Network& network) {
  NcclGroup group;
  group.ranks = spread.ranks;
  group.nodes = spread.nodes;
  group.within_bytes_per_s = network.rank_bytes_per_s;
  group.between_bytes_per_s = spread.nodes > 1 ? network_rate(spread, network) * spread.network : 0;
  group.rails = spread.most_on_a_node * rails_of_rank(network);
  if (network.nics_of_node > 0) group.rails = std::min(group.rails, network.nics_of_node);
  group.compute_capability = network.compute_capability;
  group.nvswitch = network.nvswitch;
  group.network_reduces = network.network_reduces;
  return group;
}

Senders::Senders(const program::Peer& peer, const program::Layout& layout, const Network& network)
    : peer_(peer), layout_(layout), network_(network) {
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (leaves_node(rank)) ++leaving_[place_of(rank)];
  }
}

namespace {

const char* curve_of(program::Collective kind) {
  static constexpr std::array names{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send"};
  static_assert(names.size() == static_cast<std::size_t>(program::Collective::send_recv) + 1);
  return names[static_cast<std::size_t>(kind)];
}

// The share that each rank of a ring sends and receives of every byte of the size, against all that it could.
double part_moved(double ranks) {
  return (ranks - 1) / ranks;
}

}  // namespace

double collective_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                          const config::Calibration& c) {
  const auto law = [&](double size) { return lines_seconds(kind, size, spread, network, c); };
  const config::Curve* curve = c.measured.communication(curve_of(kind));
  if (spread.ranks <= 1 || spread.nodes > 1 || curve == nullptr || c.measured.ranks < 2) return law(bytes);
  return seconds_by(*curve, bytes * part_moved(spread.ranks) / part_moved(c.measured.ranks), law);
}

double network_share(const Network& network, const config::Calibration& c) {
  return network.network_share > 0 ? network.network_share : c.network_share;
}

double message_seconds(double bytes, int senders, const Spread& there, const Network& network,
                       const config::Calibration& c, double share) {
  constexpr double share_of_nvlink = 2.0 / 3;
  if (senders == 0) {
    const double start_s = c.within_node ? c.within_node->message_s : c.message_start_s;
    const double part = c.within_node ? c.within_node->share : share_of_nvlink;
    const auto law = [&](double size) { return start_s + size / (network.rank_bytes_per_s * part); };
    const config::Curve* curve = c.measured.communication(curve_of(program::Collective::send_recv));
    return curve == nullptr ? law(bytes) : seconds_by(*curve, bytes, law);
  }
  const bool scatters = c.software.scatters_messages && there.ranks > 1;
  const double own = scatters ? bytes / there.ranks : bytes;
  // One alone has its own network card.
  const int sharing = std::max(senders, std::min(network.nics_of_node, network.ranks_of_node));
  double seconds = c.message_start_s + own * sharing / (network.node_bytes_per_s * network_share(network, c) * share);
  if (scatters) seconds += collective_seconds(program::Collective::all_gather, bytes, there, network, c);
  return seconds;
}

namespace {

// NCCL's model steps from size to size and from choice to choice. Points this near follow it to a tenth of a percent.
constexpr int points_of_octave = 4, octaves = 44;

}  // namespace

CollectiveTime::CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                               const config::Calibration& calibration, const config::Settings& settings)
    : kind_(kind),
      spread_(spread),
      network_(network),
      calibration_(calibration),
      effects_(kind, nccl_group(spread, network), settings) {
  if (!effects_.some()) return;
  std::vector<config::CurvePoint> points;
  for (int i = 0; i <= points_of_octave * octaves; ++i) {
    const double bytes = std::exp2(static_cast<double>(i) / points_of_octave);
    points.push_back({bytes, law(bytes) * effects_.at(bytes).slower});
  }
  rising_ = config::Curve(std::move(points)).rising();
}

double CollectiveTime::seconds(double bytes) const {
  return effects_.some() ? rising_.seconds_at(bytes) : law(bytes);
}

double CollectiveTime::law(double bytes) const {
  return collective_seconds(kind_, bytes, spread_, network_, calibration_);
}

}  // namespace harness::sim
