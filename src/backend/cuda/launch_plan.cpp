#include "backend/cuda/launch_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/share.h"
#include "program/happens_before.h"

namespace harness::cuda {
namespace {

using program::OperationId;
using program::View;

// Where the backward pass of a norm leaves sums over rows; absent: nowhere. Nothing of another operation.
std::optional<std::array<View, 3>> sums_of(const program::Action& action) {
  if (const auto* op = std::get_if<program::LayerNormBackward>(&action)) return {{op->dgamma, op->dbeta, op->dbias}};
  if (const auto* op = std::get_if<program::RmsNormBackward>(&action)) return {{op->dgamma, op->dbias, View{}}};
  return std::nullopt;
}

// Which second stages of norms may be done by a later one.
class Joiner {
 public:
  Joiner(const std::vector<program::Operation>& list, std::size_t streams) : list_(list), before_(list, streams) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      program::visit_accesses(list[i].action, [&](auto /*access*/, const View& view) {
        accesses_[view.buffer].push_back({static_cast<OperationId>(i), view});
      });
    }
  }

  void mark(std::vector<LaunchPlan>& plan) const {
    std::map<program::StreamId, std::vector<OperationId>> waiting;  // by stream; never more than one may complete
    for (const auto& entry : with_next()) {
      const OperationId id = entry.first, next = entry.second;
      std::vector<OperationId>& together = waiting[list_[id].stream];
      together.push_back(id);
      const bool may_wait = next >= 0 && together.size() < most_joined_sums &&
                            std::ranges::all_of(together, [&](OperationId own) { return completed_by(own, next); });
      plan[id].sums_later = may_wait;
      if (!may_wait) together.clear();
    }
  }

 private:
  struct Access {
    OperationId operation;
    View view;
  };

  // The backward pass of every norm with the next one of its stream, -1: none.
  std::vector<std::pair<OperationId, OperationId>> with_next() const {
    std::vector<std::pair<OperationId, OperationId>> pairs;
    std::map<program::StreamId, std::size_t> last;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const auto id = static_cast<OperationId>(i);
      if (!sums_of(list_[id].action)) continue;
      const auto [at, first] = last.try_emplace(list_[i].stream, pairs.size());
      if (!first) pairs[at->second].second = id;
      at->second = pairs.size();
      pairs.emplace_back(id, -1);
    }
    return pairs;
  }

  // Whether `later` may write the gradients of `own`: whoever accesses them came before `own` or comes after `later`.
  bool completed_by(OperationId own, OperationId later) const {
    return std::ranges::all_of(*sums_of(list_[own].action), [&](const View& gradient) {
      return !gradient.present() || untouched_between(own, later, gradient);
    });
  }

  bool untouched_between(OperationId own, OperationId later, const View& gradient) const {
    // Without a later access the buffer may have made room for another by then (program/arena.h).
    bool needed_later = false;
    for (const auto& [id, view] : accesses_.at(gradient.buffer)) {
      if (id == own || !overlap(view, gradient) || before_.ordered(id, list_[id].stream, own)) continue;
      if (!before_.ordered(later, list_[later].stream, id)) return false;
      needed_later = true;
    }
    return needed_later;
  }

  const std::vector<program::Operation>& list_;
  program::HappensBefore before_;
  std::map<program::BufferId, std::vector<Access>> accesses_;
};

// A captured launch may depend on the kernel ahead of it in this way, and on nothing else beside it: an edge from a
// copy or from a kernel of another stream is a full one. What a collective leaves at the end of its stream is NCCL's
// affair.
void mark_programmatic(const std::vector<program::Operation>& list, std::vector<LaunchPlan>& plan) {
  std::map<program::StreamId, const program::Operation*> ahead;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const program::Operation& op = list[i];
    const program::Operation* previous = std::exchange(ahead[op.stream], &op);
    const bool waits = std::ranges::any_of(op.waits, [&](OperationId w) { return list[w].stream != op.stream; });
    plan[i].programmatic = previous != nullptr && !waits && !program::is_communication(previous->action) &&
                           !program::is_communication(op.action);
  }
}

}  // namespace

std::vector<LaunchPlan> plan_launches(const std::vector<program::Operation>& list, std::size_t streams,
                                      int multiprocessors, bool programmatic) {
  std::vector<LaunchPlan> plan(list.size());
  const std::vector<int> shares = shares_of(list, streams, multiprocessors);
  for (std::size_t i = 0; i < list.size(); ++i) plan[i].multiprocessors = shares[i];
  Joiner(list, streams).mark(plan);
  if (programmatic) mark_programmatic(list, plan);
  return plan;
}

}  // namespace harness::cuda
