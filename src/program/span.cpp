#include "program/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace harness::program {
namespace {

// The most nodes that the ranks of one group stand on, of groups along an axis that have two ranks or more.
int most_nodes(Axis axis, std::span<const Coordinates> at, std::span<const int> node_of) {
  using Place = std::pair<std::array<int, axis_count>, int>;  // of a rank: its group and its node
  std::vector<Place> places;
  for (std::size_t rank = 0; rank < at.size(); ++rank) {
    Coordinates group = at[rank];
    group[axis] = 0;
    places.emplace_back(group.at, node_of[rank]);
  }
  std::ranges::sort(places);
  int most = 0;
  for (auto first = places.begin(); first != places.end();) {
    const auto end = std::find_if(first, places.end(), [&](const Place& p) { return p.first != first->first; });
    if (end - first > 1) {
      int nodes = 1;
      for (auto p = first + 1; p != end; ++p) nodes += p->second != (p - 1)->second ? 1 : 0;
      most = std::max(most, nodes);
    }
    first = end;
  }
  return most;
}

// The same of the groups of the first and the last pipeline stage.
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
  for (const Axis axis : told_axes) {
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
