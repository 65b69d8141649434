#include "explain/reach.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/rank_classes.h"

namespace harness::explain {
namespace {

using program::AxisSet;

// Calls meet(members) for every set of ranks that communicates across nodes.
template <class Meet>
void each_circle(const program::ProgramSet& set, const std::vector<int>& node_of, const Meet& meet) {
  const program::Layout& layout = set.layout;
  const auto across = [&](const std::vector<int>& members) {
    return std::ranges::any_of(members, [&](int rank) { return node_of[rank] != node_of[members.front()]; });
  };
  for (const program::Group& group : set.groups) {
    if (group.axes == AxisSet::all()) continue;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const program::Coordinates at = layout.coordinates(rank);
      if (!group.begins_with(layout, at)) continue;
      if (const std::vector<int> members = group.members(layout, at); across(members)) meet(members);
    }
  }
  for (const auto& [axis, offset] : sim::directions_of(set)) {
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const std::vector<int> pair{rank, layout.neighbour(rank, axis, offset)};
      if (across(pair)) meet(pair);
    }
  }
}

// `place_of(rank)`: its node, or itself.
template <class PlaceOf>
std::vector<Reach> reaches(const program::ProgramSet& set, const std::vector<int>& node_of, const PlaceOf& place_of) {
  const auto ranks = static_cast<std::size_t>(set.layout.ranks());
  std::map<int, std::vector<bool>> by_place;
  each_circle(set, node_of, [&](const std::vector<int>& members) {
    std::set<int> places;
    for (const int rank : members) places.insert(place_of(rank));
    for (const int place : places) {
      std::vector<bool>& affected = by_place.try_emplace(place, ranks, false).first->second;
      for (const int rank : members) affected[static_cast<std::size_t>(rank)] = true;
    }
  });
  std::map<std::vector<bool>, std::vector<int>> alike;
  for (auto& [place, affected] : by_place) alike[std::move(affected)].push_back(place);
  std::vector<Reach> found;
  for (auto& [affected, places] : alike) found.push_back({std::move(places), affected});
  return found;
}

}  // namespace

std::vector<Reach> reach_of_nodes(const program::ProgramSet& set, const std::vector<int>& node_of) {
  return reaches(set, node_of, [&](int rank) { return node_of[static_cast<std::size_t>(rank)]; });
}

std::vector<Reach> reach_of_ranks(const program::ProgramSet& set, const std::vector<int>& node_of) {
  return reaches(set, node_of, [](int rank) { return rank; });
}

const Reach* best_fit(const std::vector<Reach>& reaches, const std::vector<double>& excess_s) {
  const Reach* best = nullptr;
  double most = 0;
  for (const Reach& reach : reaches) {
    double sum = 0;
    int ranks = 0;
    for (std::size_t rank = 0; rank < std::min(excess_s.size(), reach.affected.size()); ++rank) {
      if (!reach.affected[rank]) continue;
      sum += excess_s[rank];
      ++ranks;
    }
    // What the squares fall by where those affected are all longer by their mean.
    const double fall = sum > 0 && ranks > 0 ? sum * sum / ranks : 0;
    if (fall > most) {
      most = fall;
      best = &reach;
    }
  }
  return best;
}

}  // namespace harness::explain
