#include "sim/link_time.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

namespace harness::sim {
Network network_of(const config::Hardware& hardware, const config::Fabric& fabric, std::vector<int> node_of) {
  std::map<int, int> on_node;
  int most = 0;
  for (const int node : node_of) most = std::max(most, ++on_node[node]);
  const double in_use = hardware.gpus_of_node > most ? static_cast<double>(most) / hardware.gpus_of_node : 1;
  const bool stated = fabric.node_bytes_per_s > 0;
  return {.rank_bytes_per_s = fabric.rank_bytes_per_s > 0 ? fabric.rank_bytes_per_s : hardware.nvlink_bytes_per_s,
          .node_bytes_per_s = stated ? fabric.node_bytes_per_s : hardware.node_bytes_per_s * in_use,
          .switches_reduce = hardware.nvswitch && hardware.switches_may_reduce(),
          .node_of = std::move(node_of),
          .ranks_of_node = most,
          .nics_of_node = static_cast<int>(hardware.nics_of_node * in_use),
          .compute_capability = hardware.compute_capability,
          .nvswitch = hardware.nvswitch,
          .network_reduces = hardware.network_reduces,
          .network_share = hardware.network_share};
}

double network_rate(const Spread& spread, const Network& network) {
  const double even = network.node_bytes_per_s / spread.instances_on_a_node;
  if (network.nics_of_node == 0 || network.ranks_of_node == 0) return even;
  const double of_ranks =
      std::max(1.0 / network.nics_of_node, static_cast<double>(spread.most_on_a_node) / network.ranks_of_node);
  return std::min(even, network.node_bytes_per_s * of_ranks);
}

std::vector<int> senders_along(const program::Peer& peer, const program::Layout& layout, const Network& network) {
  const auto leaves_node = [&](int rank) {
    return network.node_of[rank] != network.node_of[layout.neighbour(rank, peer.axis, peer.offset)];
  };
  const auto place_of = [&](int rank) { return std::pair(network.node_of[rank], layout.coordinates(rank)[peer.axis]); };
  std::map<std::pair<int, int>, int> leaving;  // by place
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (leaves_node(rank)) ++leaving[place_of(rank)];
  }
  std::vector<int> senders;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    senders.push_back(leaves_node(rank) ? leaving.at(place_of(rank)) : 0);
  return senders;
}

namespace {

constexpr double us = 1e-6;

// Ranks of one node make `passes` over NVLink, each with (n - 1) / n of the bytes.
struct Inside {
  double n, passes, links;  // links: bytes per second of a rank's NVLinks, one direction
  double per_byte(double share) const { return passes * (n - 1) / n / (links * share); }
  // `of_all_reduce`: the start of an all-reduce; reduce-scatter and all-gather have 0.6 of it.
  double start_s(double of_all_reduce) const { return (passes > 1 ? 1 : 0.6) * of_all_reduce; }
};

double without_switches_that_add(double bytes, const Inside& in) {
  constexpr double ll_share = 0.16;
  struct Measured {
    double ranks, start_us, gb_per_s;
  };
  constexpr std::array<Measured, 3> of_a100{{{2, 55, 194}, {4, 65, 220}, {1e9, 90, 230}}};
  constexpr double links_of_a100 = 300;
  const Measured& row = *std::ranges::find_if(of_a100, [&](const Measured& m) { return in.n <= m.ranks; });
  const double share = row.gb_per_s / links_of_a100;
  return std::min(in.start_s(row.start_us * us) + bytes * in.per_byte(share),
                  (7 + 1.2 * in.passes * (in.n - 1)) * us + bytes * in.per_byte(share * ll_share));
}

double with_switches_that_add(double bytes, const Inside& in) {
  constexpr double one_board = 8;
  const bool all_reduce = in.passes > 1;
  double seconds = (13 + 0.4 * in.n) * us + bytes * in.per_byte(0.16);  // LL
  const auto add = [&](double start_us, double share) {
    seconds = std::min(seconds, (start_us + 0.5 * in.n) * us + bytes * in.per_byte(share));
  };
  if (in.n <= one_board) {
    add(18, 0.55);                                  // LL128, NVLS of small messages
    add(50, all_reduce && in.n > 4 ? 1.05 : 0.80);  // NVLS, Simple
  } else {
    add(25, 0.30);
    add(100, 0.70);
    add(560, all_reduce ? 1.0 : 0.78);
  }
  return seconds;
}

double inside_seconds(double bytes, double ranks, double passes, const Network& network, const config::Calibration& c) {
  if (ranks <= 1) return 0;
  const Inside in{ranks, passes, network.rank_bytes_per_s};
  // A share of the nominal link rate, as calibrated on this machine.
  if (c.within_node) return in.start_s(c.within_node->start_s) + bytes * in.per_byte(c.within_node->share);
  return network.switches_reduce ? with_switches_that_add(bytes, in) : without_switches_that_add(bytes, in);
}

double between_seconds(double bytes, const Spread& spread, double passes, const Network& network,
                       const config::Calibration& c) {
  const double most_of_links = c.within_node ? c.within_node->share : 0.75;
  const double n = spread.ranks, nodes = spread.nodes, g = spread.most_on_a_node, log_nodes = std::log2(nodes);
  const bool all_reduce = passes > 1, inside = g > 1 && network.rank_bytes_per_s > 0;
  const double adapters = network_rate(spread, network) * spread.network;
  double rate = adapters * network_share(network, c);
  if (inside) rate = std::min(rate, network.rank_bytes_per_s * most_of_links);
  const double part = passes * (n - 1) / n;
  if (c.network_hop_s == 0)  // measured on this number of nodes: the start includes all steps
    return c.network_start_s + bytes * (part / rate);
  double seconds = std::numeric_limits<double>::infinity();
  const auto add = [&](double start_s, double per_byte) { seconds = std::min(seconds, start_s + bytes * per_byte); };
  add(c.network_start_s + passes * ((nodes - 1) * c.network_hop_s + (n - nodes) * 1.2 * us), part / rate);
  add(0.7 * c.network_start_s + passes * ((nodes - 1) * 0.6 * c.network_hop_s + (n - nodes) * 0.8 * us),
      part / (0.45 * rate));  // LL
  if (all_reduce) {
    add((15 + 2 * ((g - 1) * 0.6 + log_nodes * 6)) * us, 2 / (0.25 * rate));             // tree, LL
    add((45 + 24 * log_nodes) * us, 2 / (1.05 * rate * (spread.nodes == 2 ? 1 : 0.5)));  // tree, NVLSTree
    if (spread.nodes == 2 && network.switches_reduce && inside) {                        // each byte crosses once
      const double nvls = 2 * (n - 1) / n / (1.05 * network.rank_bytes_per_s);
      add(60 * us, std::max(1 / (0.93 * adapters), nvls));
    }
  } else if (spread.most_on_a_node == 1) {
    add((40 + 14 * std::log2(n)) * us, part / (0.85 * rate));  // PAT
  }
  return seconds;
}

const char* curve_of(program::Collective kind) {
  static constexpr std::array names{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send"};
  static_assert(names.size() == static_cast<std::size_t>(program::Collective::send_recv) + 1);
  return names[static_cast<std::size_t>(kind)];
}

// The share of each byte that a rank of a ring sends and receives.
double part_moved(double ranks) {
  return (ranks - 1) / ranks;
}

// NCCL's model jumps between sizes and choices. Points this close follow it to 0.1 %.
constexpr int points_of_octave = 4, octaves = 44;

}  // namespace

double collective_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                          const config::Calibration& c) {
  if (spread.ranks <= 1) return 0;
  const auto law = [&](double size) {
    const double passes = kind == program::Collective::all_reduce ? 2 : 1;
    const bool linked = spread.nodes == 1 || network.rank_bytes_per_s > 0;
    const double inside = linked ? inside_seconds(size, spread.most_on_a_node, passes, network, c) : 0;
    return spread.nodes == 1 ? inside : std::max(inside, between_seconds(size, spread, passes, network, c));
  };
  const config::Curve* curve = c.measured.communication(curve_of(kind));
  if (spread.nodes > 1 || curve == nullptr || c.measured.ranks < 2) return law(bytes);
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
  // A lone sender has only its own network card.
  const int sharing = std::max(senders, std::min(network.nics_of_node, network.ranks_of_node));
  double seconds = c.message_start_s + own * sharing / (network.node_bytes_per_s * network_share(network, c) * share);
  if (scatters) seconds += collective_seconds(program::Collective::all_gather, bytes, there, network, c);
  return seconds;
}

CollectiveTime::CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                               const config::Calibration& calibration, const config::Settings& settings)
    : kind_(kind),
      spread_(spread),
      network_(network),
      calibration_(calibration),
      effects_(nccl_effects(kind, spread, network, settings)) {
  if (!effects_) return;
  // Where faults take network away, NCCL's own choice can lose more than the forced one: the ratio of the two then
  // falls faster than the law rises. But no choice takes longer without faults.
  Spread healthy = spread;
  healthy.network = 1;
  const NcclEffects of_healthy = nccl_effects(kind, healthy, network, settings);
  std::vector<config::CurvePoint> points;
  for (int i = 0; i <= points_of_octave * octaves; ++i) {
    const double bytes = std::exp2(static_cast<double>(i) / points_of_octave);
    const double least_s = collective_seconds(kind, bytes, healthy, network, calibration) * of_healthy(bytes).slower;
    points.push_back({bytes, std::max(least_s, law(bytes) * effects_(bytes).slower)});
  }
  rising_ = config::Curve(std::move(points)).rising();
}

double CollectiveTime::seconds(double bytes) const {
  return effects_ ? rising_.seconds_at(bytes) : law(bytes);
}

double CollectiveTime::law(double bytes) const {
  return collective_seconds(kind_, bytes, spread_, network_, calibration_);
}

}  // namespace harness::sim
