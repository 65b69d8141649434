#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace harness::mpi {

/// The ranks of the job that have a worker, in the order in which a layout numbers them.
class Members {
 public:
  /// `ranks`: of the job, ascending; empty: the first `count`.
  Members(std::vector<int> ranks, int count) : listed_(std::move(ranks)), first_(listed_.empty() ? count : 0) {}
  explicit Members(int count) : first_(count) {}

  int size() const { return first_ + static_cast<int>(listed_.size()); }
  /// The rank of the job that has this number in the layout.
  int rank_of(int number) const { return listed_.empty() ? number : listed_.at(number); }
  /// The number that a rank of the job has in the layout; nothing if it has no worker.
  std::optional<int> number_of(int rank) const {
    if (listed_.empty()) return rank < first_ ? std::optional(rank) : std::nullopt;
    const auto at = std::ranges::lower_bound(listed_, rank);
    if (at == listed_.end() || *at != rank) return std::nullopt;
    return static_cast<int>(at - listed_.begin());
  }
  bool contains(int rank) const { return number_of(rank).has_value(); }

 private:
  std::vector<int> listed_;
  int first_ = 0;
};

}  // namespace harness::mpi
