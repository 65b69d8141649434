#include "sim/marks.h"

#include <map>
#include <tuple>
#include <variant>

namespace harness::sim {
namespace {

// Makes each rank's number finer by what `key_of` says of it.
template <class Key, class KeyOf>
void refine(std::vector<int>& marks, KeyOf key_of) {
  std::map<std::pair<int, Key>, int> numbers;
  for (int rank = 0; std::cmp_less(rank, marks.size()); ++rank) {
    const std::pair<int, Key> key{marks[rank], key_of(rank)};
    marks[rank] = numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
  }
}

// By rank, of the instance that it is in.
std::vector<program::Spread> spreads_of(const program::Group& group, const program::Layout& layout,
                                        const Network& network) {
  std::vector<program::Spread> spreads(layout.ranks());
  std::vector<bool> known(layout.ranks());
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (known[rank]) continue;
    const std::vector<int> members = group.members(layout, layout.coordinates(rank));
    if (members.empty()) continue;
    const program::Spread spread = program::spread_of(group, layout, members.front(), network.node_of);
    for (const int member : members) {
      spreads[member] = spread;
      known[member] = true;
    }
  }
  return spreads;
}

}  // namespace

std::set<std::pair<program::Axis, int>> directions_of(const program::ProgramSet& set) {
  std::set<std::pair<program::Axis, int>> directions;
  for (const program::Program& program : set.roles) {
    for (const program::Operation& op : program.step) {
      if (const auto* send = std::get_if<program::Send>(&op.action))
        directions.emplace(send->peer.axis, send->peer.offset);
    }
  }
  return directions;
}

std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition) {
  const program::Layout& layout = set.layout;
  std::vector<int> marks(layout.ranks(), 0);
  refine<std::pair<double, double>>(
      marks, [&](int rank) { return std::pair(condition.clock_of(rank), condition.network_of(rank)); });
  for (const program::Group& group : set.groups) {
    const std::vector<program::Spread> spreads = spreads_of(group, layout, network);
    refine<std::tuple<int, int, int>>(marks, [&](int rank) {
      const program::Spread& s = spreads[rank];
      return std::tuple(s.nodes, s.most_on_a_node, s.instances_on_a_node);
    });
  }
  for (const auto& [axis, offset] : directions_of(set)) {
    const Senders senders({axis, offset}, layout, network);
    refine<int>(marks, [&](int rank) { return senders.beside(rank); });
  }
  return marks;
}

}  // namespace harness::sim
