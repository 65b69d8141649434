#include "traces/timeline.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace harness::traces {
namespace {

struct Words {
  std::string_view key, title;
};
constexpr std::array<Words, cause_count> words{{{"queued", "between kernels"},
                                                {"launch", "launching"},
                                                {"profiler", "the profiler itself"},
                                                {"loading", "data loading"},
                                                {"allocation", "allocation"},
                                                {"module", "loading of code"},
                                                {"synchronised", "after a synchronisation"},
                                                {"garbage", "garbage collection"},
                                                {"host", "host too slow"},
                                                {"unknown", "cause not in the file"}}};

// A host thread's times outside of launching.
using ThreadTimes = std::array<Stretches, cause_count>;

constexpr std::int64_t near_ns = 5000;

struct IdleStretch {
  Stretch stretch;
  Cause cause = Cause::unknown;
};

class Host {
 public:
  Host(const Capture& capture, const Timeline& timeline);
  /// Divides a gap by cause, by start. `event`: the one that ended it.
  void divide_gap(std::int64_t from_ns, const GpuEvent& event, std::vector<IdleStretch>& gap) const;

 private:
  void divide(std::int64_t from_ns, std::int64_t to_ns, Thread thread, std::vector<IdleStretch>& gap) const;

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

// The points of `stretches` between two times.
Stretches clipped(const Stretches& stretches, double from_s, double to_s) {
  Stretches inside;
  auto at = std::ranges::upper_bound(stretches, from_s, {}, &Stretch::end_s);
  for (; at != stretches.end() && at->start_s < to_s; ++at)
    inside.push_back({std::max(at->start_s, from_s), std::min(at->end_s, to_s)});
  return inside;
}

// Whether one of the stretches was open at a time, or had just ended. Half a nanosecond makes up for rounding: times
// are whole ones.
bool open_at(const Stretches& stretches, double s) {
  const auto behind = std::ranges::upper_bound(stretches, s, {}, &Stretch::start_s);
  return behind != stretches.begin() && std::prev(behind)->end_s >= s - 1e-9 * (near_ns + 0.5);
}

// Divides the time from the beginning of a gap to the launch that ends it.
void Host::divide(std::int64_t from_ns, std::int64_t to_ns, Thread number, std::vector<IdleStretch>& gap) const {
  const double from_s = timeline_.seconds(from_ns), to_s = timeline_.seconds(to_ns);
  static const ThreadTimes none;
  const auto found = threads_.find(number);
  const auto of_thread = [&](Cause cause) -> const Stretches& {
    return (found == threads_.end() ? none : found->second)[static_cast<std::size_t>(cause)];
  };
  Stretches rest{{from_s, to_s}};
  const auto claim = [&](const Stretches& by, Cause cause) {
    const Stretches inside = clipped(by, from_s, to_s);
    if (inside.empty()) return;
    const Stretches left = without(rest, inside);
    for (const Stretch& s : without(rest, left)) gap.push_back({s, cause});
    rest = left;
  };
  using enum Cause;
  claim(overhead_, profiler);
  for (const Cause cause : {loading, allocation, module, garbage}) claim(of_thread(cause), cause);
  const Cause late = open_at(of_thread(synchronised), from_s) ? synchronised : Cause::host;
  for (const Stretch& s : rest) gap.push_back({s, late});
  std::ranges::sort(gap, {}, [](const IdleStretch& i) { return i.stretch.start_s; });
}

void Host::divide_gap(std::int64_t from_ns, const GpuEvent& event, std::vector<IdleStretch>& gap) const {
  const Stretch whole{timeline_.seconds(from_ns), timeline_.seconds(event.start_ns)};
  if (!event.is_launched()) {
    gap.push_back({whole, Cause::unknown});
  } else if (event.launch_ns <= from_ns) {
    gap.push_back({whole, Cause::queued});
  } else {  // the clocks of host and GPU differ by microseconds: the call may seem to begin after the event
    divide(from_ns, std::min(event.launch_ns, event.start_ns), event.thread, gap);
    if (event.launch_ns < event.start_ns)
      gap.push_back({{timeline_.seconds(event.launch_ns), whole.end_s}, Cause::launch});
  }
}

}  // namespace

std::string_view key_of(Cause cause) {
  return words[static_cast<std::size_t>(cause)].key;
}
std::string_view title_of(Cause cause) {
  return words[static_cast<std::size_t>(cause)].title;
}

std::vector<IdleTimes> find_idle(const Capture& capture, const Device& device, const Timeline& timeline,
                                 const Stretches& windows) {
  const Host host(capture, timeline);
  std::vector<IdleTimes> idle(windows.size(), IdleTimes{});
  std::vector<IdleStretch> gap;
  std::int64_t busy_until_ns = device.events.front().end_ns;
  for (const GpuEvent& event : device.events) {
    gap.clear();
    if (event.start_ns > busy_until_ns) host.divide_gap(busy_until_ns, event, gap);
    busy_until_ns = std::max(busy_until_ns, event.end_ns);
    for (const auto& [stretch, cause] : gap) {
      for (std::size_t i = 0; i < windows.size(); ++i) {
        const double inside_s =
            std::min(stretch.end_s, windows[i].end_s) - std::max(stretch.start_s, windows[i].start_s);
        idle[i][static_cast<std::size_t>(cause)] += std::max(0.0, inside_s);
      }
    }
  }
  return idle;
}

}  // namespace harness::traces
