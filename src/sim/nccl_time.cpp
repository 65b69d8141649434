#include "sim/link_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/text.h"
#include "nccl/values.h"

namespace harness::sim {
namespace {

using program::Collective;

// In the order of NCCL's numbers (nccl/values.h): among equals, it chooses the first.
enum class NcclAlgorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

using ByProtocol = std::array<double, 3>;
constexpr std::array<ByProtocol, 7> base_us{
    {{6.8, 14, 8.4}, {6.6, 14, 8.4}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {8, 8, 8}}};
// Latency of a step over NVLink and over the network.
constexpr std::array<ByProtocol, 7> nvlink_us{
    {{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}}};
constexpr std::array<ByProtocol, 7> network_us{
    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// By generation (Volta, Ampere, Hopper, Blackwell), on 1, 2 and more nodes: GB/s, per channel but for LL.
using ByNodes = std::array<double, 3>;
constexpr std::array<ByNodes, 4> ll_most{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr std::array<ByNodes, 4> ring_ll128_most{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr std::array<ByNodes, 4> tree_ll128_most{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr std::array<ByNodes, 4> tree_most{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr std::array<ByNodes, 4> nvls_tree_most{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
constexpr std::array<double, 4> nvls_share{0, 0, 0.85, 0.74};
// The usable share of an NVLink link's 25 or 50 GB/s by the data sheet.
constexpr std::array<double, 4> link_share{20.0 / 25, 20.0 / 25, 20.6 / 25, 40.1 / 50};
constexpr double share_of_adapter = 12.0 / 12.5;  // NET_BW: 12 GB/s of 100 Gbit/s
constexpr double network_overhead_us = 1;         // per step, three times as much with Simple

// Factors on a tree's bandwidth, for messages of 64 B, 128 B and so on.
constexpr std::array<std::array<double, 23>, 3> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

std::size_t generation_of(int capability) {
  if (capability >= 100) return 3;
  if (capability >= 90) return 2;
  return capability >= 80 ? 1 : 0;
}

// Returns the speed of a channel within a node, GB/s: the fastest that NCCL's search tries and the links carry
// `channels` times.
double channel_speed(std::size_t generation, double links, int channels) {
  static constexpr std::array any{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0};
  static constexpr std::array hopper{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
  static constexpr std::array blackwell{90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0};
  static constexpr std::array<std::span<const double>, 4> speeds{any, any, hopper, blackwell};
  for (const double speed : speeds[generation]) {
    if (speed * channels <= links) return speed;
  }
  return links / channels;
}

// Channels of rings within a node, as in NCCL's logs on DGX machines, before NCCL doubles them.
constexpr std::array<int, 4> ring_channels{6, 12, 12, 16};

constexpr double giga = 1e9;

bool is_collnet(NcclAlgorithm a) {
  return a == NcclAlgorithm::collnet_direct || a == NcclAlgorithm::collnet_chain;
}

// Returns how many network cards of a node carry a group.
int cards_of(const Spread& group, const Network& network) {
  const int cards = group.most_on_a_node * std::max(1, network.nics_of_node / std::max(1, network.ranks_of_node));
  return network.nics_of_node > 0 ? std::min(cards, network.nics_of_node) : cards;
}

// A group and the links that it has to itself.
class NcclCommunicator {
 public:
  NcclCommunicator(const Spread& group, const Network& network)
      : n_(group.ranks),
        nodes_(group.nodes),
        on_node_(std::max(1, group.ranks / group.nodes)),
        generation_(generation_of(network.compute_capability)),
        column_(std::min(group.nodes, 3) - 1),
        has_nvls_(network.nvswitch && nvls_share[generation_] > 0),
        has_nvswitch_(network.nvswitch),
        has_sharp_(network.network_reduces),
        within_(network.rank_bytes_per_s / giga * link_share[generation_]),
        between_(group.nodes == 1 ? 0 : network_rate(group, network) * group.network / giga * share_of_adapter),
        channels_(group.nodes == 1 ? ring_channels[generation_] : std::max(1, cards_of(group, network))) {}

  double channel_most() const { return tree_most[generation_][0] * giga; }
  // Returns the number of thread blocks: NCCL doubles the channels that its search finds.
  int blocks(NcclAlgorithm algorithm) const {
    constexpr int with_nvls = 16;
    return algorithm == NcclAlgorithm::nvls ? with_nvls : 2 * channels_;
  }

  bool can(Collective kind, NcclAlgorithm a, NcclProtocol p) const {
    const bool all_reduce = kind == Collective::all_reduce, simple = p == NcclProtocol::simple;
    switch (a) {
      case NcclAlgorithm::ring:
        return true;
      case NcclAlgorithm::tree:
        return all_reduce;
      case NcclAlgorithm::collnet_direct:
        return simple && all_reduce && has_sharp_ && has_nvswitch_ && nodes_ > 1;
      case NcclAlgorithm::collnet_chain:
        return simple && all_reduce && has_sharp_ && nodes_ > 1;
      case NcclAlgorithm::nvls:
        return simple && has_nvls_ && nodes_ == 1 && on_node_ > 1;
      case NcclAlgorithm::nvls_tree:
        return simple && has_nvls_ && all_reduce && nodes_ > 1 && on_node_ > 1;
      case NcclAlgorithm::pat:
        return simple && !all_reduce && nodes_ == n_;
    }
    return false;
  }

  double seconds(Collective kind, double bytes, NcclAlgorithm a, NcclProtocol p) const {
    double bytes_per_s = giga * bus(kind, a, p) * converted(kind, a);
    if (a == NcclAlgorithm::tree) {
      const auto size = static_cast<int>(std::floor(std::log2(std::max(bytes / 64, 1.0))));
      if (size < std::ssize(tree_correction[0]))
        bytes_per_s *= tree_correction[static_cast<std::size_t>(p)][static_cast<std::size_t>(size)];
    }
    double us = latency_us(kind, a, p);
    const bool plateau = a == NcclAlgorithm::ring && p == NcclProtocol::simple && kind == Collective::all_reduce &&
                         nodes_ > 1 && bytes / (2.0 * channels_ * n_) >= 64;
    if (plateau) us *= generation_ == 0 ? 1.9 : 1.4;
    return us * 1e-6 + bytes / bytes_per_s;
  }

 private:
  // GB/s over each link, all channels together.
  double ring_bus() const {
    const int channels = ring_channels[generation_];
    const double inside = channels * channel_speed(generation_, within_, channels);
    if (nodes_ == 1) return inside;
    return on_node_ == 1 ? between_ : std::min(between_, inside);
  }

  double bus(Collective kind, NcclAlgorithm a, NcclProtocol p) const {
    const bool all_reduce = kind == Collective::all_reduce;
    const double ring = ring_bus(), channels = channels_;
    const double ll = ll_most[nodes_ == 1 ? generation_ : 0][column_];
    if (a == NcclAlgorithm::ring) {
      if (p == NcclProtocol::ll) return std::min(ll, ring / 2);
      if (p == NcclProtocol::ll128) return std::min(0.92 * ring, channels * ring_ll128_most[generation_][column_]);
      return ring;
    }
    if (a == NcclAlgorithm::tree) {
      const double tree = std::min(0.92 * ring, channels * tree_most[generation_][column_]);
      if (p == NcclProtocol::ll) return std::min(tree / 3.8, ll);
      if (p == NcclProtocol::ll128) {
        return std::min(tree * (nodes_ == 1 ? 7.0 / 9 : 120.0 / 128), channels * tree_ll128_most[generation_][column_]);
      }
      return tree;
    }
    if (a == NcclAlgorithm::pat) return 0.75 * ring;
    if (is_collnet(a)) {
      // A channel's links within the node may be twice as fast as its card (src/graph/search.cc): each byte crosses the
      // network once. In the direct form, with more ranks than channels, a head serves several ranks.
      const double both = on_node_ == 1 ? 2 * between_ : std::min(2 * between_, within_);
      if (a == NcclAlgorithm::collnet_chain) return both;
      const double ranks_of_head = on_node_ / channels;
      return both / (ranks_of_head - (ranks_of_head - 1) / 2) * (generation_ >= 2 ? 0.85 : 1);
    }
    // Each rank of a node has a channel and reduces its part of the message in the switches.
    const double heads = on_node_, others = (heads - 1) / heads;
    const double of_all_reduce = all_reduce ? 2 : others;
    const double inside =
        channel_speed(generation_, within_, on_node_) * nvls_share[generation_] * others * of_all_reduce;
    if (a == NcclAlgorithm::nvls) return heads * inside;
    const double outside = between_ / heads * (nodes_ <= 2 ? 2 : 1);
    return heads * std::min({inside, outside, nvls_tree_most[generation_][column_]});
  }

  // Converts link bandwidth to message bandwidth.
  double converted(Collective kind, NcclAlgorithm a) const {
    if (a == NcclAlgorithm::tree || is_collnet(a)) return 0.5;
    if (kind == Collective::all_reduce) return n_ / (2.0 * (n_ - 1));
    return a == NcclAlgorithm::ring ? n_ / (n_ - 1.0) : 1;
  }

  double latency_us(Collective kind, NcclAlgorithm a, NcclProtocol p) const {
    const auto of = [p](const std::array<ByProtocol, 7>& table, NcclAlgorithm algorithm) {
      return table[static_cast<std::size_t>(algorithm)][static_cast<std::size_t>(p)];
    };
    const double base = of(base_us, a), log_nodes = std::floor(std::log2(nodes_));
    double inside = of(nvlink_us, a);
    const double outside = of(network_us, on_node_ == 1 ? NcclAlgorithm::tree : a);
    const int passes = kind == Collective::all_reduce ? 2 : 1;
    switch (a) {
      case NcclAlgorithm::ring: {
        const double times = p == NcclProtocol::simple ? 3 : 1;
        if (nodes_ > 1) inside = std::max(inside, network_overhead_us * times);
        const int steps = passes * (n_ - 1), between = passes * (nodes_ - 1);
        return base + (steps - between) * inside + between * outside;
      }
      case NcclAlgorithm::tree:
        return base + 2 * ((on_node_ - 1) * inside + log_nodes * outside);
      case NcclAlgorithm::collnet_direct:
        return base + 2 * (std::min(1, on_node_ - 1) * inside + (on_node_ - 1) * 0.4) + outside;
      case NcclAlgorithm::collnet_chain:
        return base + 2 * (on_node_ - 1) * inside + outside;
      case NcclAlgorithm::nvls:
        return inside;
      case NcclAlgorithm::nvls_tree:
        return base + inside + 2 * log_nodes * outside;
      case NcclAlgorithm::pat:
        return base + log_nodes * outside / 3.5 + 2.8 * n_;
    }
    return base;
  }

  int n_, nodes_, on_node_;
  std::size_t generation_, column_;
  bool has_nvls_, has_nvswitch_, has_sharp_;
  double within_, between_;
  int channels_;
};

struct Choice {
  double seconds = std::numeric_limits<double>::infinity();
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
};

const char* function_of(Collective kind) {
  if (kind == Collective::all_reduce) return "AllReduce";
  return kind == Collective::reduce_scatter ? "ReduceScatter" : "AllGather";
}

std::string value_of(const config::Settings& s, const char* name) {
  const auto found = s.nccl.find(name);
  return found == s.nccl.end() ? "default" : found->second;
}

// The choices that NCCL has for one kind of collective.
struct Allowed {
  std::vector<NcclAlgorithm> algorithms;  // in NCCL's order
  std::vector<NcclProtocol> protocols;
};

// Returns the indices of `names` in `all`.
template <class Value>
std::vector<Value> numbered(const std::vector<std::string>& names, nccl::Elements all) {
  std::vector<Value> values;
  for (const std::string& name : names)
    values.push_back(static_cast<Value>(std::ranges::find(all, name) - all.begin()));
  return values;
}

Allowed allowed_for(Collective kind, const std::string& algorithms, const std::string& protocols) {
  const char* function = function_of(kind);
  return {
      numbered<NcclAlgorithm>(nccl::choices_of(algorithms, nccl::algorithm_names).at(function), nccl::algorithm_names),
      numbered<NcclProtocol>(nccl::choices_of(protocols, nccl::protocol_names).at(function), nccl::protocol_names)};
}

// Removes the algorithms that the settings turn off: NVLS in NVLink switches, CollNet in network switches.
void leave_out_switches(Allowed& allowed, bool nvls, bool collnet) {
  std::erase_if(allowed.algorithms, [&](NcclAlgorithm a) {
    const bool in_nvlink = a == NcclAlgorithm::nvls || a == NcclAlgorithm::nvls_tree;
    return (in_nvlink && !nvls) || (is_collnet(a) && !collnet);
  });
}

// Returns the fastest choice; among equals the first, in NCCL's order.
Choice choose(Collective kind, double bytes, const NcclCommunicator& communicator, const Allowed& allowed) {
  Choice best;
  for (const NcclAlgorithm a : allowed.algorithms) {
    for (const NcclProtocol p : allowed.protocols) {
      if (!communicator.can(kind, a, p)) continue;
      const double seconds = communicator.seconds(kind, bytes, a, p);
      if (seconds < best.seconds) best = {seconds, a};
    }
  }
  return best;
}

}  // namespace

double least_step_seconds(bool between_nodes) {
  const auto quickest = [](const std::array<ByProtocol, 7>& table) {
    return std::ranges::min(table[static_cast<std::size_t>(NcclAlgorithm::ring)]) * 1e-6;
  };
  return quickest(between_nodes ? network_us : nvlink_us);
}

NcclEffects nccl_effects(Collective kind, const Spread& group, const Network& network,
                         const config::Settings& settings) {
  if (settings.nccl.empty() || group.ranks < 2 || kind == Collective::all_to_all || kind == Collective::send_recv)
    return {};
  const NcclCommunicator communicator(group, network);
  const std::string algorithms = value_of(settings, "nccl_algo"), protocols = value_of(settings, "nccl_proto");
  const bool collnet = value_of(settings, "nccl_collnet") == "true";
  Allowed own = allowed_for(kind, "default", "default"), forced = allowed_for(kind, algorithms, protocols);
  const bool may_be_collnet = std::ranges::any_of(forced.algorithms, is_collnet);
  leave_out_switches(own, true, false);
  leave_out_switches(forced, value_of(settings, "nccl_nvls") != "0", collnet);
  if (collnet && kind == Collective::all_reduce && group.nodes > 1 && !network.network_reduces && may_be_collnet) {
    throw NotPredicted(
        "nccl_collnet needs switches between nodes that add up (SHARP): where they do, write `sharp: true` into `node` "
        "of a hardware file of your own");
  }
  if (!std::isfinite(choose(kind, 1, communicator, forced).seconds)) {
    throw NotPredicted(fmt::format("NCCL ends with an error: nccl_algo {} and nccl_proto {} leave it nothing for an {}",
                                   algorithms, protocols, function_of(kind)),
                       fmt::format("of {} on {}{}", plural(group.ranks, "rank"), plural(group.nodes, "node"),
                                   may_be_collnet ? " (CollNet needs nccl_collnet: true, and two nodes)" : ""));
  }
  const auto limit = [&](const char* name, int otherwise) {
    const std::string value = value_of(settings, name);
    return value == "default" ? otherwise : std::stoi(value);
  };
  const int fewest = limit("nccl_min_ctas", 1), most = limit("nccl_max_ctas", 64), ranks = group.ranks;
  return [=](double bytes) -> NcclEffect {
    const Choice usual = choose(kind, bytes, communicator, own), chosen = choose(kind, bytes, communicator, forced);
    const int blocks = std::min(std::max(communicator.blocks(chosen.algorithm), fewest), most);
    // Fewer blocks than wanted move less, each at most a channel's rate. Where switches reduce, a byte crosses once.
    const int passes = kind == Collective::all_reduce ? 2 : 1;
    const double moved = is_collnet(chosen.algorithm) ? bytes : passes * (ranks - 1.0) / ranks * bytes;
    const double least_s = moved / (blocks * communicator.channel_most());
    return {std::max(chosen.seconds, least_s) / usual.seconds,
            static_cast<double>(blocks) / communicator.blocks(usual.algorithm)};
  };
}

}  // namespace harness::sim
