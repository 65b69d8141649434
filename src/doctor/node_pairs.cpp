#include "doctor/node_pairs.h"

#include <algorithm>

namespace harness::doctor {

std::vector<PairRound> pair_rounds(int nodes, int max_rounds) {
  std::vector<int> distances;
  for (int d = 1; 2 * d <= nodes; d *= 2) distances.push_back(d);
  std::vector<PairRound> rounds;
  // The nearest first, then the farthest, the second nearest, …
  for (std::size_t near = 0, far = distances.size(), turn = 0; near < far; ++turn) {
    const int d = turn % 2 == 0 ? distances[near++] : distances[--far];
    const int count = nodes - nodes % (2 * d);
    rounds.push_back({d, 0, count});
    if (count < nodes) rounds.push_back({d, nodes - count, count});
  }
  if (std::ssize(rounds) > max_rounds) rounds.resize(static_cast<std::size_t>(max_rounds));
  return rounds;
}

std::optional<RankGrid> RankGrid::of(const std::vector<Node>& nodes) {
  RankGrid grid;
  std::size_t fewest = nodes.empty() ? 0 : nodes.front().ranks.size();
  for (const Node& node : nodes) fewest = std::min(fewest, node.ranks.size());
  if (fewest == 0) return std::nullopt;
  for (const Node& node : nodes) {
    std::vector<int>& ranks = grid.ranks_.emplace_back();
    for (std::size_t i = 0; i < fewest; ++i) ranks.push_back(node.ranks[i].rank);
  }
  const std::vector<int> all = grid.chosen(0, grid.nodes());
  const auto fits = [&](bool node_by_node) {
    grid.node_by_node_ = node_by_node;
    for (int node = 0; node < grid.nodes(); ++node) {
      for (int local = 0; local < grid.of_node(); ++local) {
        if (all[grid.number(node, local, 0, grid.nodes())] != grid.rank(node, local)) return false;
      }
    }
    return true;
  };
  if (!fits(true) && !fits(false)) return std::nullopt;
  return grid;
}

std::size_t RankGrid::number(int node, int local, int first, int count) const {
  const int place = node - first;
  return static_cast<std::size_t>(node_by_node_ ? place * of_node() + local : local * count + place);
}

std::vector<int> RankGrid::chosen(int first, int count) const {
  std::vector<int> all;
  for (int node = first; node < first + count; ++node) all.insert(all.end(), ranks_[node].begin(), ranks_[node].end());
  std::ranges::sort(all);
  return all;
}

Together RankGrid::in_nodes() const {
  if (node_by_node_)
    return {chosen(0, nodes()),
            {{program::Axis::tensor, of_node()}, {program::Axis::data, nodes()}},
            config::CollectiveOver::tensor};
  return {chosen(0, nodes()),
          {{program::Axis::tensor, nodes()}, {program::Axis::data, of_node()}},
          config::CollectiveOver::data};
}

// The data axis separates numbers that are `distance` nodes apart; the tensor axis takes what lies between them.
Together RankGrid::in_pairs(const PairRound& round) const {
  const int between = round.distance * (node_by_node_ ? of_node() : 1);
  program::Layout layout{{program::Axis::tensor, between}, {program::Axis::data, 2}};
  layout[program::Axis::pipeline] = round.nodes * of_node() / (2 * between);
  return {chosen(round.first, round.nodes), layout, config::CollectiveOver::data};
}

}  // namespace harness::doctor
