#include "program/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace harness::program {
namespace {

// The most nodes that the ranks of one group stand on, of groups along an axis that have two ranks or more.
int most_nodes(Axis axis, std::span<const Coordinates> at, std::span<const int> node_of) {
  std::map<std::array<int, axis_count>, std::vector<int>> groups;
  for (int rank = 0; rank < std::ssize(at); ++rank) {
    Coordinates group = at[rank];
    group[axis] = 0;
    groups[group.at].push_back(rank);
  }
  int most = 0;
  for (const auto& [group, ranks] : groups) {
    if (ranks.size() > 1) most = std::max(most, static_cast<int>(ranks_by_node(ranks, node_of).size()));
  }
  return most;
}

// Counts the groups of the first and the last pipeline stage.
int most_nodes_of_ends(std::span<const Coordinates> at, std::span<const int> node_of) {
  int last = 0;
  for (const Coordinates& c : at) last = std::max(last, c[Axis::pipeline]);
  std::vector<Coordinates> ends;
  std::vector<int> nodes_of_ends;
  for (std::size_t rank = 0; rank < at.size(); ++rank) {
    if (at[rank][Axis::pipeline] != 0 && at[rank][Axis::pipeline] != last) continue;
    ends.push_back(at[rank]);
    nodes_of_ends.push_back(node_of[rank]);
  }
  return most_nodes(Axis::pipeline, ends, nodes_of_ends);
}

}  // namespace

std::map<int, int> ranks_by_node(std::span<const int> ranks, std::span<const int> node_of) {
  std::map<int, int> on_node;
  for (const int rank : ranks) ++on_node[node_of[rank]];
  return on_node;
}

Spread spread_of(const Group& group, const Layout& layout, int rank, std::span<const int> node_of) {
  const std::vector<int> members = group.members(layout, layout.coordinates(rank));
  const std::map<int, int> on_node = ranks_by_node(members, node_of);
  Spread spread{static_cast<int>(members.size()), static_cast<int>(on_node.size()), 1, 1};
  for (const auto& [node, count] : on_node) spread.most_on_a_node = std::max(spread.most_on_a_node, count);
  if (spread.nodes == 1) return spread;
  // All ranks of a node that are in some instance of the group, whose instances are spread alike.
  std::set<int> first_members;
  for (int other = 0; other < layout.ranks(); ++other) {
    if (node_of[other] != node_of[rank]) continue;
    const std::vector<int> of_other = group.members(layout, layout.coordinates(other));
    if (!of_other.empty()) first_members.insert(of_other.front());
  }
  spread.instances_on_a_node = static_cast<int>(first_members.size());
  return spread;
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

bool leaves_node(const Layout& layout, std::span<const Group> groups, int rank, const Action& action,
                 std::span<const int> node_of) {
  std::vector<int> others;
  if (const GroupId id = group_of(action); id >= 0) {
    others = groups[id].members(layout, layout.coordinates(rank));
  } else if (const Peer* peer = peer_of(action)) {
    others.push_back(layout.neighbour(rank, peer->axis, peer->offset));
  }
  return std::ranges::any_of(others, [&](int other) { return node_of[other] != node_of[rank]; });
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
  for (std::size_t a = 0; a < axis_count; ++a) spans.nodes[a] = most_nodes(static_cast<Axis>(a), at, node_of);
  if (tied) spans.embedding = most_nodes_of_ends(at, node_of);
  return spans;
}

Spans spans_of(const Layout& layout, std::span<const int> node_of, bool tied) {
  std::vector<Coordinates> at;
  for (int rank = 0; rank < layout.ranks(); ++rank) at.push_back(layout.coordinates(rank));
  return spans_of(at, node_of, tied);
}

}  // namespace harness::program
