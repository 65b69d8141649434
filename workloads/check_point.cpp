#include "workloads/check_point.h"

#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "config/registry.h"
#include "program/view.h"

namespace harness {
namespace {

std::string check_size(const Settings& s, int members) {
  const bool whole = s.collective == CollectiveKind::all_reduce || s.collective == CollectiveKind::send_recv;
  const std::int64_t unit = element_bytes(s) * (whole ? 1 : members);
  if (s.message_bytes % unit == 0) return "";
  const std::int64_t below = s.message_bytes / unit * unit, above = below + unit;
  return fmt::format("message_size {} is not {} of {} B each; nearest that is: {}", print_bytes_exact(s.message_bytes),
                     whole ? "a number of elements" : fmt::format("{} equal parts of elements", members),
                     element_bytes(s),
                     below == 0 ? print_bytes_exact(above)
                                : fmt::format("{} or {}", print_bytes_exact(below), print_bytes_exact(above)));
}

// A sum that takes the place of what was summed grows by the number of ranks each time; beyond the exponents of f32 and
// bf16 there would be nothing left to check.
std::string check_growth(const Settings& s, int members) {
  constexpr double most_doublings = 240;
  const double doublings = std::log2(members);
  if (s.collective != CollectiveKind::all_reduce || !s.in_place || doublings * s.repetitions <= most_doublings)
    return "";
  return fmt::format(
      "{} sums in place over {} ranks exceed what a float holds; at most {} repetitions, or in_place: false",
      s.repetitions, members, static_cast<int>(most_doublings / doublings));
}

}  // namespace

AxisSet axes_of(CollectiveOver over) {
  switch (over) {
    case CollectiveOver::tensor:
      return AxisSet::of({Axis::tensor});
    case CollectiveOver::data:
      return AxisSet::of({Axis::data});
    case CollectiveOver::pipeline:
      return AxisSet::of({Axis::pipeline});
    case CollectiveOver::world:
      break;
  }
  return AxisSet::all();
}

int members_of(CollectiveOver over, const Layout& layout) {
  return Group{"", axes_of(over), {}}.size(layout);
}

std::int64_t element_bytes(const Settings& settings) {
  return size_of(settings.precision == Precision::bf16 ? DType::bf16 : DType::f32);
}

std::string check_point(const Settings& s, const Layout& layout) {
  if (s.workload != WorkloadKind::collective) return "";
  const int members = members_of(s.collective_over, layout);
  const std::string over = find_variable("collective_over")->print(s);
  if (members < 2) {
    return fmt::format("a collective over {} of one rank sends nothing; give {}", over,
                       s.collective_over == CollectiveOver::world ? "the job 2 ranks or more" : "another layout");
  }
  if (s.collective == CollectiveKind::send_recv && s.collective_over == CollectiveOver::world) {
    int axes = 0;
    for (const int size : layout.size) axes += size > 1 ? 1 : 0;
    if (axes > 1) return "send_recv goes along one axis of the layout; collective_over: tensor, data or pipeline";
  }
  const std::string why = check_size(s, members);
  return why.empty() ? check_growth(s, members) : why;
}

}  // namespace harness
