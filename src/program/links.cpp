#include "program/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "program/count.h"

namespace harness::program {
namespace {

// Returns the number of these ranks on each node.
std::map<int, int> ranks_by_node(std::span<const int> ranks, std::span<const int> node_of) {
  std::map<int, int> on_node;
  for (const int rank : ranks) ++on_node[node_of[rank]];
  return on_node;
}

// Returns the largest number of nodes that the ranks of one group span, over groups along an axis with two ranks or
// more. Counts only ranks that are `in` a group.
int most_nodes(Axis axis, std::span<const Coordinates> at, std::span<const int> node_of, const auto& in) {
  std::map<std::array<int, axis_count>, std::vector<int>> groups;
  for (int rank = 0; rank < std::ssize(at); ++rank) {
    Coordinates group = at[rank];
    if (!in(group)) continue;
    group[axis] = 0;
    groups[group.at].push_back(rank);
  }
  int most = 0;
  for (const auto& [group, ranks] : groups) {
    if (ranks.size() > 1) most = std::max(most, static_cast<int>(ranks_by_node(ranks, node_of).size()));
  }
  return most;
}

// For a message of 1 byte, over all groups.
struct NodeTraffic {
  double most = 0;      // bytes that leave one node
  bool spans = false;   // some group has members on several nodes
  bool shares = false;  // some node has several members of a group
};

NodeTraffic node_traffic(Collective kind, const Group& group, const Layout& layout, std::span<const int> node_of,
                         bool switches_reduce) {
  NodeTraffic traffic;
  std::map<int, double> sent;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Coordinates first = layout.coordinates(rank);
    if (!group.begins_with(layout, first)) continue;  // each instance once
    const std::vector<int> members = group.members(layout, first);
    const std::map<int, int> here = ranks_by_node(members, node_of);
    traffic.shares = traffic.shares || here.size() < members.size();
    if (here.size() < 2) continue;
    traffic.spans = true;
    if (kind == Collective::send_recv) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        const int from = node_of[members[i]], to = node_of[members[(i + 1) % members.size()]];
        if (from != to) sent[from] += 1;
      }
      continue;
    }
    const auto n = static_cast<double>(members.size());
    for (const auto& [at, count] : here) {
      sent[at] += kind == Collective::all_to_all ? count * (n - count) / n
                                                 : share_sent(kind, static_cast<double>(here.size()), switches_reduce);
    }
  }
  for (const auto& [node, bytes] : sent) traffic.most = std::max(traffic.most, bytes);
  return traffic;
}

}  // namespace

double share_sent(Collective kind, double parts, bool switches_reduce) {
  const double once = (parts - 1) / parts;
  if (kind == Collective::send_recv) return 1;
  if (kind != Collective::all_reduce) return once;
  return switches_reduce ? std::min(1.0, 2 * once) : 2 * once;
}

std::vector<Spread> spreads_of(const Group& group, const Layout& layout, std::span<const int> node_of) {
  std::vector<Spread> spreads(layout.ranks());
  std::vector<std::vector<int>> instances;
  std::map<int, int> leaving;  // instances by node; those that stay within it do not use its network
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (!group.begins_with(layout, layout.coordinates(rank))) continue;
    const std::vector<int>& members = instances.emplace_back(group.members(layout, layout.coordinates(rank)));
    const std::map<int, int> on_node = ranks_by_node(members, node_of);
    Spread spread{static_cast<int>(members.size()), static_cast<int>(on_node.size()), 1, 1};
    for (const auto& [node, count] : on_node) {
      spread.most_on_a_node = std::max(spread.most_on_a_node, count);
      if (spread.nodes > 1) ++leaving[node];
    }
    for (const int member : members) spreads[member] = spread;
  }
  for (const std::vector<int>& members : instances) {
    int& most = spreads[members.front()].instances_on_a_node;
    for (const int member : members) most = std::max(most, spreads[member].nodes > 1 ? leaving[node_of[member]] : 1);
    for (const int member : members) spreads[member].instances_on_a_node = most;
  }
  return spreads;
}

int replicas_of_node(const Layout& layout, std::span<const int> node_of) {
  const int replicas = layout[Axis::data];
  const auto node = [&](Coordinates at, int replica) {
    at[Axis::data] = replica;
    return node_of[layout.rank(at)];
  };
  int together = 1;
  while (together < replicas && node({}, together) == node({}, 0)) ++together;
  if (replicas % together != 0) return Layout::uneven;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Coordinates at = layout.coordinates(rank);
    const int here = at[Axis::data], next = here + 1;
    const bool ends = next % together == 0;
    if (next < replicas && (node(at, here) == node(at, next)) == ends) return Layout::uneven;
  }
  return together;
}

std::string Spans::text() const {
  std::vector<std::string> words;
  for (const Axis axis : visible_axes) {
    if ((*this)[axis] > 0) words.push_back(fmt::format("{} {}", name_of(axis), (*this)[axis]));
  }
  if (embedding > 0) words.push_back(fmt::format("embedding {}", embedding));
  return fmt::format("{}", fmt::join(words, ", "));
}

Spans spans_of(std::span<const Coordinates> at, std::span<const int> node_of, bool tied) {
  Spans spans;
  int last_stage = 0;
  for (const Coordinates& c : at) last_stage = std::max(last_stage, c[Axis::pipeline]);
  const auto all = [](const Coordinates& /*c*/) { return true; };
  const auto ends = [&](const Coordinates& c) { return c[Axis::pipeline] == 0 || c[Axis::pipeline] == last_stage; };
  for (std::size_t a = 0; a < axis_count; ++a) spans.nodes[a] = most_nodes(static_cast<Axis>(a), at, node_of, all);
  if (tied) spans.embedding = most_nodes(Axis::pipeline, at, node_of, ends);
  return spans;
}

double sent_bytes(const ProgramSet& set, const Program& program, const Action& action) {
  if (std::holds_alternative<Receive>(action)) return 0;
  const std::optional<Collective> kind = collective_of(action);
  const double parts = kind ? set.groups.at(group_of(action)).size(set.layout) : 0;
  return message_bytes(program, action) * (kind ? share_sent(*kind, parts) : 1);
}

std::optional<Collective> collective_of(const Action& action) {
  if (std::holds_alternative<AllReduce>(action)) return Collective::all_reduce;
  if (std::holds_alternative<AllGather>(action)) return Collective::all_gather;
  if (std::holds_alternative<ReduceScatter>(action)) return Collective::reduce_scatter;
  if (std::holds_alternative<AllToAll>(action)) return Collective::all_to_all;
  return std::nullopt;
}

double least_seconds_per_byte(Collective kind, const Group& group, const Layout& layout, std::span<const int> node_of,
                              const Links& links) {
  const NodeTraffic nodes = node_traffic(kind, group, layout, node_of, links.switches_reduce_network);
  double seconds = 0;
  if (nodes.spans) {
    if (links.node_bytes_per_s == 0) return 0;
    seconds = nodes.most / links.node_bytes_per_s;
  }
  // A rank may send to its node or beyond it, so both rates add up.
  const double n = group.size(layout);
  const double rank_bytes = share_sent(kind, n, links.switches_reduce_nodes);
  const double rank_rate = links.rank_bytes_per_s + (nodes.spans ? links.node_bytes_per_s : 0);
  if (nodes.shares) {
    if (links.rank_bytes_per_s == 0 && !nodes.spans) return 0;
    if (links.rank_bytes_per_s > 0) seconds = std::max(seconds, rank_bytes / rank_rate);
  }
  return seconds;
}

double LeastTimes::seconds(int role, const Operation& operation) {
  const Action& action = operation.action;
  if (!is_communication(action)) return 0;
  const Communicator communicator = communicator_of(set_.layout, action, role, 0);
  const auto [known, fresh] = per_byte_.try_emplace({action.index(), communicator}, 0.0);
  if (fresh) {
    const Peer* peer = peer_of(action);  // the way back takes as long
    known->second = peer != nullptr
                        ? of_peers(role, *peer)
                        : least_seconds_per_byte(collective_of(action).value(), set_.groups[group_of(action)],
                                                 set_.layout, node_of_, links_);
  }
  return known->second * message_bytes(set_.roles[role], action);
}

double LeastTimes::of_peers(int role, const Peer& peer) const {
  const auto node = [&](int rank) { return node_of_[rank]; };
  std::map<int, int> crossing;  // ranks by node whose peer is on another
  bool within = false;
  for (int rank = 0; rank < set_.layout.ranks(); ++rank) {
    if (set_.role_of(set_.layout.coordinates(rank)) != role) continue;
    const bool crosses = node(rank) != node(set_.layout.neighbour(rank, peer.axis, peer.offset));
    if (crosses) ++crossing[node(rank)];
    within = within || !crosses;
  }
  if ((within && links_.rank_bytes_per_s == 0) || (!crossing.empty() && links_.node_bytes_per_s == 0)) return 0;
  double seconds = within ? 1 / links_.rank_bytes_per_s : 0;
  for (const auto& [from, ranks] : crossing) seconds = std::max(seconds, ranks / links_.node_bytes_per_s);
  return seconds;
}

}  // namespace harness::program
