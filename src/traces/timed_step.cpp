#include "traces/timed_step.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/breakdown.h"

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
  std::vector<analysis::StepOperation> operations;
  operations.reserve(work.events.size());
  for (const StepEvent& e : work.events) {
    operations.push_back({.start_s = e.start_s,
                          .end_s = e.end_s,
                          .part = e.copies ? std::nullopt : std::optional(e.part),
                          .main = e.main,
                          .kind = work.texts[e.kind],
                          .group = work.texts[e.group],
                          .phase = work.texts[e.phase],
                          .recomputed = e.recomputed,
                          .waiting_s = e.waiting_s,
                          .bubble_s = e.bubble_s});
  }
  auto [b, copies_s, waits_s] =
      analysis::divide_step(operations, work.step_s, work.loading_s > 0 ? work.loading_s : NAN);
  if (const double loading_s = work.idle_s[static_cast<std::size_t>(Cause::loading)]; loading_s > 0) {
    b.parts.add(Part::loading, loading_s);
    b.parts.add(Part::idle, -loading_s);
  }
  return {std::move(b), copies_s, waits_s, work.idle_s};
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
