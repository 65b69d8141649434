#pragma once

#include <optional>
#include <vector>

#include "config/settings.h"
#include "doctor/facts.h"
#include "program/layout.h"

namespace harness::doctor {

/// A round of a tournament of nodes: of `nodes` nodes from `first` on, each meets the one `distance` further or before,
/// all at once. A multiple of twice the distance, so that nobody is left over.
struct PairRound {
  int distance = 1, first = 0, nodes = 2;
  bool operator==(const PairRound&) const = default;
};
/// The first rounds let every node meet one other; further ones let it meet others, near and far, so that a slow node
/// can be told from a slow link. At most `max_rounds`.
std::vector<PairRound> pair_rounds(int nodes, int max_rounds);

/// One block whose groups communicate all at once, each on its own.
struct Together {
  std::vector<int> ranks;  // of the job, ascending
  program::Layout layout;
  config::CollectiveOver over{};
};

/// The first ranks of all nodes, as many on each, and how a layout finds them: by the way in which a launcher numbers
/// ranks, node by node or in turn.
class RankGrid {
 public:
  /// Nothing where ranks are numbered in neither way.
  static std::optional<RankGrid> of(const std::vector<Node>& nodes);

  int nodes() const { return static_cast<int>(ranks_.size()); }
  int of_node() const { return static_cast<int>(ranks_.front().size()); }
  /// Of the job: the `local`-th on a node.
  int rank(int node, int local) const { return ranks_.at(node).at(local); }

  /// Each node's ranks are a group. Needs two on each.
  Together in_nodes() const;
  /// Each rank and the one of the same place on the other node of its pair are a group.
  Together in_pairs(const PairRound& round) const;
  /// The number that a rank has in such a block: its place among the samples. `first`, `count`: the nodes of the block.
  std::size_t number(int node, int local, int first, int count) const;

 private:
  std::vector<int> chosen(int first, int count) const;

  std::vector<std::vector<int>> ranks_;  // by node, then by place on it
  bool node_by_node_ = true;
};

}  // namespace harness::doctor
