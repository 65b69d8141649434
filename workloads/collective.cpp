#include "workloads/check_point.h"
#include "workloads/operations.h"
#include "workloads/step.h"

namespace harness {
namespace {

StreamId stream_of(CollectiveOver over) {
  switch (over) {
    case CollectiveOver::tensor:
      return tensor_stream;
    case CollectiveOver::data:
      return data_stream;
    case CollectiveOver::pipeline:
      return pipeline_stream;
    case CollectiveOver::world:
      break;
  }
  return world_stream;
}

// The axis of a ring: over the world, the only one that has more than one rank.
Axis axis_of(CollectiveOver over, const Layout& layout) {
  for (const Axis axis : {Axis::tensor, Axis::data, Axis::pipeline}) {
    if (axes_of(over).has(axis) && layout[axis] > 1) return axis;
  }
  return Axis::data;
}

// In place, a rank's part of the whole is where its number in the group says, so ranks differ.
bool has_own_part(const Settings& s) {
  return s.in_place && (s.collective == CollectiveKind::all_gather || s.collective == CollectiveKind::reduce_scatter);
}

// One rank's Program. `member`: its number in the group.
Program program_of(const Settings& s, const Layout& layout, int member, GroupId group, GroupId world) {
  ProgramBuilder b = step_builder();
  StepFrame frame(b, world, "share");
  const DType type = s.precision == Precision::bf16 ? DType::bf16 : DType::f32;
  const std::int64_t count = s.message_bytes / size_of(type), part = count / members_of(s.collective_over, layout);
  std::vector<View> buffers;
  const auto buffer = [&](const char* name, std::int64_t elements) {
    buffers.push_back(b.buffer(name, type, elements, BufferKind::persistent));
    return buffers.back();
  };
  View in, out;
  switch (s.collective) {
    case CollectiveKind::all_reduce:
      out = buffer("out", count);
      in = s.in_place ? out : buffer("in", count);
      break;
    case CollectiveKind::reduce_scatter:
      in = buffer("in", count);
      out = s.in_place ? in.part(member * part, part) : buffer("out", part);
      break;
    case CollectiveKind::all_gather:
      out = buffer("out", count);
      in = s.in_place ? out.part(member * part, part) : buffer("in", part);
      break;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      in = buffer("in", count);
      out = buffer("out", count);
      break;
  }
  // A sum in place starts from what the last left: from zero it stays finite however often it is repeated.
  const bool grows = s.collective == CollectiveKind::all_reduce && s.in_place;
  for (const View& v : buffers) {
    b.emit(compute_stream, Fill{v, grows ? 0.0 : 1.0}, {"message", Phase::setup});
  }
  frame.begin_step(1.0 / layout.ranks());
  const StreamId stream = stream_of(s.collective_over);
  const Axis axis = axis_of(s.collective_over, layout);
  for (int i = 0; i < s.repetitions; ++i) {
    const Label label{"message", Phase::forward, -1, i};
    switch (s.collective) {
      case CollectiveKind::all_reduce:
        b.emit(stream, AllReduce{group, out, Reduction::sum, s.in_place ? View{} : in}, label);
        break;
      case CollectiveKind::reduce_scatter:
        b.emit(stream, ReduceScatter{group, in, out}, label);
        break;
      case CollectiveKind::all_gather:
        b.emit(stream, AllGather{group, in, out}, label);
        break;
      case CollectiveKind::all_to_all:
        b.emit(stream, AllToAll{group, in, out}, label);
        break;
      case CollectiveKind::send_recv: {
        const auto together = b.new_fused_group();
        b.emit(stream, Send{{axis, +1}, in}, label, {}, together);
        b.emit(stream, Receive{{axis, -1}, out}, label, {}, together);
        break;
      }
    }
  }
  frame.end_step();
  return b.take();
}

}  // namespace

ProgramSet collective_programs(const Settings& s, const Layout& layout) {
  ProgramSet set;
  set.layout = layout;
  const bool everybody = s.collective_over == CollectiveOver::world;
  const AxisSet axes = axes_of(s.collective_over);
  if (!everybody) set.groups.push_back({"collective", axes, {}});
  set.groups.push_back({"world", AxisSet::all(), {}});
  const auto world = static_cast<GroupId>(set.groups.size() - 1);
  const int members = members_of(s.collective_over, layout);
  if (has_own_part(s)) set.role_axes = axes;
  for (int member = 0; member < (has_own_part(s) ? members : 1); ++member) {
    set.roles.push_back(program_of(s, layout, member, 0, world));
  }
  return set;
}

}  // namespace harness
