#include "program/program.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace harness::program {

const char* name_of(BufferKind kind) {
  static constexpr std::array names{"persistent", "transient", "input", "output"};
  return names[static_cast<std::size_t>(kind)];
}

int role_of(const Layout& layout, AxisSet role_axes, const Coordinates& at) {
  int role = 0;
  for (int a = axis_count - 1; a >= 0; --a) {
    const Axis axis = static_cast<Axis>(a);
    if (role_axes.has(axis)) role = role * layout[axis] + at[axis];
  }
  return role;
}

int ProgramSet::first_rank(int role) const {
  Coordinates at;
  for (int a = 0; a < axis_count; ++a) {
    const Axis axis = static_cast<Axis>(a);
    if (!role_axes.has(axis)) continue;
    at[axis] = role % layout[axis];
    role /= layout[axis];
  }
  return layout.rank(at);
}

ProgramSet expand(const ProgramSet& set) {
  ProgramSet out{set.layout, set.groups, AxisSet::all(), {}};
  for (int rank = 0; rank < set.layout.ranks(); ++rank) {
    out.roles.push_back(set.roles.at(set.role_of(set.layout.coordinates(rank))));
  }
  return out;
}

std::string title(const Operation& op) {
  std::string text{name_of(op.action)};
  if (!op.label.what.empty() && op.label.what != text) text += fmt::format(" {}", op.label.what);
  if (op.label.layer >= 0) text += fmt::format(", layer {}", op.label.layer);
  if (op.label.micro_batch >= 0) text += fmt::format(", micro-batch {}", op.label.micro_batch);
  return text + fmt::format(", {}", name_of(op.label.phase));
}

namespace {

// The parameters of an action as text.
class ParameterText {
 public:
  std::string text;

  void add(const Shard& s) { each(s.axis, s.rows); }
  void add(const Peer& p) { each(p.axis, p.offset); }
  void add(const AttentionShape& s) {
    each(s.batch, s.heads, s.head_dim, s.query_length, s.key_length, s.query_stride, s.key_stride, s.causal);
  }
  template <class T>
  void add(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      fmt::format_to(std::back_inserter(text), " {}", static_cast<int>(value));
    } else {
      fmt::format_to(std::back_inserter(text), " {}", value);
    }
  }

 private:
  void each(const auto&... values) { (add(values), ...); }
};

}  // namespace

std::string describe(const Program& program, const Operation& op) {
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

std::uint64_t hash(const ProgramSet& set) {
  std::string head =
      fmt::format("{} {} {} {}", set.layout.size[0], set.layout.size[1], set.layout.size[2], set.layout.size[3]);
  for (const auto& g : set.groups) {
    head += fmt::format("|{} {}", g.name, g.axes.bits);
    for (const int s : g.pipeline_stages) head += fmt::format(" {}", s);
  }
  std::uint64_t h = fnv1a(head);
  for (const auto& role : set.roles) {
    for (const auto& s : role.streams) h = fnv1a(s, h);
    for (const auto& b : role.buffers) {
      h = fnv1a(fmt::format("{} {} {} {}", b.name, static_cast<int>(b.type), b.count, static_cast<int>(b.kind)), h);
    }
    for (const auto* list : {&role.init, &role.step}) {
      for (const auto& op : *list) h = fnv1a(describe(role, op), h);
      h = fnv1a(";", h);
    }
  }
  return h;
}

}  // namespace harness::program
