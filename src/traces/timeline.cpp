#include "traces/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

namespace harness::traces {
namespace {

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

// The length of the union of intervals that are added by their start.
struct Union {
  std::int64_t until_ns = 0, ns = 0;
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    ns += std::max<std::int64_t>(0, end_ns - std::max(start_ns, until_ns));
    until_ns = std::max(until_ns, end_ns);
  }
};

}  // namespace

Timeline timeline_of(const Device& device) {
  Timeline timeline{device.events.front().start_ns, 0, main_stream_of(device)};
  for (const GpuEvent& event : device.events) timeline.end_ns = std::max(timeline.end_ns, event.end_ns);
  return timeline;
}

Measure::Measure(const Device& device, const Names& names) : device_(device), names_(names) {
  std::int64_t until_ns = INT64_MIN;
  for (const GpuEvent& event : device.events) {
    until_ns = std::max(until_ns, event.end_ns);
    until_ns_.push_back(until_ns);
  }
}

std::span<const GpuEvent> Measure::in(const Window& window) const {
  const auto at = [&](std::int64_t ns) {
    return std::ranges::lower_bound(device_.events, ns, {}, &GpuEvent::start_ns);
  };
  if (window.name == "all") return device_.events;
  return {at(window.start_ns), std::max(at(window.start_ns), at(window.end_ns))};
}

std::int64_t Measure::kernels_in(const Window& window) const {
  return std::ranges::count_if(in(window), &GpuEvent::is_kernel);
}

std::vector<NamedKernel> Measure::longest_in(const Window& window, std::size_t most) const {
  return longest(in(window), names_, most, [](const GpuEvent&) { return true; });
}

std::vector<Figures> Measure::of(const std::vector<Window>& windows) const {
  std::vector<Figures> figures;
  std::size_t looked_at = 0;
  for (const Window& window : windows) {
    looked_at += in(window).size();
    if (looked_at > 8 * device_.events.size() + 100'000) break;  // windows overlap as the file says: work is bounded
    figures.push_back(of(window));
  }
  return figures;
}

Figures Measure::of(const Window& window) const {
  const Union none{window.start_ns, 0};
  Union busy = none, kernels = none, computation = none, communication = none, copies = none;
  std::int64_t kernel_ns = 0, unknown_ns = 0;
  Figures f;
  const auto from = std::ranges::upper_bound(until_ns_, window.start_ns) - until_ns_.begin();  // the first to reach it
  for (auto i = static_cast<std::size_t>(from); i < device_.events.size(); ++i) {
    const GpuEvent& event = device_.events[i];
    if (event.start_ns >= window.end_ns) break;
    const std::int64_t end_ns = std::min(event.end_ns, window.end_ns);
    busy.add(event.start_ns, end_ns);
    if (event.work == Work::copy) copies.add(event.start_ns, end_ns);
    if (!event.is_kernel()) continue;
    kernels.add(event.start_ns, end_ns);
    (is_communication(event.kernel_class) ? communication : computation).add(event.start_ns, end_ns);
  }
  for (const GpuEvent& event : in(window)) {
    if (!event.is_kernel()) continue;
    const std::int64_t ns = event.end_ns - event.start_ns;
    ++f.kernels;
    kernel_ns += ns;
    if (is_communication(event.kernel_class)) ++f.collectives;
    if (is_unknown(event.kernel_class)) unknown_ns += ns;
  }
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  f.window = window.name;
  f.step_s = seconds(window.end_ns - window.start_ns);
  f.busy_s = seconds(busy.ns);
  f.compute_s = seconds(computation.ns);
  f.communication_s = seconds(communication.ns);
  f.exposed_communication_s = seconds(kernels.ns - computation.ns);
  f.overlapped_s = f.communication_s - f.exposed_communication_s;
  f.memcpy_s = seconds(copies.ns);
  f.exposed_memory_s = seconds(busy.ns - kernels.ns);
  f.idle_s = f.step_s - f.busy_s;
  if (kernel_ns > 0) f.unclassified = static_cast<double>(unknown_ns) / static_cast<double>(kernel_ns);
  f.top = longest_in(window, 5);
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
