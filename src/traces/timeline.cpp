#include "traces/timeline.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

namespace harness::traces {
namespace {

constexpr std::size_t stride = 64;  // of Measure's sums

std::uint32_t main_stream_of(const Device& device) {
  std::map<std::uint32_t, std::int64_t> computed_ns;
  for (const GpuEvent& event : device.events) {
    if (event.is_kernel() && !is_communication(event.kernel_class))
      computed_ns[event.stream] += event.end_ns - event.start_ns;
  }
  const auto most = std::ranges::max_element(computed_ns, {}, [](const auto& entry) { return entry.second; });
  return most == computed_ns.end() ? 0 : most->first;
}

// The kernels of `events` that are wanted, by name, the longest sums first.
std::vector<NamedKernel> longest(std::span<const GpuEvent> events, const Names& names, std::size_t most,
                                 const auto& wanted) {
  struct Sum {
    std::int64_t ns = 0, count = 0;
    std::uint32_t name = 0;
    Class kernel_class = 0;
  };
  std::unordered_map<std::uint32_t, Sum> by_name;
  for (const GpuEvent& event : events) {
    if (!event.is_kernel() || !wanted(event)) continue;
    const auto [entry, added] = by_name.try_emplace(event.name, Sum{0, 0, event.name, event.kernel_class});
    Sum& sum = entry->second;
    sum.ns += event.end_ns - event.start_ns;
    ++sum.count;
    if (sum.kernel_class != event.kernel_class) sum.kernel_class = class_of(names[event.name]);
  }
  std::vector<Sum> all;
  for (const auto& [name, sum] : by_name) all.push_back(sum);
  const std::size_t n = std::min(most, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(n), {},
                            [](const Sum& sum) { return std::pair(-sum.ns, sum.name); });
  all.resize(n);
  std::vector<NamedKernel> result;
  for (const Sum& sum : all)
    result.push_back({names[sum.name], sum.kernel_class, sum.count, static_cast<double>(sum.ns) * 1e-9});
  return result;
}

// Adds an event to those that begin earlier.
void extend(Stretches& stretches, const Stretch& by) {
  if (!stretches.empty() && by.start_s <= stretches.back().end_s) {
    stretches.back().end_s = std::max(stretches.back().end_s, by.end_s);
  } else if (by.start_s < by.end_s) {
    stretches.push_back(by);
  }
}

// The length of the union of several between two times. It needs no memory: there may be millions.
double union_s(double from_s, double to_s, std::initializer_list<const Stretches*> of) {
  std::vector<std::span<const Stretch>> rest;
  for (const Stretches* stretches : of) {
    const auto first = std::ranges::upper_bound(*stretches, from_s, {}, &Stretch::end_s);
    rest.emplace_back(first, stretches->end());
  }
  const auto next_s = [](std::span<const Stretch> s) { return s.empty() ? INFINITY : s.front().start_s; };
  double whole_s = 0;
  Stretch last{from_s, from_s};
  while (true) {
    std::span<const Stretch>& earliest = *std::ranges::min_element(rest, {}, next_s);
    if (next_s(earliest) >= to_s) return whole_s + (last.end_s - last.start_s);
    const Stretch next{std::max(earliest.front().start_s, from_s), std::min(earliest.front().end_s, to_s)};
    earliest = earliest.subspan(1);
    if (next.start_s > last.end_s) {
      whole_s += last.end_s - last.start_s;
      last = next;
    } else {
      last.end_s = std::max(last.end_s, next.end_s);
    }
  }
}

}  // namespace

Timeline timeline_of(const Device& device) {
  Timeline timeline;
  timeline.origin_ns = device.events.front().start_ns;
  timeline.main_stream = main_stream_of(device);
  for (const GpuEvent& event : device.events) {
    timeline.end_ns = std::max(timeline.end_ns, event.end_ns);
    const Stretch stretch{timeline.seconds(event.start_ns), timeline.seconds(event.end_ns)};
    if (!event.is_kernel()) {
      extend(event.work == Work::copy ? timeline.copies : timeline.sets, stretch);
      continue;
    }
    extend(is_communication(event.kernel_class) ? timeline.communication : timeline.computation, stretch);
  }
  return timeline;
}

Stretches clipped(const Stretches& stretches, double from_s, double to_s) {
  Stretches inside;
  auto at = std::ranges::upper_bound(stretches, from_s, {}, &Stretch::end_s);
  for (; at != stretches.end() && at->start_s < to_s; ++at)
    inside.push_back({std::max(at->start_s, from_s), std::min(at->end_s, to_s)});
  return inside;
}

Measure::Measure(const Device& device, const Timeline& timeline, const Names& names)
    : device_(device), timeline_(timeline), names_(names) {
  Sums sums{};
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    if (i % stride == 0) before_.push_back(sums);
    add(device.events[i], sums);
  }
  if (device.events.size() % stride == 0) before_.push_back(sums);
}

void Measure::add(const GpuEvent& event, Sums& sums) {
  if (!event.is_kernel()) return;
  const std::int64_t ns = event.end_ns - event.start_ns;
  ++sums.kernels;
  sums.kernel_ns += ns;
  if (is_communication(event.kernel_class)) ++sums.collectives;
  if (is_unknown(event.kernel_class)) sums.unknown_ns += ns;
}

Measure::Sums Measure::before(std::size_t event) const {
  Sums sums = before_[event / stride];
  for (std::size_t i = event / stride * stride; i < event; ++i) add(device_.events[i], sums);
  return sums;
}

std::pair<std::size_t, std::size_t> Measure::events_in(const Window& window) const {
  const auto at = [&](std::int64_t ns) {
    return static_cast<std::size_t>(std::ranges::lower_bound(device_.events, ns, {}, &GpuEvent::start_ns) -
                                    device_.events.begin());
  };
  if (window.name == "all") return {0, device_.events.size()};
  return {at(window.start_ns), std::max(at(window.start_ns), at(window.end_ns))};
}

std::int64_t Measure::kernels_in(const Window& window) const {
  const auto [first, last] = events_in(window);
  return before(last).kernels - before(first).kernels;
}

std::vector<NamedKernel> Measure::longest_in(const Window& window, std::size_t most) const {
  const auto [first, last] = events_in(window);
  return longest(std::span(device_.events).subspan(first, last - first), names_, most,
                 [](const GpuEvent&) { return true; });
}

Figures Measure::of(const Window& window) {
  Figures f;
  f.window = window.name;
  const double from_s = timeline_.seconds(window.start_ns), to_s = timeline_.seconds(window.end_ns);
  const Stretches &computation = timeline_.computation, &communication = timeline_.communication;
  const auto in = [&](std::initializer_list<const Stretches*> of) { return union_s(from_s, to_s, of); };
  f.step_s = static_cast<double>(window.end_ns - window.start_ns) * 1e-9;
  f.busy_s = in({&computation, &communication, &timeline_.copies, &timeline_.sets});
  f.compute_s = in({&computation});
  f.communication_s = in({&communication});
  const double kernels_s = in({&computation, &communication});
  f.exposed_communication_s = kernels_s - f.compute_s;
  f.overlapped_s = f.communication_s - f.exposed_communication_s;
  f.memcpy_s = in({&timeline_.copies});
  f.exposed_memory_s = f.busy_s - kernels_s;
  f.idle_s = f.step_s - f.busy_s;
  const auto [first, last] = events_in(window);
  const Sums a = before(first), b = before(last);
  f.kernels = b.kernels - a.kernels;
  f.collectives = b.collectives - a.collectives;
  if (b.kernel_ns > a.kernel_ns)
    f.unclassified = static_cast<double>(b.unknown_ns - a.unknown_ns) / static_cast<double>(b.kernel_ns - a.kernel_ns);
  // Windows may overlap as the file says: the work is bounded, and the last of too many windows have no such list.
  looked_at_ += last - first;
  if (looked_at_ <= 8 * device_.events.size() + 100'000) f.top = longest_in(window, 5);
  return f;
}

std::string kernel_of_unknown_stream(const Device& device, const Names& names) {
  std::set<std::uint32_t> known{main_stream_of(device)};
  std::int64_t end_ns = 0;
  for (const GpuEvent& event : device.events) {
    end_ns = std::max(end_ns, event.end_ns);
    if (event.is_kernel() && !is_unknown(event.kernel_class)) known.insert(event.stream);
  }
  const std::vector<NamedKernel> unknown =
      longest(device.events, names, device.events.size(),
              [&](const GpuEvent& event) { return event.work == Work::kernel && !known.contains(event.stream); });
  double unknown_s = 0;
  for (const NamedKernel& kernel : unknown) unknown_s += kernel.seconds;
  const double whole_s = static_cast<double>(end_ns - device.events.front().start_ns) * 1e-9;
  return unknown.empty() || unknown_s < 0.01 * whole_s ? "" : unknown.front().name;
}

std::vector<NamedKernel> kernels_without_class(const Device& device, const Names& names) {
  return longest(device.events, names, 10, [](const GpuEvent& event) { return is_unknown(event.kernel_class); });
}

}  // namespace harness::traces
