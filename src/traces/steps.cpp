#include "traces/timeline.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"

namespace harness::traces {

namespace {

constexpr std::size_t most_marks = 1000;

// Returns the first step mark in a name: "ProfilerStep#4", or for Nsight Systems also "training_step_4", "iteration 4";
// "": none.
std::string mark_in(const std::string& name, bool any_word) {
  static constexpr std::array<std::string_view, 6> words{"profilerstep", "training_step", "train_step",
                                                         "iteration",    "iter",          "step"};
  const std::string low = lower(name);
  std::size_t first = std::string::npos;
  std::string mark;
  for (const std::string_view word : words) {
    const bool profiler = word == words[0];
    if (!profiler && !any_word) continue;
    for (std::size_t at = low.find(word); at < first; at = low.find(word, at + 1)) {
      std::size_t end = at + word.size();
      if (profiler && low.substr(end, 1) == " ") ++end;
      if (profiler && low.substr(end, 1) != "#") continue;
      end = std::min(low.find_first_not_of(profiler ? "#" : " _#:", end), low.size());
      const std::size_t digits = std::min(low.find_first_not_of("0123456789", end), low.size());
      if (digits == end) continue;
      first = at;
      mark = name.substr(at, digits - at);
    }
  }
  std::erase(mark, ' ');
  return mark;
}

std::vector<Window> marks_of(const Capture& capture, const Device& device) {
  const bool nsight = capture.format == "Nsight Systems";
  std::vector<Window> marks;
  std::set<std::string> seen;
  std::unordered_map<std::uint32_t, std::string> known;
  for (const HostRange& range : capture.ranges) {
    if (range.cause || capture.threads.process_of(range.thread) != device.process) continue;
    const auto [entry, added] = known.try_emplace(range.name);
    if (added) entry->second = mark_in(capture.names[range.name], nsight);
    if (entry->second.empty() || marks.size() >= most_marks) continue;
    if (!nsight && (!capture.names[range.name].starts_with("ProfilerStep") || !seen.insert(entry->second).second))
      continue;  // the profiler may write the same step twice
    marks.push_back({entry->second, range.start_ns, range.end_ns});
  }
  return marks;
}

// A mark's window ends where the next one begins. The last mark has no window unless it is the only one in a complete
// file.
std::vector<Window> device_windows(const std::vector<Window>& marks, const Device& device, bool cut_short) {
  std::vector<std::optional<Window>> spans(marks.size());  // start and end of the events each mark launched
  std::vector<std::int64_t> latest_ns;                     // latest end of each mark and those before it
  for (const Window& mark : marks)
    latest_ns.push_back(latest_ns.empty() ? mark.end_ns : std::max(latest_ns.back(), mark.end_ns));
  std::size_t looked_at = 0;
  for (const GpuEvent& event : device.events) {
    if (!event.is_launched()) continue;
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(marks, event.launch_ns, {}, &Window::start_ns) -
                                      marks.begin());
    for (; i > 0 && latest_ns[i - 1] > event.launch_ns; --i) {
      if (++looked_at > 8 * device.events.size() + 1'000'000) return {};  // too much overlap between marks
      if (marks[i - 1].end_ns <= event.launch_ns) continue;
      std::optional<Window>& span = spans[i - 1];
      if (!span) span = Window{marks[i - 1].name, event.start_ns, event.end_ns};
      span->start_ns = std::min(span->start_ns, event.start_ns);
      span->end_ns = std::max(span->end_ns, event.end_ns);
    }
  }
  std::vector<Window> windows;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i]) continue;
    Window window = *spans[i];
    if (i + 1 < spans.size() && spans[i + 1]) {
      window.end_ns = spans[i + 1]->start_ns;
    } else if (spans.size() > 1 || cut_short) {
      continue;
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

bool is_optimizer(const GpuEvent* event) {
  return class_names()[event->kernel_class].starts_with("optimizer");
}

// A step that is marked alone also has the time of the host before its first GPU event, as for loading data, and after
// its last one, unless another step runs.
void widen(Window& step, const Window& mark, const Device& device) {
  std::int64_t from_ns = mark.start_ns;
  for (const GpuEvent& event : device.events) {
    if (event.start_ns < step.start_ns) from_ns = std::max(from_ns, event.end_ns);
  }
  step.start_ns = std::min(step.start_ns, from_ns);
  step.end_ns = std::max(step.end_ns, mark.end_ns);
}

// Returns whether windows are parts of steps: the GPU runs an optimizer, but not in most of them.
bool are_parts(const std::vector<Window>& windows, const Device& device) {
  std::set<const Window*> with;
  for (const GpuEvent& event : device.events) {
    const auto behind = std::ranges::upper_bound(windows, event.start_ns, {}, &Window::start_ns);
    if (is_optimizer(&event) && behind != windows.begin()) with.insert(&*std::prev(behind));
  }
  return !with.empty() && with.size() * 2 < windows.size();
}

std::string without_digits(std::string name) {
  std::erase_if(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  return name;
}

// Keeps the mark name that covers most time: "step 3" may be an optimizer step within "training_step_3".
std::vector<Window> outermost(std::vector<Window> marks) {
  std::map<std::string, std::int64_t> covered_ns;
  for (const Window& mark : marks) covered_ns[without_digits(mark.name)] += mark.end_ns - mark.start_ns;
  const auto most = std::ranges::max_element(covered_ns, {}, [](const auto& entry) { return entry.second; });
  std::erase_if(marks, [&](const Window& mark) { return without_digits(mark.name) != most->first; });
  return marks;
}

// Finds annotations that share a name except for digits, recur on a thread without overlap and cover most of the GPU's
// time. Those shorter than a tenth of the median are no steps; a compiling first step may have any length.
std::vector<Window> recurring_annotations(const Capture& capture, const Device& device, const Timeline& timeline) {
  constexpr std::size_t most_groups = 100'000;
  Names plain;
  std::unordered_map<std::uint32_t, std::uint32_t> plain_of;
  std::map<std::pair<Thread, std::uint32_t>, std::vector<const HostRange*>> groups;
  for (const HostRange& range : capture.ranges) {
    if (range.cause || capture.threads.process_of(range.thread) != device.process) continue;
    const auto [entry, added] = plain_of.try_emplace(range.name);
    if (added) entry->second = plain.number_of(without_digits(capture.names[range.name]));
    if (groups.size() > most_groups) break;
    std::vector<const HostRange*>& group = groups[{range.thread, entry->second}];
    if (group.size() <= most_marks) group.push_back(&range);
  }
  const auto length_ns = [](const HostRange* range) { return range->end_ns - range->start_ns; };
  std::vector<const HostRange*> best;
  std::int64_t best_ns = (timeline.end_ns - timeline.origin_ns) / 10 * 8;
  for (auto& [key, group] : groups) {
    if (group.size() > most_marks) continue;
    std::vector<const HostRange*> by_length = group;
    const auto middle = by_length.begin() + (std::ssize(group) - 1) / 2;
    std::ranges::nth_element(by_length, middle, {}, length_ns);
    const std::int64_t least_ns = length_ns(*middle) / 10;
    std::erase_if(group, [&](const HostRange* range) { return length_ns(range) < least_ns; });
    std::int64_t covered_ns = 0, last_end_ns = INT64_MIN;
    bool overlap = false;
    for (const HostRange* range : group) {
      overlap |= range->start_ns < last_end_ns;
      last_end_ns = range->end_ns;
      covered_ns += length_ns(range);
    }
    if (group.size() < 3 || overlap || covered_ns < best_ns) continue;
    best_ns = covered_ns + 1;
    best = std::move(group);
  }
  std::vector<Window> windows;
  for (const HostRange* range : best) windows.push_back({capture.names[range->name], range->start_ns, range->end_ns});
  return windows;
}

// ---- the period of a sequence

// Returns the 256 commonest distances (at least 20) between successive kernels of one name, smallest first.
std::vector<std::size_t> distances(const std::vector<const GpuEvent*>& sequence) {
  constexpr std::size_t least = 20, most = 256;
  std::unordered_map<std::uint32_t, std::size_t> last_at;
  std::unordered_map<std::size_t, std::size_t> count_of;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const auto [entry, added] = last_at.try_emplace(sequence[i]->name, i);
    if (!added && i - entry->second >= least) ++count_of[i - entry->second];
    entry->second = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> by_count;
  for (const auto& [distance, count] : count_of) by_count.emplace_back(count, distance);
  std::ranges::sort(by_count, std::greater());
  by_count.resize(std::min(most, by_count.size()));
  std::vector<std::size_t> result;
  for (const auto& [count, distance] : by_count) result.push_back(distance);
  std::ranges::sort(result);
  return result;
}

// Returns whether at least 95 % of the kernels have the same name as the kernel `distance` earlier.
bool repeats_after(const std::vector<const GpuEvent*>& sequence, std::size_t distance) {
  std::size_t others = 0;
  for (std::size_t i = distance; i < sequence.size(); ++i) {
    if (sequence[i]->name != sequence[i - distance]->name && ++others * 20 > sequence.size() - distance) return false;
  }
  return true;
}

// Returns no windows if the kernels do not repeat. Without an optimizer, two similar periods prove nothing.
Steps find_period(const Device& device, const Timeline& timeline) {
  constexpr std::size_t most_in_sequence = 1'000'000;
  std::vector<const GpuEvent*> sequence;
  for (const GpuEvent& event : device.events) {
    if (event.work == Work::kernel && event.stream == timeline.main_stream && sequence.size() < most_in_sequence)
      sequence.push_back(&event);
  }
  const bool any_optimizer = std::ranges::any_of(sequence, is_optimizer);
  for (const std::size_t p : distances(sequence)) {
    if (p > sequence.size() / 2 || !repeats_after(sequence, p)) continue;
    bool whole = true;  // a step, unlike a layer, has an optimizer in each period
    for (auto at = sequence.begin(); any_optimizer && sequence.end() - at >= std::ptrdiff_t(p); at += std::ptrdiff_t(p))
      whole = whole && std::any_of(at, at + std::ptrdiff_t(p), is_optimizer);
    if (!whole) continue;
    Steps period;
    period.how = fmt::format("the kernels, which repeat after {}", p);
    period.no_optimizer = !any_optimizer;
    for (std::size_t at = 0; at + p < sequence.size() && period.windows.size() < most_marks; at += p)
      period.windows.push_back(
          {fmt::format("period {}", at / p + 1), sequence[at]->start_ns, sequence[at + p]->start_ns});
    if (period.windows.size() < (any_optimizer ? 2 : 3)) return {};
    return period;
  }
  return {};
}

bool much_different(const std::vector<Window>& windows, const Measure& measure) {
  std::vector<std::int64_t> counts;
  for (const Window& window : windows) counts.push_back(measure.kernels_in(window));
  const auto [least, most] = std::ranges::minmax(counts);
  return (most - least) * 20 > most;
}

void choose(Steps& steps, const Measure& measure, const std::string& wanted) {
  std::vector<std::int64_t> counts;
  for (const Window& window : steps.windows) counts.push_back(measure.kernels_in(window));
  // The first step is warm-up: buffers, compilation, and CUPTI loses the first kernels of a session.
  const std::size_t first = steps.windows.size() >= 3 ? 1 : 0;
  std::vector<std::int64_t> sorted(counts.begin() + static_cast<std::ptrdiff_t>(first), counts.end());
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
  const std::int64_t usual = sorted[sorted.size() / 2];
  for (std::size_t i = first; i < counts.size(); ++i) {
    if (std::abs(counts[i] - usual) * 20 <= usual) steps.alike.push_back(i);
  }
  std::vector<std::size_t> by_length = steps.alike;
  const auto length_ns = [&](std::size_t i) { return steps.windows[i].end_ns - steps.windows[i].start_ns; };
  std::ranges::sort(by_length, {}, length_ns);
  steps.shown = by_length[(by_length.size() - 1) / 2];
  const auto asked = std::ranges::find(by_length, wanted, [&](std::size_t i) { return steps.windows[i].name; });
  if (asked == by_length.end()) return;
  const std::int64_t usual_ns = length_ns(steps.shown);
  if (std::abs(length_ns(*asked) - usual_ns) * 20 <= usual_ns) steps.shown = *asked;
}

}  // namespace

std::vector<Window> windows_of(const Capture& capture, const Device& device, const Timeline& timeline) {
  std::vector<Window> windows{{"all", timeline.origin_ns, timeline.end_ns}};
  const std::vector<Window> marks = marks_of(capture, device);
  for (const Window& mark : marks) windows.push_back({"host:" + mark.name, mark.start_ns, mark.end_ns});
  for (Window& window : device_windows(marks, device, capture.cut_short))
    windows.push_back({"device:" + window.name, window.start_ns, window.end_ns});
  return windows;
}

Steps find_steps(const Capture& capture, const Device& device, const Timeline& timeline, const Measure& measure,
                 const std::string& wanted) {
  Steps steps;
  if (!device.steps.empty() &&
      std::ranges::none_of(device.events, &GpuEvent::is_launched)) {  // marked on the GPU itself
    steps.windows = device.steps;
    if (capture.cut_short) steps.windows.pop_back();
    steps.how = "ProfilerStep";
  } else {
    const bool nsight = capture.format == "Nsight Systems";
    std::vector<Window> marks = marks_of(capture, device);
    if (nsight && !marks.empty()) marks = outermost(std::move(marks));
    steps.how = nsight ? "NVTX ranges" : "ProfilerStep";
    steps.windows = device_windows(marks, device, capture.cut_short);
    steps.no_optimizer = are_parts(steps.windows, device);
    if (steps.windows.empty() || (nsight && steps.no_optimizer)) {
      marks = recurring_annotations(capture, device, timeline);
      steps.how = "annotations that recur";
      steps.windows = device_windows(marks, device, capture.cut_short);
      if (are_parts(steps.windows, device)) steps.windows.clear();
      steps.no_optimizer = false;
    }
    if (marks.size() == 1 && steps.windows.size() == 1) widen(steps.windows[0], marks[0], device);
    steps.without_last = marks.size() > 1;
  }
  std::set<std::string> names;
  for (const Window& window : steps.windows) names.insert(window.name);
  steps.numbered = !names.empty() && names.size() == steps.windows.size();
  if (steps.windows.size() < 2 || much_different(steps.windows, measure)) {
    Steps period = find_period(device, timeline);  // not numbered: the first is where the capture began
    if (!period.windows.empty() && (steps.windows.empty() || !period.no_optimizer)) steps = std::move(period);
  }
  std::erase_if(steps.windows, [](const Window& w) { return w.end_ns <= w.start_ns; });
  if (steps.windows.empty()) {
    steps.how.clear();
    return steps;
  }
  choose(steps, measure, wanted);
  return steps;
}

}  // namespace harness::traces
