#include "program/program.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

  auto all() const {
    return std::tuple(kind, count, type, reduction, carries.what, carries.phase, carries.micro_batch, carries.layer);
  }
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
  std::size_t at = 0;      // first of the pending ones
  std::size_t end = 0;     // one past the pending ones (a fused group, or a single one)
  std::vector<char> done;  // of the pending ones
  bool finished() const { return at >= order.size(); }
};

class Matcher {
 public:
  Matcher(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
          std::vector<std::string>& problems, std::size_t limit)
      : set_(set), list_(list), which_(which), problems_(problems), limit_(limit) {}

  void run() {
    const int roles = static_cast<int>(set_.roles.size());
    states_.resize(roles);
    for (int r = 0; r < roles; ++r) {
      const auto& ops = set_.roles[r].*list_;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (is_communication(ops[i].action)) state(r).order.push_back(static_cast<OperationId>(i));
      }
      begin_next(r);
    }
    std::vector<int> work;
    for (int r = roles - 1; r >= 0; --r) work.push_back(r);
    while (!work.empty()) {
      const int role = work.back();
      work.pop_back();
      advance(role, work);
      if (failed_) return;
    }
    report_stuck();
  }

 private:
  RoleState& state(int role) { return states_[role]; }
  const std::vector<Operation>& ops(int role) const { return set_.roles[role].*list_; }
  const Operation& pending(int role, std::size_t slot) { return ops(role)[state(role).order[slot]]; }

  void begin_next(int role) {
    RoleState& s = state(role);
    s.end = s.at;
    if (!s.finished()) {
      s.end = s.at + 1;
      const Operation& first = pending(role, s.at);
      while (first.fused_group >= 0 && s.end < s.order.size() &&
             pending(role, s.end).fused_group == first.fused_group && pending(role, s.end).stream == first.stream) {
        ++s.end;
      }
    }
    s.done.assign(s.end - s.at, 0);
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
    bool moved = true;
    while (moved && !state(role).finished() && !failed_) {
      moved = false;
      for (std::size_t slot = state(role).at; slot < state(role).end && !moved; ++slot) {
        if (state(role).done[slot - state(role).at]) continue;
        moved = try_complete(role, slot, work);
        if (failed_) return;
      }
    }
  }

  void complete(int role, std::size_t slot, std::vector<int>& work, int self) {
    RoleState& s = state(role);
    s.done[slot - s.at] = 1;
    if (std::all_of(s.done.begin(), s.done.end(), [](char d) { return d != 0; })) {
      s.at = s.end;
      begin_next(role);
      if (role != self) work.push_back(role);
    }
  }

  // Returns the roles that a communication meets: the others of a group, or the other end of a message (even itself).
  std::vector<int> others(int role, const Action& action) {
    if (const Peer* peer = peer_of(action)) return {peer_role(role, *peer)};
    std::vector<int> roles = roles_of_group(role, group_of(action));
    std::erase(roles, role);
    return roles;
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // Returns the pending communication of another role that meets this one.
  std::size_t partner(int other, int role, const Action& action) {
    const auto meets = [&](const Action& theirs) {
      const Peer* back = peer_of(theirs);
      if (group_of(action) >= 0 || back == nullptr) return group_of(action) == group_of(theirs);
      return theirs.index() != action.index() &&  // a send meets a receive
             communicator_of(set_.layout, theirs, other, peer_role(other, *back)) ==
                 communicator_of(set_.layout, action, role, other);
    };
    const RoleState& s = state(other);
    for (std::size_t k = s.at; k < s.end; ++k) {
      if (!s.done[k - s.at] && meets(pending(other, k).action)) return k;
    }
    return none;
  }

  bool try_complete(int role, std::size_t slot, std::vector<int>& work) {
    const Operation& op = pending(role, slot);
    std::vector<std::pair<int, std::size_t>> met;
    for (const int other : others(role, op.action)) {
      met.emplace_back(other, partner(other, role, op.action));
      if (met.back().second == none) return false;
    }
    const Signature mine = signature(role, op);
    for (const auto& [other, at] : met) {
      const Signature theirs = signature(other, pending(other, at));
      if (theirs.all() == mine.all()) continue;
      failed_ = true;
      report(other, at, fmt::format("does not match {}: {} meets {}", name(role, slot), show(theirs), show(mine)));
      return false;
    }
    // If a role meets itself, its pending communications stay until both ends are done.
    for (const auto& [other, at] : met) complete(other, at, work, role);
    complete(role, slot, work, role);
    return true;
  }

  std::string name(int role, std::size_t slot) {
    return fmt::format("rank {}, {} operation {} ({})", set_.first_rank(role), which_, state(role).order[slot],
                       title(pending(role, slot)));
  }

  void report(int role, std::size_t slot, const std::string& what) {
    if (problems_.size() >= limit_) return;
    problems_.push_back(fmt::format("{} {}", name(role, slot), what));
  }

  std::size_t first_open(int role) {
    const RoleState& s = state(role);
    return s.at + (std::ranges::find(s.done, 0) - s.done.begin());
  }

  void report_stuck() {
    for (int role = 0; role < static_cast<int>(states_.size()); ++role) {
      if (state(role).finished()) continue;
      const std::size_t slot = first_open(role);
      const Action& action = pending(role, slot).action;
      std::vector<int> missing = others(role, action);
      std::erase_if(missing, [&](int other) { return partner(other, role, action) != none; });
      report(role, slot, "never ends: it waits for " + standing(missing.empty() ? role : missing.front()));
    }
  }

  std::string standing(int role) {
    if (state(role).finished()) return fmt::format("rank {}, which has no communication left", set_.first_rank(role));
    return fmt::format("{}, which stands first there", name(role, first_open(role)));
  }

  const ProgramSet& set_;
  std::vector<Operation> Program::*list_;
  const char* which_;
  std::vector<std::string>& problems_;
  std::size_t limit_;
  bool failed_ = false;
  std::vector<RoleState> states_;
  std::map<std::pair<int, GroupId>, std::vector<int>> group_roles_;
};

}  // namespace

void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<std::string>& problems, std::size_t limit) {
  Matcher(set, list, which, problems, limit).run();
}

}  // namespace harness::program
