#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <type_traits>

#include "program/program.h"

namespace harness::program {

// The parameters of an action as text.
class ParameterText {
 public:
  std::string text;

  template <class T>
  void add(const T& value) {
    if constexpr (HasMembers<T>) {
      each_member(value, [&](const auto& member) { add(member); });
    } else if constexpr (std::is_enum_v<T>) {
      fmt::format_to(std::back_inserter(text), " {}", static_cast<int>(value));
    } else {
      fmt::format_to(std::back_inserter(text), " {}", value);
    }
  }
};

/// Returns one line with everything about an operation ("[compute] matmul qkv layer 3 mb 0 …"). Operations that differ
/// in any way have different lines.
inline std::string describe(const Program& program, const Operation& op) {
  ParameterText parameters;
  std::string views;
  const auto add_view = [&](Access access, const View& view) {
    if (!view.present()) return;
    const char letter = "rwu"[static_cast<int>(access)];
    fmt::format_to(std::back_inserter(views), " {}{}+{}:{}", letter, view.buffer, view.offset, view.count);
    if (view.parts > 1) fmt::format_to(std::back_inserter(views), " of {} by {}", view.parts, name_of(view.follows));
  };
  std::visit([&](const auto& a) { each_field(a, add_view, [&](const auto& value) { parameters.add(value); }); },
             op.action);
  std::string text = fmt::format("[{}] {} {} layer {} mb {} {}{}{}", program.streams.at(op.stream), name_of(op.action),
                                 op.label.what, op.label.layer, op.label.micro_batch, name_of(op.label.phase),
                                 op.label.recomputed ? " recomputed" : "", parameters.text);
  text += views;
  if (op.fused_group >= 0) text += fmt::format(" fused {}", op.fused_group);
  for (const OperationId w : op.waits) text += fmt::format(" after {}", w);
  return text;
}

}  // namespace harness::program
