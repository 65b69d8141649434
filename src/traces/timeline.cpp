#include "traces/timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/text.h"

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

// Returns the wanted kernels of `events` by name, longest total duration first.
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

// Length of a union of intervals. Add them in order of their start.
struct Union {
  std::int64_t until_ns = 0, ns = 0;
  void add(std::int64_t start_ns, std::int64_t end_ns) {
    ns += std::max<std::int64_t>(0, end_ns - std::max(start_ns, until_ns));
    until_ns = std::max(until_ns, end_ns);
  }
};

// Key and title of each cause.
constexpr std::array<std::pair<std::string_view, std::string_view>, cause_count> words{
    {{"queued", "between kernels"},
     {"launch", "launching"},
     {"profiler", "the profiler itself"},
     {"loading", "data loading"},
     {"allocation", "allocation"},
     {"module", "loading of code"},
     {"synchronised", "after a synchronisation"},
     {"garbage", "garbage collection"},
     {"host", "host too slow"},
     {"unknown", "cause not in the file"}}};

// A host thread's time ranges by cause.
using ThreadTimes = std::array<Stretches, cause_count>;

constexpr std::int64_t near_ns = 5000;

// Takes a part of a gap, its cause, and whether launched work did not start for long.
using AddIdle = std::function<void(const Stretch&, Cause, bool)>;

class Host {
 public:
  Host(const Capture& capture, const Timeline& timeline);
  /// Divides a gap by cause. `event`: the event that ended the gap.
  void divide_gap(std::int64_t from_ns, const GpuEvent& event, const AddIdle& add) const;

 private:
  const Timeline& timeline_;
  std::unordered_map<Thread, ThreadTimes> threads_;
  Stretches overhead_;
};

Host::Host(const Capture& capture, const Timeline& timeline) : timeline_(timeline) {
  for (const HostRange& range : capture.ranges) {
    const bool brief = range.cause == Cause::synchronised && range.end_ns - range.start_ns <= near_ns;
    if (!range.cause || brief) continue;
    Stretches& of_cause =
        range.cause == Cause::profiler ? overhead_ : threads_[range.thread][static_cast<std::size_t>(*range.cause)];
    of_cause.push_back({timeline.seconds(range.start_ns), timeline.seconds(range.end_ns)});
  }
  overhead_ = united(std::move(overhead_));
  for (auto& [id, thread] : threads_) {
    for (Stretches& of_cause : thread) of_cause = united(std::move(of_cause));
  }
}

// Returns the parts of `stretches` between two times.
Stretches clipped(const Stretches& stretches, double from_s, double to_s) {
  Stretches inside;
  auto at = std::ranges::upper_bound(stretches, from_s, {}, &Stretch::end_s);
  for (; at != stretches.end() && at->start_s < to_s; ++at)
    inside.push_back({std::max(at->start_s, from_s), std::min(at->end_s, to_s)});
  return inside;
}

// Returns whether a stretch contains `s` or ended just before it. The extra half nanosecond absorbs rounding, because
// times are whole nanoseconds.
bool open_at(const Stretches& stretches, double s) {
  const auto behind = std::ranges::upper_bound(stretches, s, {}, &Stretch::start_s);
  return behind != stretches.begin() && std::prev(behind)->end_s >= s - 1e-9 * (near_ns + 0.5);
}

void Host::divide_gap(std::int64_t from_ns, const GpuEvent& event, const AddIdle& add) const {
  using enum Cause;
  // Between kernels that wait for each other pass microseconds, from call to kernel tens of them.
  constexpr std::int64_t long_between_ns = 10'000, long_after_ns = 1'000'000;
  const double from_s = timeline_.seconds(from_ns), end_s = timeline_.seconds(event.start_ns);
  if (!event.is_launched()) return add({from_s, end_s}, unknown, false);
  if (event.launch_ns <= from_ns) return add({from_s, end_s}, queued, event.start_ns - from_ns > long_between_ns);
  // Host and GPU clocks differ by microseconds: the call may appear to begin after the event.
  const double to_s = timeline_.seconds(std::min(event.launch_ns, event.start_ns));
  const bool stalled = event.start_ns - event.launch_end_ns > long_after_ns;
  const double called_s = stalled ? timeline_.seconds(event.launch_end_ns) : end_s;
  add({called_s, end_s}, launch, true);
  static const ThreadTimes none;
  const auto found = threads_.find(event.thread);
  const auto of_thread = [&](Cause cause) -> const Stretches& {
    return (found == threads_.end() ? none : found->second)[static_cast<std::size_t>(cause)];
  };
  Stretches rest{{from_s, called_s}};
  const auto claim = [&](const Stretches& by, Cause cause) {
    const Stretches inside = clipped(by, from_s, to_s);
    if (inside.empty()) return;
    const Stretches left = without(rest, inside);
    for (const Stretch& s : without(rest, left)) add(s, cause, false);
    rest = left;
  };
  claim(overhead_, profiler);
  for (const Cause cause : {loading, allocation, module, garbage}) claim(of_thread(cause), cause);
  const Cause late = open_at(of_thread(synchronised), from_s) ? synchronised : Cause::host;
  for (const Stretch& s : rest) {
    add({s.start_s, std::min(s.end_s, to_s)}, late, false);
    add({std::max(s.start_s, to_s), s.end_s}, launch, false);
  }
}

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
    if (looked_at > 8 * device_.events.size() + 100'000) break;  // bounds the work for overlapping windows
    figures.push_back(of(window));
  }
  return figures;
}

Figures Measure::of(const Window& window) const {
  const Union none{window.start_ns, 0};
  Union busy = none, kernels = none, computation = none, communication = none, copies = none;
  std::int64_t kernel_ns = 0, unknown_ns = 0;
  Figures f;
  const auto from = std::ranges::upper_bound(until_ns_, window.start_ns) - until_ns_.begin();  // first to reach it
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
  f.step_s = window.seconds();
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
  const Timeline timeline = timeline_of(device);
  std::set<std::uint32_t> known{timeline.main_stream};
  for (const GpuEvent& event : device.events) {
    if (event.is_kernel() && !is_unknown(event.kernel_class)) known.insert(event.stream);
  }
  const std::vector<NamedKernel> unknown =
      longest(device.events, names, device.events.size(),
              [&](const GpuEvent& event) { return event.work == Work::kernel && !known.contains(event.stream); });
  double unknown_s = 0;
  for (const NamedKernel& kernel : unknown) unknown_s += kernel.seconds;
  return unknown.empty() || unknown_s < 0.01 * timeline.seconds(timeline.end_ns) ? "" : unknown.front().name;
}

std::vector<NamedKernel> kernels_without_class(const Device& device, const Names& names) {
  return longest(device.events, names, 10, [](const GpuEvent& event) { return is_unknown(event.kernel_class); });
}

std::string_view key_of(Cause cause) {
  return words[static_cast<std::size_t>(cause)].first;
}
std::string_view title_of(Cause cause) {
  return words[static_cast<std::size_t>(cause)].second;
}

std::vector<IdleTimes> find_idle(const Capture& capture, const Device& device, const Timeline& timeline,
                                 const std::vector<Window>& windows) {
  const Host host(capture, timeline);
  std::vector<IdleTimes> idle(windows.size());
  const AddIdle add = [&](const Stretch& part, Cause cause, bool stalled) {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const double from_s = std::max(part.start_s, timeline.seconds(windows[i].start_ns)),
                   to_s = std::min(part.end_s, timeline.seconds(windows[i].end_ns));
      idle[i][cause] += std::max(0.0, to_s - from_s);
      if (stalled) idle[i].stalled_s += std::max(0.0, to_s - from_s);
    }
  };
  std::int64_t busy_until_ns = std::ranges::min(windows, {}, &Window::start_ns).start_ns;
  for (const GpuEvent& event : device.events) {
    if (event.start_ns > busy_until_ns) host.divide_gap(busy_until_ns, event, add);
    busy_until_ns = std::max(busy_until_ns, event.end_ns);
  }
  GpuEvent next = device.events.back();
  next.start_ns = next.launch_ns = next.launch_end_ns = std::ranges::max(windows, {}, &Window::end_ns).end_ns;
  if (next.start_ns > busy_until_ns) host.divide_gap(busy_until_ns, next, add);
  return idle;
}

}  // namespace harness::traces
