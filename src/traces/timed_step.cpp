#include "traces/timed_step.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace harness::traces {
namespace {

// Describes the events of one capture by kind, part and phase.
class Describer {
 public:
  Describer(const Capture& capture, StepWork& work) : capture_(capture), work_(work) { work_.texts.emplace_back(); }
  void describe(const GpuEvent& event, StepEvent& e);

 private:
  std::uint32_t text(std::string_view words) {
    const auto [entry, added] = numbers_.try_emplace(std::string(words), work_.texts.size());
    if (added) work_.texts.emplace_back(words);
    return static_cast<std::uint32_t>(entry->second);
  }
  std::string_view phase_of(const GpuEvent& event, std::string_view kernel_class) const;

  const Capture& capture_;
  StepWork& work_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::unordered_map<std::uint32_t, Part> axes_;  // by the name of the group's description
};

std::string_view Describer::phase_of(const GpuEvent& event, std::string_view kernel_class) const {
  if (capture_.backward_threads.empty()) return "";
  if (kernel_class.starts_with("optimizer")) return "optimizer";
  if (!event.is_launched()) return "";
  const bool backward = std::ranges::find(capture_.backward_threads, event.thread) != capture_.backward_threads.end();
  return backward ? "backward" : "forward";
}

void Describer::describe(const GpuEvent& event, StepEvent& e) {
  const Operation* const arguments =
      event.operation < 0 ? nullptr : &capture_.operations[static_cast<std::size_t>(event.operation)];
  e.copies = !event.is_kernel();
  if (e.copies) return;
  if (arguments != nullptr && arguments->part) {
    e.part = *arguments->part;
    e.kind = text(capture_.names[arguments->kind]);
    e.group = text(capture_.names[arguments->group]);
    e.phase = text(capture_.names[arguments->phase]);
    e.recomputed = e.part == Part::recomputation;
    e.waiting_s = arguments->waiting_s;
    e.bubble_s = arguments->bubble_s;
    return;
  }
  const std::string_view name = event.work == Work::graph ? "" : class_names()[event.kernel_class];
  e.kind = text(event.work == Work::graph ? "CUDA graphs" : title_of(event.kernel_class));
  e.phase = text(phase_of(event, name));
  if (name == "matmul") e.part = Part::matrix_products;
  if (name == "attention") e.part = Part::attention;
  if (!is_communication(event.kernel_class)) return;
  e.part = Part::communication;
  if (arguments != nullptr) {
    const auto [axis, added] = axes_.try_emplace(arguments->group, Part::communication);
    if (added) axis->second = axis_of(capture_.names[arguments->group]);
    e.part = axis->second;
  }
  e.group = text(key_of(e.part));
}

int priority_of(const StepEvent& e) {
  if (e.copies) return 2 + static_cast<int>(part_count);
  if (is_computation(e.part)) return e.main ? 0 : 1;
  return 2 + static_cast<int>(index_of(e.part));
}

// A stretch of an event that belongs to one part.
struct Piece {
  std::size_t event = 0;
  Part part = Part::idle;
};

struct Pieces {
  std::vector<Piece> all;
  std::vector<analysis::Occupant> occupants;

  void add(const StepEvent& e, std::size_t index) {
    double start_s = e.start_s;
    const bool computes = is_computation(e.part) && !e.copies;
    const auto until = [&](Part part, double end_s) {
      all.push_back({index, part});
      occupants.push_back({start_s, end_s, priority_of(e), computes});
      start_s = end_s;
    };
    const auto within = [&](double seconds) { return std::clamp(start_s + seconds, start_s, e.end_s); };
    if (std::isfinite(e.waiting_s)) until(Part::waiting, within(e.waiting_s));
    if (std::isfinite(e.bubble_s)) until(Part::bubble, within(e.bubble_s));
    until(e.part, e.end_s);
  }
};

template <class Key>
std::vector<std::pair<Key, double>> largest_first(const std::map<Key, double>& seconds) {
  std::vector<std::pair<Key, double>> sorted(seconds.begin(), seconds.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<Key, double>::second);
  return sorted;
}

void add_idle(const StepWork& work, const Pieces& pieces, const analysis::Occupancy& occupancy,
              analysis::Breakdown& b) {
  b.parts.add(Part::idle, 0);
  std::map<analysis::IdlePlace, double> places;
  const auto phase = [&](std::size_t piece) { return work.texts[work.events[pieces.all[piece].event].phase]; };
  for (const analysis::Gap& gap : occupancy.gaps) {
    double idle_s = gap.end_s - gap.start_s;
    if (gap.start_s <= 0 && work.loading_s > 0) {
      const double loading_s = std::min(work.loading_s, idle_s);
      b.parts.add(Part::loading, loading_s);
      idle_s -= loading_s;
    }
    b.parts.add(Part::idle, idle_s);
    if (!gap.before || !gap.after) continue;
    const std::string before = phase(*gap.before), after = phase(*gap.after);
    using enum analysis::IdlePlace::Kind;
    if (!before.empty() && !after.empty())
      places[{before == after ? within_phase : between_phases, before, after}] += idle_s;
  }
  b.idle = largest_first(places);
  const double loading_s = work.idle_s[static_cast<std::size_t>(Cause::loading)];
  if (loading_s <= 0) return;
  b.parts.add(Part::loading, loading_s);
  b.parts.add(Part::idle, -loading_s);
}

// Whether one event stands for both: an equal kind of work that goes on without a gap. It bounds memory where millions
// of events begin at once.
bool joins(const StepEvent& before, const StepEvent& e) {
  if (e.collective || before.collective || !is_computation(e.part) || e.start_s > before.end_s) return false;
  return e.part == before.part && e.kind == before.kind && e.phase == before.phase && e.main == before.main &&
         e.copies == before.copies && e.recomputed == before.recomputed;
}

}  // namespace

Part axis_of(std::string_view description) {
  static constexpr std::array<std::pair<std::string_view, Part>, 11> axes{{{"EXPERT", Part::communication},
                                                                           {"mesh_e", Part::communication},
                                                                           {"TENSOR_MODEL_PARALLEL", Part::tensor},
                                                                           {"mesh_tp", Part::tensor},
                                                                           {"PIPELINE_MODEL_PARALLEL", Part::pipeline},
                                                                           {"mesh_pp", Part::pipeline},
                                                                           {"DATA_PARALLEL_GROUP", Part::data},
                                                                           {"INTRA_DISTRIBUTED_OPTIMIZER", Part::data},
                                                                           {"mesh_dp", Part::data},
                                                                           {"mesh_fsdp", Part::data},
                                                                           {"EMBEDDING_GROUP", Part::embedding}}};
  for (const auto& [text, axis] : axes) {
    if (description.find(text) != std::string_view::npos) return axis;
  }
  return Part::communication;
}

StepWork work_in(const Window& window, const Capture& capture, const Device& device, const Timeline& timeline,
                 const IdleTimes& idle_s) {
  StepWork work;
  const double from_s = timeline.seconds(window.start_ns), to_s = timeline.seconds(window.end_ns);
  work.step_s = to_s - from_s;
  work.loading_s = device.loading_s;
  work.idle_s = idle_s;
  Describer describer(capture, work);
  std::size_t collectives = 0;
  for (const GpuEvent& event : device.events) {
    if (event.start_ns >= window.end_ns) break;
    const bool communicates = is_communication(event.kernel_class);
    const std::size_t collective = collectives;
    if (communicates) ++collectives;
    if (event.end_ns <= window.start_ns) continue;
    StepEvent e;
    e.start_s = static_cast<double>(event.start_ns - window.start_ns) * 1e-9;
    e.end_s = static_cast<double>(event.end_ns - window.start_ns) * 1e-9;
    e.main = event.stream == timeline.main_stream;
    if (communicates) e.collective = collective;
    describer.describe(event, e);
    if (!work.events.empty() && joins(work.events.back(), e)) {
      work.events.back().end_s = std::max(work.events.back().end_s, e.end_s);
    } else {
      work.events.push_back(e);
    }
  }
  return work;
}

TimedStep time_step(const StepWork& work) {
  Pieces pieces;
  for (std::size_t i = 0; i < work.events.size(); ++i) pieces.add(work.events[i], i);
  const analysis::Occupancy occupancy = analysis::occupy(pieces.occupants, work.step_s);
  TimedStep step;
  step.idle_s = work.idle_s;
  analysis::Breakdown& b = step.breakdown;
  b.step_s = work.step_s;
  std::map<std::string, double> other;
  std::map<Part, double> overlapped;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, analysis::KindTime> kinds;
  for (std::size_t i = 0; i < pieces.all.size(); ++i) {
    const auto& [event, part] = pieces.all[i];
    const StepEvent& e = work.events[event];
    const double owned_s = occupancy.owned_s[i];
    if (e.copies) {
      step.copies_s += owned_s;
      continue;
    }
    b.parts.add(part, owned_s);
    const std::string& kind = work.texts[e.kind];
    if (part == Part::other_compute) other[kind] += owned_s;
    if (occupancy.hidden_s[i] > 0) overlapped[e.part] += occupancy.hidden_s[i];
    const double takes_s = std::max(0.0, pieces.occupants[i].end_s - pieces.occupants[i].start_s);
    if (part == Part::waiting || part == Part::bubble) {
      step.waits_s += takes_s;
      continue;
    }
    analysis::KindTime& sum = kinds[{e.kind, e.group, e.recomputed}];
    sum.kind = kind;
    sum.recomputed = e.recomputed;
    sum.group = work.texts[e.group];
    sum.takes_s += takes_s;
    sum.owns_s += owned_s;
  }
  b.other_compute = largest_first(other);
  b.overlapped = largest_first(overlapped);
  for (const auto& [key, sum] : kinds) b.kinds.push_back(sum);
  add_idle(work, pieces, occupancy, b);
  return step;
}

TimedStep mean_of(const std::vector<TimedStep>& steps) {
  TimedStep mean;
  std::vector<analysis::Breakdown> breakdowns;
  const double share = 1.0 / static_cast<double>(steps.size());
  for (const TimedStep& step : steps) {
    breakdowns.push_back(step.breakdown);
    mean.copies_s += share * step.copies_s;
    mean.waits_s += share * step.waits_s;
    for (std::size_t i = 0; i < cause_count; ++i) mean.idle_s[i] += share * step.idle_s[i];
  }
  mean.breakdown = analysis::mean_of(breakdowns);
  return mean;
}

}  // namespace harness::traces
