#include "traces/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace harness::traces {

std::uint32_t Names::number_of(std::string_view text) {
  text = text.substr(0, longest);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  constexpr std::size_t entry = 96;  // of the tables themselves
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
  Cursor cursor{std::string_view(stem).substr(last + 1)};
  std::uint32_t number = 0;
  constexpr std::uint32_t most_ranks = 65536;  // more is a process, a time or a job
  if (!cursor.integer(number) || number >= most_ranks) return std::nullopt;
  return number;
}

namespace {

std::size_t drop_wrong_clock(Device& device, const std::vector<HostCall>& calls) {
  constexpr std::int64_t tolerance_ns = 10'000'000'000;
  if (calls.empty()) return 0;
  std::int64_t first = calls.front().start_ns, last = first;
  for (const HostCall& call : calls) {
    first = std::min(first, call.start_ns);
    last = std::max(last, call.end_ns);
  }
  return std::erase_if(device.events, [&](const GpuEvent& event) {
    return event.end_ns < first - tolerance_ns || event.start_ns > last + tolerance_ns;
  });
}

// Most files are in order already; a sort would need room for half as many again.
template <class Timed>
void sort_by_start(std::vector<Timed>& all) {
  if (!std::ranges::is_sorted(all, {}, &Timed::start_ns)) std::ranges::stable_sort(all, {}, &Timed::start_ns);
}

// On ROCm a late completion stamp can add seconds to a kernel: where it outlasts the start of the next kernel of its
// stream by much, it ends there.
std::size_t cut_overlong(Device& device) {
  constexpr std::int64_t tolerance_ns = 10'000;
  if (lower(device.gpu).find("amd") == std::string::npos) return 0;
  std::size_t cut = 0;
  std::unordered_map<std::uint32_t, GpuEvent*> last;  // of each stream
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

}  // namespace

void finish(Capture& capture) {
  std::size_t dropped = 0, cut = 0;
  for (Device& device : capture.devices) {
    dropped += drop_wrong_clock(device, capture.calls);
    sort_by_start(device.events);
    cut += cut_overlong(device);
  }
  if (cut > 0)
    capture.notes.push_back(fmt::format("{} kernels outlast the next one of their stream and were cut there.", cut));
  if (dropped > 0) {
    capture.notes.push_back(
        fmt::format("{} GPU events lie more than 10 s outside of all host calls and were left out.", dropped));
  }
  std::ranges::sort(capture.devices, {}, [](const Device& d) { return std::pair(d.id, d.process); });
  for (Device& device : capture.devices) std::ranges::sort(device.steps, {}, &Window::start_ns);
  for (Device& device : capture.devices) {
    device.label = std::to_string(device.id);
    if (std::ranges::count(capture.devices, device.id, &Device::id) > 1)
      device.label += fmt::format("/{}", device.process & 0xffffff);
  }
  std::erase_if(capture.devices, [](const Device& device) {
    return std::ranges::none_of(device.events,
                                [](const GpuEvent& e) { return e.work == Work::kernel || e.work == Work::graph; });
  });
  sort_by_start(capture.calls);
  std::ranges::stable_sort(capture.ranges, {}, [](const HostRange& r) { return std::pair(r.start_ns, -r.end_ns); });
}

Launches::Launches(const Capture& capture) : capture_(capture) {
  for (std::uint32_t i = 0; i < capture.calls.size(); ++i) {
    if (capture.calls[i].correlation != 0) calls_.push_back(i);
  }
  std::ranges::stable_sort(
      calls_, {}, [&](std::uint32_t i) { return std::pair(capture_.calls[i].process, capture_.calls[i].correlation); });
}

const HostCall* Launches::of(std::uint64_t process, const GpuEvent& event) const {
  if (event.correlation == 0) return nullptr;
  const auto key = [&](std::uint32_t i) { return std::pair(capture_.calls[i].process, capture_.calls[i].correlation); };
  const std::pair wanted(process, event.correlation);
  const auto at = std::ranges::lower_bound(calls_, wanted, {}, key);
  return at != calls_.end() && key(*at) == wanted ? &capture_.calls[*at] : nullptr;
}

}  // namespace harness::traces
