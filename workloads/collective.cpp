#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "program/count.h"
#include "workloads/operations.h"

namespace harness::workloads {
namespace {

// By config::CollectiveOver: the axes along which a group's members differ, and the stream of the collective.
struct OverRow {
  AxisSet axes;
  StreamId stream;
};
const OverRow& row_of(config::CollectiveOver over) {
  static const std::array rows{
      OverRow{AxisSet::all(), world_stream}, OverRow{AxisSet::of({Axis::tensor}), tensor_stream},
      OverRow{AxisSet::of({Axis::data}), data_stream}, OverRow{AxisSet::of({Axis::pipeline}), pipeline_stream}};
  static_assert(rows.size() == static_cast<std::size_t>(config::CollectiveOver::pipeline) + 1);
  return rows[static_cast<std::size_t>(over)];
}

// Axis of a ring: over the world, the only axis with more than one rank.
Axis axis_of(config::CollectiveOver over, const Layout& layout) {
  for (const Axis axis : {Axis::tensor, Axis::data, Axis::pipeline}) {
    if (row_of(over).axes.has(axis) && layout[axis] > 1) return axis;
  }
  return Axis::data;
}

// In place, a rank's part of the whole depends on its number in the group, so ranks differ.
bool has_own_part(const Settings& s) {
  return s.in_place &&
         (s.collective == config::CollectiveKind::all_gather || s.collective == config::CollectiveKind::reduce_scatter);
}

// Makes the buffers and operations of one repetition on one rank. `member`: its number in the group, which is group 0.
std::vector<Action> actions_of(ProgramBuilder& b, const Settings& s, Axis axis, int members, int member) {
  constexpr GroupId group = 0;
  const DType type = element_type(s);
  const std::int64_t count = s.message_bytes / program::size_of(type), part = count / members;
  // An in-place sum starts from its last result: starting at zero, it stays finite however often it repeats.
  const bool grows = s.collective == config::CollectiveKind::all_reduce && s.in_place;
  const auto buffer = [&](const char* name, std::int64_t elements) {
    const View made = b.buffer(name, type, elements, BufferKind::persistent);
    b.emit(compute_stream, program::Fill{made, grows ? 0.0 : 1.0}, {"message", Phase::setup});
    return made;
  };
  const bool is_result =
      s.collective == config::CollectiveKind::all_reduce || s.collective == config::CollectiveKind::all_gather;
  const View whole = buffer(is_result ? "out" : "in", count), own = whole.part(member * part, part);
  switch (s.collective) {
    case config::CollectiveKind::all_reduce:
      return {program::AllReduce{group, whole, program::Reduction::sum, s.in_place ? View{} : buffer("in", count)}};
    case config::CollectiveKind::reduce_scatter:
      return {program::ReduceScatter{group, whole, s.in_place ? own : buffer("out", part)}};
    case config::CollectiveKind::all_gather:
      return {program::AllGather{group, s.in_place ? own : buffer("in", part), whole}};
    case config::CollectiveKind::all_to_all:
      return {program::AllToAll{group, whole, buffer("out", count)}};
    case config::CollectiveKind::send_recv:
      break;
  }
  return {program::Send{{axis, +1}, whole}, program::Receive{{axis, -1}, buffer("out", count)}};
}

// Whether a rank's part of the message is the whole message.
bool takes_whole(config::CollectiveKind kind) {
  return kind == config::CollectiveKind::all_reduce || kind == config::CollectiveKind::send_recv;
}

std::string check_size(const Settings& s, int members) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 60;  // two buffers and their rounding stay within 64 bits
  if (s.message_bytes > most_bytes)
    return fmt::format("message_size {} is too large: no buffer is as large", print_bytes_exact(s.message_bytes));
  const bool whole = takes_whole(s.collective);
  const std::int64_t element = program::size_of(element_type(s)), unit = element * (whole ? 1 : members);
  if (s.message_bytes % unit == 0) return "";
  const std::int64_t below = s.message_bytes / unit * unit;
  std::string nearest = print_bytes_exact(below + unit);
  if (below > 0) nearest = fmt::format("{} or {}", print_bytes_exact(below), nearest);
  const std::string parts = whole ? "a number of elements" : fmt::format("{} equal parts of elements", members);
  return fmt::format("message_size {} is not {} of {} B each; nearest that is: {}", print_bytes_exact(s.message_bytes),
                     parts, element, nearest);
}

// In place, each repetition adds to the last result. An all-reduce multiplies it by the number of ranks; beyond the
// exponent range of f32 and bf16 there would be nothing left to check. A reduce-scatter adds 1 (collective_check.cpp),
// and bf16 counts to 256.
std::string check_growth(const Settings& s, int members) {
  constexpr double max_doublings = 240;
  constexpr int max_bf16_additions = 250;
  const double doublings = std::log2(members);
  if (!s.in_place) return "";
  if (s.collective == config::CollectiveKind::all_reduce && doublings * s.repetitions > max_doublings) {
    return fmt::format(
        "{} sums in place over {} ranks exceed what a float holds; at most {} repetitions, or in_place: false",
        s.repetitions, members, static_cast<int>(max_doublings / doublings));
  }
  const bool rounds = s.collective == config::CollectiveKind::reduce_scatter && element_type(s) == DType::bf16;
  if (!rounds || s.repetitions <= max_bf16_additions) return "";
  return fmt::format("{} sums in place exceed what bf16 tells apart; at most {} repetitions, or in_place: false",
                     s.repetitions, max_bf16_additions);
}

struct Sent {
  std::string over, operation;
  std::int64_t bytes = 0;
  auto operator<=>(const Sent&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

Sent sent_by(const Settings& s) {
  return {config::find_variable("collective_over")->print(s), config::find_variable("collective")->print(s),
          s.message_bytes};
}

// Name in terms of collective_over: the embedding's group is part of the pipeline axis, and the group of gathered
// weights is the data axis. collective_over has no name for a group that joins only part of an axis by node.
std::string over_of(const Group& group) {
  if (group.replicas != program::Replicas::all) return group.name == "nodes" ? group.name : group.name + " on a node";
  for (const Axis axis : program::usual_order) {
    if (group.axes == AxisSet::of({axis})) return program::name_of(axis);
  }
  return group.name;
}

// Returns every message of the step between ranks.
std::vector<std::pair<Sent, Label>> messages_of(const ProgramSet& set) {
  std::vector<std::pair<Sent, Label>> messages;
  for (const Program& program : set.roles) {
    for (const Operation& op : program.step) {
      const auto bytes = static_cast<std::int64_t>(program::message_bytes(program, op.action));
      if (const auto* send = std::get_if<program::Send>(&op.action)) {
        messages.push_back({{program::name_of(send->peer.axis), "send_recv", bytes}, op.label});
      } else if (const GroupId id = program::group_of(op.action); id >= 0) {
        const Group& group = set.groups.at(id);
        if (group.size(set.layout) < 2) continue;
        messages.push_back({{over_of(group), std::string(program::name_of(op.action)), bytes}, op.label});
      }
    }
  }
  return messages;
}

class CollectiveWorkload : public Workload {
 public:
  std::string_view name() const override { return "collective"; }

  std::string why_impossible_on(const Model&, const Settings& s, const Layout& layout) const override {
    const int members = collective_group(s).size(layout);
    const bool world = s.collective_over == config::CollectiveOver::world;
    if (members < 2) {
      return fmt::format("a collective over {} of one rank sends nothing; give {}",
                         config::find_variable("collective_over")->print(s),
                         world ? "the job 2 ranks or more" : "another layout");
    }
    if (s.collective == config::CollectiveKind::send_recv && world) {
      const auto axes = std::ranges::count_if(layout.size, [](int size) { return size > 1; });
      if (axes > 1) return "send_recv goes along one axis of the layout; collective_over: tensor, data or pipeline";
    }
    const std::string why = check_size(s, members);
    return why.empty() ? check_growth(s, members) : why;
  }

  ProgramSet programs(const Model&, const Settings& s, const Layout& layout) const override {
    ProgramSet set;
    set.layout = layout;
    const Group group = collective_group(s);
    if (s.collective_over != config::CollectiveOver::world) set.groups.push_back(group);
    set.groups.push_back({"world", AxisSet::all(), {}});
    const auto world = static_cast<GroupId>(set.groups.size() - 1);
    const int members = group.size(layout);
    if (has_own_part(s)) set.role_axes = group.axes;
    const int roles = has_own_part(s) ? members : 1;
    for (int member = 0; member < roles; ++member) {
      ProgramBuilder b = step_builder();
      StepFrame frame(b, world, "share");
      const std::vector<Action> actions = actions_of(b, s, axis_of(s.collective_over, layout), members, member);
      const Label label{"message", Phase::forward};
      set.roles.push_back(repeated(b, frame, s, layout, row_of(s.collective_over).stream, actions, label));
    }
    return set;
  }

  std::unique_ptr<OutputCheck> output_check(const Settings& s, const Layout& layout, const Coordinates& at,
                                            const Program& program) const override {
    return collective_check(s, layout, at, program);
  }

  Rate rate(const Settings& s, const Layout& layout) const override {
    const int members = collective_group(s).size(layout);
    const std::int64_t elements = s.message_bytes / program::size_of(element_type(s));
    return {config::find_variable("collective")->print(s), s.repetitions, static_cast<double>(s.message_bytes),
            program::share_sent(s.collective, members), takes_whole(s.collective) ? elements : elements / members};
  }

  std::vector<std::string> values_from_model(const ProgramSet& set, const Settings& s) const override {
    const Sent wanted = sent_by(s);
    std::set<Sent> all;
    for (const auto& [sent, label] : messages_of(set)) all.insert(sent);
    std::vector<std::string> sizes, others;
    for (const Sent& sent : all) {
      if (sent.over == wanted.over && sent.operation == wanted.operation)
        sizes.push_back(print_bytes_exact(sent.bytes));
      const std::string other = fmt::format("{} over {}", sent.operation, sent.over);
      if (std::ranges::find(others, other) == others.end()) others.push_back(other);
    }
    if (sizes.empty()) {
      fail("the model's step on this layout has no {} over {}; it has {}", wanted.operation, wanted.over,
           others.empty() ? "no communication" : join(others, ", "));
    }
    return sizes;
  }

  std::vector<std::string> uses_in_model(const ProgramSet& set, const Settings& s) const override {
    std::vector<std::string> uses;
    const Sent wanted = sent_by(s);
    for (const auto& [sent, label] : messages_of(set)) {
      if (sent == wanted) add_use(uses, label);
    }
    return uses;
  }
};

}  // namespace

Group collective_group(const Settings& s) {
  return {"collective", row_of(s.collective_over).axes, {}};
}

double max_bus_bandwidth(const Settings& s, const Layout& layout, std::span<const int> node_of,
                         const program::Links& links) {
  const double bus_factor = workload_of(s).rate(s, layout).bus_factor;
  if (bus_factor == 0) return 0;
  const double seconds = program::least_seconds_per_byte(s.collective, collective_group(s), layout, node_of, links);
  return seconds > 0 ? bus_factor / seconds : 0;
}

const Workload& collective_workload() {
  static const CollectiveWorkload workload;
  return workload;
}

}  // namespace harness::workloads
