#include "program/operation.h"

#include <array>
#include <type_traits>

namespace harness::program {

const char* name_of(Phase phase) {
  static constexpr std::array names{"setup", "forward", "backward", "gradient_sync", "optimizer", "finish"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(const Action& action) {
  return std::visit([](const auto& a) { return std::remove_cvref_t<decltype(a)>::name; }, action);
}

GroupId group_of(const Action& action) {
  return std::visit(
      [](const auto& a) -> GroupId {
        if constexpr (requires { a.group; }) return a.group;
        return -1;
      },
      action);
}

const Peer* peer_of(const Action& action) {
  return std::visit(
      [](const auto& a) -> const Peer* {
        if constexpr (requires { a.peer; }) return &a.peer;
        return nullptr;
      },
      action);
}

Transferred transferred_by(const Action& action) {
  return std::visit(
      [](const auto& a) -> Transferred {
        if constexpr (requires { a.peer; }) {
          return {a.data, a.data};
        } else if constexpr (requires { a.group; }) {
          if constexpr (requires { a.data; })
            return {a.in.present() ? a.in : a.data, a.data};
          else
            return {a.in, a.out};
        }
        return {};
      },
      action);
}

bool is_communication(const Action& action) {
  return group_of(action) >= 0 || peer_of(action) != nullptr;
}

Communicator communicator_of(const Layout& layout, const Action& action, int self, int partner) {
  if (const GroupId group = group_of(action); group >= 0) return {.group = group, .first = partner};
  const Peer& peer = *peer_of(action);
  const bool sends = std::holds_alternative<Send>(action);
  const int n = layout[peer.axis], as_sender = sends ? peer.offset : -peer.offset;
  return {.axis = peer.axis,
          .first = sends ? self : partner,
          .second = sends ? partner : self,
          .offset = (as_sender % n + n) % n};
}

}  // namespace harness::program
