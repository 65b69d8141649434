#include "program/program.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace harness {

const char* name_of(BufferKind kind) {
  static constexpr std::array names{"persistent", "transient", "input", "output"};
  return names[static_cast<std::size_t>(kind)];
}

int ProgramSet::role_of(const Coordinates& at) const {
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
    out.roles.push_back(set.roles.at(static_cast<std::size_t>(set.role_of(set.layout.coordinates(rank)))));
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

// Everything about an action that is not a view, in a fixed order.
struct Parameters {
  std::string text;
  template <class T>
  void add(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      fmt::format_to(std::back_inserter(text), " {}", static_cast<int>(value));
    } else {
      fmt::format_to(std::back_inserter(text), " {}", value);
    }
  }
  void shape(const AttentionShape& s) {
    add(s.batch), add(s.heads), add(s.head_dim), add(s.query_length), add(s.key_length), add(s.query_stride);
    add(s.key_stride), add(s.causal);
  }
  template <class A>
  void of(const A& a) {
    if constexpr (requires { a.rows; }) add(a.rows);
    if constexpr (requires { a.width; }) add(a.width);
    if constexpr (requires { a.vocab; }) add(a.vocab);
    if constexpr (requires { a.sequence; }) add(a.sequence);
    if constexpr (requires { a.shard; }) add(a.shard.axis), add(a.shard.rows);
    if constexpr (requires { a.m; }) {
      add(a.m), add(a.n), add(a.k), add(a.transpose_a), add(a.transpose_b), add(a.epilogue);
    }
    if constexpr (requires { a.accumulate; }) add(a.accumulate);
    if constexpr (requires { a.accumulate_positions; }) add(a.accumulate_positions);
    if constexpr (requires { a.shape; }) shape(a.shape);
    if constexpr (requires { a.loss_scale; }) add(a.loss_scale), add(a.gradient_scale);
    if constexpr (requires { a.reduction; }) add(a.reduction);
    if constexpr (requires { a.group; }) add(a.group);
    if constexpr (requires { a.root; }) add(a.root);
    if constexpr (requires { a.peer; }) add(a.peer.axis), add(a.peer.offset);
    if constexpr (requires { a.first_index; }) {
      add(a.first_index), add(a.axis), add(a.outer), add(a.full), add(a.part), add(a.inner), add(a.mean);
      add(a.deviation);
    }
    if constexpr (std::is_same_v<A, Fill>) add(a.value);
    if constexpr (std::is_same_v<A, AdamW>) add(a.beta1), add(a.beta2), add(a.epsilon), add(a.weight_decay);
    if constexpr (std::is_same_v<A, LayerNorm>) add(a.epsilon);
  }
};

struct Lister {
  std::string& text;
  void list(char mode, const View& v) {
    fmt::format_to(std::back_inserter(text), " {}{}+{}:{}", mode, v.buffer, v.offset, v.count);
  }
  void read(const View& v) { list('r', v); }
  void write(const View& v) { list('w', v); }
  void update(const View& v) { list('u', v); }
};

}  // namespace

std::string describe(const Program& program, const Operation& op) {
  Parameters parameters;
  std::visit([&](const auto& a) { parameters.of(a); }, op.action);
  std::string text =
      fmt::format("[{}] {} {} layer {} mb {} {}{}{}", program.streams.at(static_cast<std::size_t>(op.stream)),
                  name_of(op.action), op.label.what, op.label.layer, op.label.micro_batch, name_of(op.label.phase),
                  op.label.recomputed ? " recomputed" : "", parameters.text);
  Lister lister{text};
  visit_accesses(op.action, lister);
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

}  // namespace harness
