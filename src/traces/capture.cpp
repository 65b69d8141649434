#include "traces/capture.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace harness::traces {

std::uint32_t Names::number_of(std::string_view text) {
  text = text.substr(0, longest);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  constexpr std::size_t entry = 96;  // overhead of the tables
  if (bytes_ + text.size() + entry > most_bytes) {
    text = "(further names)";
    if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  }
  bytes_ += text.size() + entry;
  texts_.emplace_back(text);
  const auto number = static_cast<std::uint32_t>(texts_.size() - 1);
  numbers_.emplace(texts_.back(), number);
  return number;
}

std::optional<std::int64_t> rank_in_name(const std::string& path) {
  const std::string name = lower(std::filesystem::path(path).filename().string());
  for (const std::string_view word : {"rank", "worker"}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      Cursor cursor{std::string_view(name).substr(at + word.size())};
      if (!cursor.literal("_") && !cursor.literal("-")) cursor.literal(" ");
      std::uint32_t number = 0;
      if (!cursor.rest.starts_with('-') && cursor.integer(number)) return number;
    }
  }
  const std::string stem = name.substr(0, name.find('.'));
  const std::size_t last = stem.find_last_not_of("0123456789");
  if (last == std::string::npos || last + 1 == stem.size() || stem[last] != '_') return std::nullopt;
  // PyTorch names a file by host, process and time: "node_2566.1773933981558265129.pt.trace.json".
  if (name.find_first_of("0123456789", stem.size()) == stem.size() + 1) return std::nullopt;
  Cursor cursor{std::string_view(stem).substr(last + 1)};
  std::uint32_t number = 0;
  constexpr std::uint32_t most_ranks = 65536;  // a larger number is a process, time or job
  if (!cursor.integer(number) || number >= most_ranks) return std::nullopt;
  return number;
}

namespace {

std::size_t drop_wrong_clock(Device& device, const Capture& capture) {
  constexpr std::int64_t tolerance_ns = 10'000'000'000;
  if (capture.first_call_ns > capture.last_call_ns) return 0;
  return std::erase_if(device.events, [&](const GpuEvent& event) {
    return event.end_ns < capture.first_call_ns - tolerance_ns || event.start_ns > capture.last_call_ns + tolerance_ns;
  });
}

// Most files are already sorted; sorting would need half as much memory again.
void sort_by(auto& all, auto key) {
  if (!std::ranges::is_sorted(all, {}, key)) std::ranges::stable_sort(all, {}, key);
}

std::optional<Cause> cause_of_call(const std::string& name) {
  const std::string low = lower(name);
  if (!evidence::contains(name, "Async") &&
      evidence::has_any(low,
                        "malloc|cudafree|hipfree|cumemalloc|cumemfree|cumemmap|cumemunmap|cumemcreate|cumemrelease|"
                        "hostalloc|freehost|hostregister"))
    return Cause::allocation;
  if (evidence::has_any(name, "ModuleLoad|LibraryLoad|ModuleGetFunction|LinkCreate|LinkComplete|FuncGetAttributes"))
    return Cause::module;
  const bool copies = name.starts_with("cudaMemcpy") || name.starts_with("hipMemcpy");
  return copies || evidence::contains(low, "synchronize") ? std::optional(Cause::synchronised) : std::nullopt;
}

// On ROCm a late completion timestamp can add seconds to a kernel. A kernel that extends far beyond the start of the
// next one on its stream is cut there.
std::size_t cut_overlong(Device& device) {
  constexpr std::int64_t tolerance_ns = 10'000;
  if (lower(device.gpu).find("amd") == std::string::npos) return 0;
  std::size_t cut = 0;
  std::unordered_map<std::uint32_t, GpuEvent*> last;  // by stream
  for (GpuEvent& event : device.events) {
    if (event.work != Work::kernel) continue;
    GpuEvent*& before = last[event.stream];
    if (before != nullptr) {
      const std::int64_t beyond_ns = before->end_ns - event.start_ns;
      if (beyond_ns > tolerance_ns && beyond_ns * 10 > before->end_ns - before->start_ns) {
        before->end_ns = event.start_ns;
        ++cut;
      }
    }
    before = &event;
  }
  return cut;
}

// Drops the GPUs that a process only touched, as ranks do that allocate on GPU 0. Each GPU counts like any other in
// the means over a job.
std::size_t drop_touched(Capture& capture) {
  const auto kernels_ns = [](const Device& device) {
    std::int64_t ns = 0;
    for (const GpuEvent& event : device.events) ns += event.is_kernel() ? event.end_ns - event.start_ns : 0;
    return ns;
  };
  std::map<std::uint64_t, std::int64_t> most_ns;  // by process
  for (const Device& device : capture.devices) {
    std::int64_t& most = most_ns[device.process];
    most = std::max(most, kernels_ns(device));
  }
  return std::erase_if(capture.devices,
                       [&](const Device& device) { return kernels_ns(device) * 100 < most_ns[device.process]; });
}

}  // namespace

void Capture::note(std::size_t number, std::string_view noun, std::string_view what) {
  if (number > 0) notes.push_back(fmt::format("{} {}.", plural(static_cast<std::int64_t>(number), noun), what));
}

void finish(Capture& capture) {
  std::size_t dropped = 0, cut = 0;
  for (Device& device : capture.devices) {
    dropped += drop_wrong_clock(device, capture);
    sort_by(device.events, &GpuEvent::start_ns);
    cut += cut_overlong(device);
  }
  capture.note(cut, "kernel", "cut where the next one on the stream begins");
  capture.note(dropped, "GPU event", "left out: more than 10 s outside of all host calls");
  std::ranges::sort(capture.devices, {}, [](const Device& d) { return std::pair(d.id, d.process); });
  for (Device& device : capture.devices) std::ranges::sort(device.steps, {}, &Window::start_ns);
  for (Device& device : capture.devices) {
    device.label = std::to_string(device.id);
    if (std::ranges::count(capture.devices, device.id, &Device::id) > 1)
      device.label += fmt::format("/{}", device.process & 0xffffff);
  }
  std::erase_if(capture.devices,
                [](const Device& device) { return std::ranges::none_of(device.events, &GpuEvent::is_kernel); });
  if (capture.format != own_format)
    capture.note(drop_touched(capture), "GPU",
                 "left out: less than 1 % of the kernel time of another one of its process");
  classify(capture);
  sort_by(capture.ranges, [](const HostRange& r) { return std::pair(r.start_ns, -r.end_ns); });
}

Thread Threads::number_of(std::uint64_t process, std::uint64_t id) {
  const auto found = numbers_.find({process, id});
  if (found != numbers_.end()) return found->second;
  if (processes_.size() == no_thread) return no_thread;
  processes_.push_back(process);
  return numbers_.emplace(std::pair(process, id), static_cast<Thread>(processes_.size() - 1)).first->second;
}

void Calls::take(HostRange call) {
  capture_.first_call_ns = std::min(capture_.first_call_ns, call.start_ns);
  capture_.last_call_ns = std::max(capture_.last_call_ns, call.end_ns);
  const auto [entry, added] = causes_.try_emplace(call.name);
  if (added) entry->second = cause_of_call(capture_.names[call.name]);
  call.cause = entry->second;
  if (call.cause) capture_.ranges.push_back(call);
}

void Calls::await(std::size_t device, std::uint64_t correlation) {
  if (correlation == 0) return;
  awaited_.push_back({correlation, static_cast<std::uint32_t>(device),
                      static_cast<std::uint32_t>(capture_.devices[device].events.size() - 1)});
}

void Calls::join(std::uint64_t correlation, std::int64_t start_ns, std::int64_t end_ns, Thread thread) {
  const auto key = [&](const Awaited& awaited) {
    return std::pair(capture_.devices[awaited.device].process, awaited.correlation);
  };
  if (!sorted_) std::ranges::sort(awaited_, {}, key);
  sorted_ = true;
  const std::pair wanted(capture_.threads.process_of(thread), correlation);
  auto at = std::ranges::lower_bound(awaited_, wanted, {}, key);
  for (; at != awaited_.end() && key(*at) == wanted; ++at) {
    GpuEvent& event = capture_.devices[at->device].events[at->event];
    if (event.is_launched() && event.launch_ns <= start_ns) continue;
    event.launch_ns = start_ns;
    event.launch_end_ns = end_ns;
    event.thread = thread;
  }
}

}  // namespace harness::traces
