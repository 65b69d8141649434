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

bool is_point_to_point(const Action& action) {
  return std::holds_alternative<Send>(action) || std::holds_alternative<Receive>(action);
}

bool is_communication(const Action& action) {
  return group_of(action) >= 0 || is_point_to_point(action);
}

}  // namespace harness::program
