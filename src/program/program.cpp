#include "program/program.h"

#include <bit>
#include <type_traits>

#include "base/text.h"

namespace harness::program {

int role_of(const Layout& layout, AxisSet role_axes, const Coordinates& at) {
  int role = 0;
  for (auto axis = usual_order.rbegin(); axis != usual_order.rend(); ++axis) {
    if (role_axes.has(*axis)) role = role * layout[*axis] + at[*axis];
  }
  return role;
}

int ProgramSet::first_rank(int role) const {
  Coordinates at;
  for (const Axis axis : usual_order) {
    if (!role_axes.has(axis)) continue;
    at[axis] = role % layout[axis];
    role /= layout[axis];
  }
  return layout.rank(at);
}

std::string title(const Operation& op) {
  std::string text{name_of(op.action)};
  if (!op.label.what.empty() && op.label.what != text) text += fmt::format(" {}", op.label.what);
  if (op.label.layer >= 0) text += fmt::format(", layer {}", op.label.layer);
  if (op.label.micro_batch >= 0) text += fmt::format(", micro-batch {}", op.label.micro_batch);
  return text + fmt::format(", {}", name_of(op.label.phase));
}

namespace {

// FNV-1a over words. Long Programs are hashed for every case and on every rank; hashing their text would take longer
// than everything else done with them.
class Digest {
 public:
  std::uint64_t value = 0xcbf29ce484222325ull;

  template <class T>
  void add(const T& v) {
    if constexpr (HasMembers<T>) {
      each_member(v, [&](const auto& member) { add(member); });
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      value = fnv1a(v, value);
      add(std::string_view(v).size());
    } else if constexpr (std::is_floating_point_v<T>) {
      word(std::bit_cast<std::uint64_t>(static_cast<double>(v)));
    } else {
      word(static_cast<std::uint64_t>(v));
    }
  }
  void add(const View& v) {
    each(v.buffer, v.offset, v.count, v.parts);
    if (v.parts > 1) add(v.follows);
  }
  void add(const Label& l) { each(l.what, l.phase, l.micro_batch, l.layer, l.recomputed); }
  void add(const Operation& op) {
    each(name_of(op.action), op.stream, op.fused_group, op.label, op.waits.size());
    for (const OperationId w : op.waits) add(w);
    const auto operand = [&](Access access, const View& view) { each(access, view); };
    std::visit([&](const auto& a) { each_field(a, operand, [&](const auto& parameter) { add(parameter); }); },
               op.action);
  }
  void each(const auto&... values) { (add(values), ...); }

 private:
  // Folds in the upper half, which the lowest bits of a product would otherwise ignore.
  void word(std::uint64_t w) {
    value = (value ^ w) * 0x100000001b3ull;
    value ^= value >> 32;
  }
};

}  // namespace

std::uint64_t hash(const ProgramSet& set) {
  Digest digest;
  for (const int size : set.layout.size) digest.add(size);
  for (const Axis axis : set.layout.order) digest.add(axis);
  for (const Group& g : set.groups) {
    digest.each(g.name, g.axes.bits, g.pipeline_stages.size());
    for (const int stage : g.pipeline_stages) digest.add(stage);
    if (g.replicas != Replicas::all) digest.each(g.replicas, set.layout.replicas_of_node);
  }
  for (const Program& role : set.roles) {
    for (const std::string& stream : role.streams) digest.add(stream);
    for (const Buffer& b : role.buffers) digest.each(b.name, b.type, b.count, b.kind);
    for (const auto* list : {&role.init, &role.step}) {
      digest.add(list->size());
      for (const Operation& op : *list) digest.add(op);
    }
  }
  return digest.value;
}

}  // namespace harness::program
