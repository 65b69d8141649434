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

bool any_in(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

struct CallKind {
  bool allocates = false, loads_code = false, waits = false;
};

CallKind kind_of(const std::string& name) {
  const std::string low = lower(name);
  CallKind kind;
  kind.allocates = name.find("Async") == std::string::npos &&
                   any_in(low, {"malloc", "cudafree", "hipfree", "cumemalloc", "cumemfree", "cumemmap", "cumemunmap",
                                "cumemcreate", "cumemrelease", "hostalloc", "freehost", "hostregister"});
  kind.loads_code = any_in(
      name, {"ModuleLoad", "LibraryLoad", "ModuleGetFunction", "LinkCreate", "LinkComplete", "FuncGetAttributes"});
  kind.waits =
      low.find("synchronize") != std::string::npos || name.starts_with("cudaMemcpy") || name.starts_with("hipMemcpy");
  return kind;
}

// The calls and ranges of one host thread. Ranges by cause, in the order in which they claim a gap.
struct Thread {
  std::vector<std::uint32_t> calls;  // by start
  Stretches loading, allocation, module, garbage;
};

struct IdleStretch {
  Stretch stretch;
  Cause cause = Cause::unknown;
};

class Host {
 public:
  Host(const Capture& capture, const Device& device, const Timeline& timeline);
  /// Divides a gap by cause, by start. `launch`: of the event that ended it; nullptr: not in the file.
  void divide_gap(std::int64_t from_ns, std::int64_t to_ns, const HostCall* launch,
                  std::vector<IdleStretch>& gap) const;

 private:
  void divide(std::int64_t from_ns, std::int64_t to_ns, std::uint64_t thread_id, std::vector<IdleStretch>& gap) const;
  bool waited(const Thread& thread, std::int64_t gap_ns, std::int64_t launch_ns) const;

  const Capture& capture_;
  const Timeline& timeline_;
  std::unordered_map<std::uint64_t, Thread> threads_;
  Stretches overhead_;
  std::vector<CallKind> kinds_;
};

Host::Host(const Capture& capture, const Device& device, const Timeline& timeline)
    : capture_(capture), timeline_(timeline), kinds_(capture.names.size()) {
  const auto stretch = [&](const auto& x) { return Stretch{timeline.seconds(x.start_ns), timeline.seconds(x.end_ns)}; };
  std::vector<bool> known(capture.names.size());
  for (std::uint32_t i = 0; i < capture.calls.size(); ++i) {
    const HostCall& call = capture.calls[i];
    if (call.process != device.process) continue;
    if (!known[call.name]) kinds_[call.name] = kind_of(capture.names[call.name]);
    known[call.name] = true;
    Thread& thread = threads_[call.thread];
    thread.calls.push_back(i);
    if (kinds_[call.name].allocates) thread.allocation.push_back(stretch(call));
    if (kinds_[call.name].loads_code) thread.module.push_back(stretch(call));
  }
  for (const HostRange& range : capture.ranges) {
    if (range.kind == HostRange::Kind::overhead) overhead_.push_back(stretch(range));
    if (range.kind == HostRange::Kind::loading) threads_[range.thread].loading.push_back(stretch(range));
    if (range.kind == HostRange::Kind::garbage) threads_[range.thread].garbage.push_back(stretch(range));
  }
  overhead_ = united(std::move(overhead_));
  for (auto& [id, thread] : threads_) {
    for (Stretches* part : {&thread.loading, &thread.allocation, &thread.module, &thread.garbage})
      *part = united(std::move(*part));
  }
}

// Whether a call that waits for the GPU was open on the thread when the gap began.
bool Host::waited(const Thread& thread, std::int64_t gap_ns, std::int64_t launch_ns) const {
  constexpr std::int64_t near_ns = 5000;
  constexpr std::size_t most = 200;  // calls looked at, from the launch backwards
  const auto start_ns = [&](std::uint32_t i) { return capture_.calls[i].start_ns; };
  auto at = std::ranges::upper_bound(thread.calls, launch_ns, {}, start_ns);
  for (std::size_t n = 0; n <= most && at != thread.calls.begin(); ++n) {
    const HostCall& call = capture_.calls[*--at];
    if (kinds_[call.name].waits && call.start_ns <= gap_ns && call.end_ns >= gap_ns - near_ns &&
        call.end_ns - call.start_ns > near_ns)
      return true;
  }
  return false;
}

// Divides the time from the beginning of a gap to the launch that ends it.
void Host::divide(std::int64_t from_ns, std::int64_t to_ns, std::uint64_t thread_id,
                  std::vector<IdleStretch>& gap) const {
  const double from_s = timeline_.seconds(from_ns), to_s = timeline_.seconds(to_ns);
  static const Thread none;
  const auto found = threads_.find(thread_id);
  const Thread& thread = found == threads_.end() ? none : found->second;
  Stretches rest{{from_s, to_s}};
  const auto claim = [&](const Stretches& by, Cause cause) {
    const Stretches inside = clipped(by, from_s, to_s);
    if (inside.empty()) return;
    const Stretches left = without(rest, inside);
    for (const Stretch& s : without(rest, left)) gap.push_back({s, cause});
    rest = left;
  };
  claim(overhead_, Cause::profiler);
  claim(thread.loading, Cause::loading);
  claim(thread.allocation, Cause::allocation);
  claim(thread.module, Cause::module);
  claim(thread.garbage, Cause::garbage);
  if (!rest.empty()) {
    const Cause cause = waited(thread, from_ns, to_ns) ? Cause::synchronised : Cause::host;
    for (const Stretch& s : rest) gap.push_back({s, cause});
  }
  std::ranges::sort(gap, {}, [](const IdleStretch& i) { return i.stretch.start_s; });
}

void Host::divide_gap(std::int64_t from_ns, std::int64_t to_ns, const HostCall* launch,
                      std::vector<IdleStretch>& gap) const {
  const Stretch whole{timeline_.seconds(from_ns), timeline_.seconds(to_ns)};
  if (launch == nullptr) {
    gap.push_back({whole, Cause::unknown});
  } else if (launch->start_ns <= from_ns) {
    gap.push_back({whole, Cause::queued});
  } else {  // the clocks of host and GPU differ by microseconds: the call may seem to begin after the event
    divide(from_ns, std::min(launch->start_ns, to_ns), launch->thread, gap);
    if (launch->start_ns < to_ns) gap.push_back({{timeline_.seconds(launch->start_ns), whole.end_s}, Cause::launch});
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
                                 const Launches& launches, const Stretches& windows) {
  const Host host(capture, device, timeline);
  std::vector<IdleTimes> idle(windows.size(), IdleTimes{});
  std::vector<IdleStretch> gap;
  std::int64_t busy_until_ns = device.events.front().end_ns;
  for (const GpuEvent& event : device.events) {
    gap.clear();
    if (event.start_ns > busy_until_ns)
      host.divide_gap(busy_until_ns, event.start_ns, launches.of(device.process, event), gap);
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
