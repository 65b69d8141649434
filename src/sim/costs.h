#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/device_time.h"
#include "sim/engine.h"
#include "sim/faults.h"
#include "sim/link_time.h"

namespace harness::sim {

/// The costs of the operations of a job on one kind of GPU, in one software. The ranks of a class are in one condition.
/// A collective is as slow as the member with the least of the network, a message as the slower of its two ends.
class Costs {
 public:
  /// All of them must outlive the object.
  Costs(const RankClasses& classes, const Device& device, const Network& network,
        const config::Calibration& calibration, const config::Settings& settings, const Condition& condition);

  /// Throws Error if a link that it uses has no rate, and NotPredicted (sim/nccl_time.h) for settings of NCCL with
  /// which it ends.
  Cost operator()(int rank_class, program::OperationId id);

  /// The largest collective of those asked for so far; 0: none.
  double largest_message_bytes() const { return largest_message_bytes_; }

 private:
  bool adds_up_apart(const program::Program& program, const program::Operation& op) const;
  Cost cost_of(int rank_class, program::OperationId id);
  const std::vector<Cost>& paced(int rank_class);
  double computation_seconds(const program::Program& program, const program::Operation& op, const Device& device) const;
  double linear_seconds(const program::Program& program, const program::Operation& op, const program::Matmul& product,
                        double bytes, const Device& device) const;
  double ring_seconds(const program::AttentionShape& shape, bool backward, double alone_s, const Device& device) const;
  Cost communication_cost(int rank_class, const program::Operation& op);
  Cost collective_cost(int rank_class, const program::Operation& op, program::Collective kind);
  double message_seconds_to(int rank_class, const program::Peer& peer, double bytes);
  void require_links(bool within_node, bool between_nodes) const;
  const Spread& tensor_spread(int rank_class);
  const Spread& spread(int rank_class, program::GroupId group);

  const RankClasses& classes_;
  const Device& device_;
  const Network& network_;
  const config::Calibration& calibration_;
  const config::Settings& settings_;
  const Condition& condition_;
  const bool host_paces_;
  double largest_message_bytes_ = 0;
  int paced_class_ = -1;  // the class that was asked for last, and its costs: they are asked for class by class
  std::vector<Cost> paced_;
  std::map<std::pair<program::Collective, Spread>, CollectiveTime> collectives_;
  std::map<std::pair<int, program::GroupId>, Spread> spreads_;
  std::map<std::pair<program::Axis, int>, Senders> senders_;  // by axis and offset
};

}  // namespace harness::sim
