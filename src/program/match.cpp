#include "program/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace harness::program {
namespace {

// A communication as its partners must agree on it.
struct Signature {
  std::string_view kind;
  std::int64_t count = 0;
  DType type = DType::f32;
  int reduction = 0;  // of a collective that reduces
  bool operator==(const Signature&) const = default;
};

std::string show(const Signature& s) {
  return fmt::format("{} of {} {}", s.kind, s.count, name_of(s.type));
}

// Whether the two ends of a message speak of the same one.
bool carries_the_same(const Label& a, const Label& b) {
  return a.what == b.what && a.phase == b.phase && a.micro_batch == b.micro_batch && a.layer == b.layer;
}

std::string carried(const Label& l) {
  std::string text = fmt::format("{} ({})", l.what.empty() ? "a message" : l.what, name_of(l.phase));
  if (l.micro_batch >= 0) text += fmt::format(" of micro-batch {}", l.micro_batch);
  if (l.layer >= 0) text += fmt::format(", layer {}", l.layer);
  return text;
}

// The communications of a role, in list order, and how far it has got.
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
          std::vector<Problem>& problems, std::size_t limit)
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

  Signature signature(int role, const Action& action) const {
    const View in = transferred_by(action).in;
    Signature s{name_of(action), in.count, set_.roles[role].buffer_of(in).type};
    const auto reduction = [&](const auto& a) {
      if constexpr (requires { a.reduction; }) s.reduction = static_cast<int>(a.reduction);
    };
    std::visit(reduction, action);
    return s;
  }

  // The roles that take part in a collective of this role, ascending, each once.
  std::vector<int> roles_of_group(int role, GroupId group) {
    auto& known = group_roles_[{role, group}];
    if (known.empty()) {
      const Coordinates at = set_.layout.coordinates(set_.first_rank(role));
      std::set<int> roles;
      // Only the role axes tell roles apart; walking those alone keeps this independent of the number of ranks.
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

  // Completes what can be completed of the role's pending communications; puts roles that moved on the work list.
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

  bool try_complete(int role, std::size_t slot, std::vector<int>& work) {
    const Operation& op = pending(role, slot);
    if (const GroupId group = group_of(op.action); group >= 0) return try_collective(role, slot, group, work);
    return try_point_to_point(role, slot, work);
  }

  bool try_collective(int role, std::size_t slot, GroupId group, std::vector<int>& work) {
    std::vector<std::pair<int, std::size_t>> slots;
    for (const int member : roles_of_group(role, group)) {
      const auto found = member == role ? slot : find_collective(member, group);
      if (found == none) return false;
      slots.emplace_back(member, found);
    }
    const Signature mine = signature(role, pending(role, slot).action);
    for (const auto& [member, at] : slots) {
      const Signature theirs = signature(member, pending(member, at).action);
      if (theirs == mine) continue;
      mismatch(member, at, role, slot,
               fmt::format("in group {}: {} meets {}", set_.groups[group].name, show(theirs), show(mine)));
      return false;
    }
    for (const auto& [member, at] : slots) complete(member, at, work, role);
    return true;
  }

  bool try_point_to_point(int role, std::size_t slot, std::vector<int>& work) {
    const Action& action = pending(role, slot).action;
    const Peer& peer = *peer_of(action);
    const int other = peer_role(role, peer);
    const Communicator wanted = communicator_of(set_.layout, action, role, other);
    RoleState& s = state(other);
    for (std::size_t k = s.at; k < s.end; ++k) {
      if (s.done[k - s.at]) continue;
      const Action& theirs = pending(other, k).action;
      const Peer* back = peer_of(theirs);
      if (back == nullptr || theirs.index() == action.index()) continue;  // a send meets a receive
      if (communicator_of(set_.layout, theirs, other, peer_role(other, *back)) != wanted) continue;
      Signature a = signature(role, action), b = signature(other, theirs);
      a.kind = b.kind = "message";
      if (a != b) {
        mismatch(other, k, role, slot, fmt::format("{} meets {}", show(b), show(a)));
        return false;
      }
      // Messages of one size between two ranks arrive in the order in which they were sent: which one a receive gets
      // shows only in what the two ends call it.
      const Label &mine = pending(role, slot).label, &of_other = pending(other, k).label;
      if (!carries_the_same(mine, of_other)) {
        mismatch(other, k, role, slot, fmt::format("{} meets {}", carried(of_other), carried(mine)));
        return false;
      }
      if (other == role) {
        // Both ends are this role's own: completing one may move the group on, so mark the pair together.
        s.done[k - s.at] = 1;
      } else {
        complete(other, k, work, role);
      }
      complete(role, slot, work, role);
      return true;
    }
    return false;
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t find_collective(int role, GroupId group) {
    RoleState& s = state(role);
    for (std::size_t k = s.at; k < s.end; ++k) {
      if (!s.done[k - s.at] && group_of(pending(role, k).action) == group) return k;
    }
    return none;
  }

  std::string name(int role, std::size_t slot) {
    return fmt::format("rank {}, {} operation {} ({})", set_.first_rank(role), which_, state(role).order[slot],
                       title(pending(role, slot)));
  }

  void mismatch(int role, std::size_t slot, int other, std::size_t other_slot, const std::string& what) {
    failed_ = true;
    if (problems_.size() >= limit_) return;
    problems_.push_back({set_.first_rank(role), state(role).order[slot],
                         fmt::format("{} does not match {}: {}", name(role, slot), name(other, other_slot), what)});
  }

  void report_stuck() {
    for (int role = 0; role < static_cast<int>(states_.size()); ++role) {
      RoleState& s = state(role);
      if (s.finished() || problems_.size() >= limit_) continue;
      std::size_t slot = s.at;
      while (s.done[slot - s.at]) ++slot;
      const Action& action = pending(role, slot).action;
      std::string whom;
      if (const GroupId group = group_of(action); group >= 0) {
        for (const int member : roles_of_group(role, group)) {
          if (member == role || find_collective(member, group) != none) continue;
          whom = standing(member);
          break;
        }
        whom = fmt::format("group {}, {}", set_.groups[group].name, whom);
      } else {
        whom = standing(peer_role(role, *peer_of(action)));
      }
      problems_.push_back({set_.first_rank(role), s.order[slot],
                           fmt::format("{} never ends: it waits for {}", name(role, slot), whom)});
    }
  }

  std::string standing(int role) {
    RoleState& s = state(role);
    if (s.finished()) return fmt::format("rank {}, which has no communication left", set_.first_rank(role));
    std::size_t slot = s.at;
    while (s.done[slot - s.at]) ++slot;
    return fmt::format("{}, which stands first there", name(role, slot));
  }

  const ProgramSet& set_;
  std::vector<Operation> Program::*list_;
  const char* which_;
  std::vector<Problem>& problems_;
  std::size_t limit_;
  bool failed_ = false;
  std::vector<RoleState> states_;
  std::map<std::pair<int, GroupId>, std::vector<int>> group_roles_;
};

}  // namespace

void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<Problem>& problems, std::size_t limit) {
  Matcher(set, list, which, problems, limit).run();
}

}  // namespace harness::program
