#include "sim/costs.h"

#include <algorithm>

#include "base/error.h"
#include "program/count.h"

namespace harness::sim {
namespace {

using program::Program;

double count_of(const program::AttentionShape& s) {
  return static_cast<double>(s.batch * s.heads) * static_cast<double>(s.query_length) *
         static_cast<double>(s.key_length);
}

std::optional<program::Collective> kind_of(const program::Action& action) {
  if (std::holds_alternative<program::AllReduce>(action)) return program::Collective::all_reduce;
  if (std::holds_alternative<program::AllToAll>(action)) return program::Collective::all_to_all;
  if (std::holds_alternative<program::ReduceScatter>(action)) return program::Collective::reduce_scatter;
  if (program::group_of(action) >= 0) return program::Collective::all_gather;  // a broadcast moves as much
  return std::nullopt;
}

}  // namespace

Costs::Costs(const RankClasses& classes, const Device& device, const Network& network,
             const config::Calibration& calibration, const Condition& condition)
    : classes_(classes), device_(device), network_(network), calibration_(calibration), condition_(condition) {}

Cost Costs::operator()(int rank_class, program::OperationId id) {
  const Program& program = classes_.program(rank_class);
  const program::Operation& op = program.step[id];
  const config::Software& software = calibration_.software;
  Cost cost;
  cost.host = ticks_of(software.host_s * (software.cost_of(op).host_operations + (adds_up_apart(program, op) ? 1 : 0)));
  if (program::is_communication(op.action)) {
    cost.alone = ticks_of(communication_seconds(rank_class, op));
    cost.takes = calibration_.taken_by_communication;
    cost.keeps = calibration_.kept_by_communication;
  } else {
    Device device = device_;
    device.flops *= condition_.clock_of(classes_.list()[rank_class].first_rank);
    cost.alone = ticks_of(computation_seconds(program, op, device));
  }
  return cost;
}

// Whether a kernel of its own adds the gradient of a weight to those of earlier micro-batches.
bool Costs::adds_up_apart(const Program& program, const program::Operation& op) const {
  const auto* product = std::get_if<program::Matmul>(&op.action);
  return product != nullptr && calibration_.software.accumulation_bytes > 0 && product->transpose_a &&
         program.buffer_of(product->out).type == program::DType::f32;
}

double Costs::computation_seconds(const Program& program, const program::Operation& op, const Device& device) const {
  const config::Software& software = calibration_.software;
  const double bytes = program::needed_bytes(program, op.action) * software.cost_of(op).bytes;
  if (const auto* product = std::get_if<program::Matmul>(&op.action)) {
    double seconds = product_seconds(product->m, product->n, product->k, 1, bytes, device, calibration_);
    if (adds_up_apart(program, op)) {
      const double parameters = static_cast<double>(product->m) * static_cast<double>(product->n);
      seconds += memory_seconds(software.accumulation_bytes * parameters, device, calibration_);
    }
    return seconds;
  }
  const auto attention = [&](const program::AttentionShape& s, bool backward, bool unfused) {
    if (!unfused) {
      return attention_seconds(program::flop_of(op.action).model, s.key_length, backward, device, calibration_);
    }
    // Over the full square: nothing of it is left out.
    const auto product = [&](std::int64_t n, std::int64_t k) {
      const double moved = 2 * static_cast<double>(s.batch * s.heads) *
                           static_cast<double>(s.query_length * n + s.query_length * k + n * k);
      return product_seconds(s.query_length, n, k, s.batch * s.heads, moved, device, calibration_);
    };
    const double pair_s = product(s.key_length, s.head_dim) + product(s.head_dim, s.key_length);
    const double each = backward ? software.score_bytes_backward : software.score_bytes_forward;
    const double copied = backward ? software.copies_backward : software.copies_forward;
    const double result = 2 * static_cast<double>(s.batch * s.heads * s.query_length * s.head_dim);
    return (backward ? 2 : 1) * pair_s + memory_seconds(each * count_of(s) + copied * result, device, calibration_);
  };
  if (const auto* a = std::get_if<program::Attention>(&op.action))
    return attention(a->shape, false, a->probabilities.present());
  if (const auto* a = std::get_if<program::AttentionBackward>(&op.action))
    return attention(a->shape, true, a->probabilities.present());
  return memory_seconds(bytes, device, calibration_);
}

double Costs::communication_seconds(int rank_class, const program::Operation& op) {
  const Program& program = classes_.program(rank_class);
  double bytes = program::message_bytes(program, op.action);
  if (const auto* send = std::get_if<program::Send>(&op.action))
    return message_seconds_to(rank_class, send->peer, bytes);
  if (const auto* receive = std::get_if<program::Receive>(&op.action)) {
    const program::Peer& peer = receive->peer;
    return message_seconds_to(classes_.at_peer(rank_class, peer), {peer.axis, -peer.offset}, bytes);
  }
  const program::Collective kind = *kind_of(op.action);
  if (const auto* sum = std::get_if<program::AllReduce>(&op.action);
      sum != nullptr && op.label.phase == program::Phase::gradient_sync) {
    const auto element = static_cast<double>(program::size_of(program.buffer_of(sum->data).type));
    bytes *= std::min(1.0, calibration_.software.gradient_bytes / element);
  }
  return collective_seconds(kind, bytes, spread(rank_class, program::group_of(op.action)), network_, calibration_);
}

// As the sender has it.
double Costs::message_seconds_to(int rank_class, const program::Peer& peer, double bytes) {
  const program::Layout& layout = classes_.set().layout;
  const int sender = classes_.list()[rank_class].first_rank;
  const auto known = senders_.try_emplace({peer.axis, peer.offset}, peer, layout, network_).first;
  const int senders = known->second.beside(sender);
  require_links(senders == 0, senders > 0);
  const int receiver = layout.neighbour(sender, peer.axis, peer.offset);
  const double share = std::min(condition_.network_of(sender), condition_.network_of(receiver));
  return message_seconds(bytes, senders, layout[program::Axis::tensor], network_, calibration_, share);
}

void Costs::require_links(bool within_node, bool between_nodes) const {
  if (between_nodes && !(network_.node_bytes_per_s > 0)) {
    fail(
        "the ranks stand on several nodes, and nothing says how fast a node's network is: add `fabric: {{node: 400 "
        "GB/s}}`");
  }
  if (within_node && !(network_.rank_bytes_per_s > 0))
    fail("ranks share a node, and nothing says how fast its GPUs are linked: add `fabric: {{rank: 450 GB/s}}`");
}

const Spread& Costs::spread(int rank_class, program::GroupId group) {
  const auto [known, fresh] = spreads_.try_emplace({rank_class, group});
  if (fresh) {
    const program::ProgramSet& set = classes_.set();
    const int rank = classes_.list()[rank_class].first_rank;
    const std::vector<int> members = set.groups[group].members(set.layout, set.layout.coordinates(rank));
    known->second = spread_of(set.groups[group], set.layout, members.front(), network_);  // the same for all of them
    for (const int member : members)
      known->second.network = std::min(known->second.network, condition_.network_of(member));
    require_links(known->second.most_on_a_node > 1, known->second.nodes > 1);
  }
  return known->second;
}

}  // namespace harness::sim
