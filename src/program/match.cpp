#include "program/program.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace harness::program {
namespace {

// A communication as its partners must agree on it. Messages of one size between two ranks arrive in the order in which
// they were sent, so only the labels at the two ends show which message a receive gets.
struct Signature {
  std::string_view kind;  // equal at both ends of a message
  std::int64_t count = 0;
  DType type = DType::f32;
  int reduction = 0;   // of a collective that reduces
  Label carries = {};  // of a message
  bool operator==(const Signature&) const = default;
};

std::string show(const Signature& s) {
  std::string text = fmt::format("{} of {} {}", s.kind, s.count, name_of(s.type));
  if (!s.carries.what.empty()) text += fmt::format(", {} ({})", s.carries.what, name_of(s.carries.phase));
  if (s.carries.micro_batch >= 0) text += fmt::format(" of micro-batch {}", s.carries.micro_batch);
  if (s.carries.layer >= 0) text += fmt::format(", layer {}", s.carries.layer);
  return text;
}

// The communications of a role, in list order, and its progress through them.
struct RoleState {
  std::vector<OperationId> order;
  std::size_t next = 0;              // the first that has not started
  std::vector<OperationId> pending;  // started and not done: a single one, or what is left of a fused group
};

class Matcher {
 public:
  Matcher(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
          std::vector<std::string>& problems)
      : set_(set), list_(list), which_(which), problems_(problems), states_(set.roles.size()) {}

  void run() {
    std::vector<int> work;
    for (int role = static_cast<int>(states_.size()) - 1; role >= 0; --role) {
      for (OperationId id = 0; std::cmp_less(id, ops(role).size()); ++id) {
        if (is_communication(ops(role)[id].action)) states_[role].order.push_back(id);
      }
      begin_next(role);
      work.push_back(role);
    }
    while (!work.empty()) {
      const int role = work.back();
      work.pop_back();
      advance(role, work);
      if (failed_) return;
    }
    report_stuck();
  }

 private:
  const std::vector<Operation>& ops(int role) const { return set_.roles[role].*list_; }

  // Starts the next communication of a role, with the others of its fused group.
  void begin_next(int role) {
    RoleState& s = states_[role];
    const auto joins = [&](const Operation& op) {
      const Operation& first = ops(role)[s.pending.front()];
      return first.fused_group >= 0 && op.fused_group == first.fused_group && op.stream == first.stream;
    };
    while (s.next < s.order.size() && (s.pending.empty() || joins(ops(role)[s.order[s.next]])))
      s.pending.push_back(s.order[s.next++]);
  }

  Signature signature(int role, const Operation& op) const {
    const View in = transferred_by(op.action).in;
    Signature s{name_of(op.action), in.count, set_.roles[role].buffer_of(in).type};
    if (peer_of(op.action) != nullptr) {
      s.kind = "message";
      s.carries = op.label;
    }
    const auto reduction = [&](const auto& a) {
      if constexpr (requires { a.reduction; }) s.reduction = static_cast<int>(a.reduction);
    };
    std::visit(reduction, op.action);
    return s;
  }

  // The roles that take part in a collective of this role, ascending, each once.
  std::vector<int> roles_of_group(int role, GroupId group) {
    auto& known = group_roles_[{role, group}];
    if (known.empty()) {
      const Coordinates at = set_.layout.coordinates(set_.first_rank(role));
      std::set<int> roles;
      // Only the role axes tell roles apart; walking only those makes this independent of the number of ranks.
      Group narrowed = set_.groups[group];
      narrowed.axes.bits &= set_.role_axes.bits;
      for (const int rank : narrowed.members(set_.layout, at))
        roles.insert(set_.role_of(set_.layout.coordinates(rank)));
      known.assign(roles.begin(), roles.end());
    }
    return known;
  }

  int peer_role(int role, const Peer& peer) const {
    return set_.role_of(set_.layout.coordinates(set_.layout.neighbour(set_.first_rank(role), peer.axis, peer.offset)));
  }

  // Completes the role's pending communications as far as possible; puts roles that moved on the work list.
  void advance(int role, std::vector<int>& work) {
    const auto completes = [&](OperationId id) { return failed_ || try_complete(role, id, work); };
    while (!failed_ && std::ranges::any_of(std::vector(states_[role].pending), completes)) {
    }
  }

  void complete(int role, OperationId id, std::vector<int>& work, int self) {
    std::vector<OperationId>& pending = states_[role].pending;
    std::erase(pending, id);
    if (!pending.empty()) return;
    begin_next(role);
    if (role != self) work.push_back(role);
  }

  // Returns the roles that a communication meets: the others of a group, or the other end of a message (even itself).
  std::vector<int> others(int role, const Action& action) {
    if (const Peer* peer = peer_of(action)) return {peer_role(role, *peer)};
    std::vector<int> roles = roles_of_group(role, group_of(action));
    std::erase(roles, role);
    return roles;
  }

  // Returns the pending communication of another role that meets this one; -1: none.
  OperationId partner(int other, int role, const Action& action) {
    const auto meets = [&](const Action& theirs) {
      const Peer* back = peer_of(theirs);
      if (group_of(action) >= 0 || back == nullptr) return group_of(action) == group_of(theirs);
      return theirs.index() != action.index() &&  // a send meets a receive
             communicator_of(set_.layout, theirs, other, peer_role(other, *back)) ==
                 communicator_of(set_.layout, action, role, other);
    };
    const std::vector<OperationId>& pending = states_[other].pending;
    const auto found = std::ranges::find_if(pending, [&](OperationId id) { return meets(ops(other)[id].action); });
    return found == pending.end() ? -1 : *found;
  }

  bool try_complete(int role, OperationId id, std::vector<int>& work) {
    const Operation& op = ops(role)[id];
    std::vector<std::pair<int, OperationId>> met;
    for (const int other : others(role, op.action)) {
      met.emplace_back(other, partner(other, role, op.action));
      if (met.back().second < 0) return false;
    }
    const Signature mine = signature(role, op);
    for (const auto& [other, at] : met) {
      const Signature theirs = signature(other, ops(other)[at]);
      if (theirs == mine) continue;
      failed_ = true;
      report(other, at, fmt::format("does not match {}: {} meets {}", name(role, id), show(theirs), show(mine)));
      return false;
    }
    for (const auto& [other, at] : met) complete(other, at, work, role);
    complete(role, id, work, role);
    return true;
  }

  std::string name(int role, OperationId id) const {
    return fmt::format("rank {}, {} operation {} ({})", set_.first_rank(role), which_, id, title(ops(role)[id]));
  }

  void report(int role, OperationId id, const std::string& what) {
    problems_.push_back(fmt::format("{} {}", name(role, id), what));
  }

  void report_stuck() {
    for (int role = 0; role < std::ssize(states_); ++role) {
      if (states_[role].pending.empty()) continue;
      const OperationId first = states_[role].pending.front();
      const Action& action = ops(role)[first].action;
      std::vector<int> missing = others(role, action);
      std::erase_if(missing, [&](int other) { return partner(other, role, action) >= 0; });
      report(role, first, "never ends: it waits for " + standing(missing.empty() ? role : missing.front()));
    }
  }

  std::string standing(int role) const {
    const std::vector<OperationId>& pending = states_[role].pending;
    if (pending.empty()) return fmt::format("rank {}, which has no communication left", set_.first_rank(role));
    return fmt::format("{}, which stands first there", name(role, pending.front()));
  }

  const ProgramSet& set_;
  std::vector<Operation> Program::*list_;
  const char* which_;
  std::vector<std::string>& problems_;
  bool failed_ = false;
  std::vector<RoleState> states_;
  std::map<std::pair<int, GroupId>, std::vector<int>> group_roles_;
};

}  // namespace

void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<std::string>& problems) {
  Matcher(set, list, which, problems).run();
}

}  // namespace harness::program
