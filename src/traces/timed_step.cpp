#include "traces/timeline.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace harness::traces {
namespace {

std::string_view phase_of(const GpuEvent& event, std::string_view kernel_class, const std::vector<Thread>& backward) {
  if (backward.empty()) return "";
  if (kernel_class.starts_with("optimizer")) return "optimizer";
  if (!event.is_launched()) return "";
  return std::ranges::find(backward, event.thread) != backward.end() ? "backward" : "forward";
}

// Assigns kind, part and phase to an event. Names of the capture are copied into `words`, which outlive it.
void describe(const GpuEvent& event, const Capture& capture, std::set<std::string>& words,
              analysis::StepOperation& operation) {
  if (!event.is_kernel()) return;  // copies and memsets belong to no part
  const Operation* const arguments =
      event.operation < 0 ? nullptr : &capture.operations[static_cast<std::size_t>(event.operation)];
  if (arguments != nullptr && arguments->part) {
    const auto keep = [&](std::uint32_t name) -> std::string_view { return *words.insert(capture.names[name]).first; };
    operation.part = arguments->part;
    operation.kind = keep(arguments->kind);
    operation.group = keep(arguments->group);
    operation.phase = keep(arguments->phase);
    operation.recomputed = operation.part == Part::recomputation;
    operation.waiting_s = arguments->waiting_s;
    operation.bubble_s = arguments->bubble_s;
    return;
  }
  const std::string_view name = event.work == Work::graph ? "" : class_names()[event.kernel_class];
  operation.kind = event.work == Work::graph ? "CUDA graphs" : title_of(event.kernel_class);
  operation.phase = phase_of(event, name, capture.backward_threads);
  operation.part = Part::other_compute;
  if (name == "matrix_products") operation.part = Part::matrix_products;
  if (name == "attention") operation.part = Part::attention;
  if (!is_communication(event.kernel_class)) return;
  operation.part = Part::communication;
  if (arguments != nullptr) operation.part = axis_of(capture.names[arguments->group]);
  operation.group = key_of(*operation.part);
}

// Returns whether one operation can represent both: work of equal kind without a gap. This bounds memory if millions of
// events begin at once.
bool joins(const analysis::StepOperation& before, const analysis::StepOperation& next) {
  if (next.start_s > before.end_s || (next.part && !is_computation(*next.part))) return false;
  const auto described = [](const analysis::StepOperation& o) {
    return std::tie(o.part, o.kind, o.phase, o.main, o.recomputed);
  };
  return described(before) == described(next);
}

}  // namespace

Part axis_of(std::string_view description) {
  const auto has = [&](std::string_view names) { return evidence::has_any(description, names); };
  if (has("EXPERT|mesh_e")) return Part::communication;
  if (has("TENSOR_MODEL_PARALLEL|mesh_tp")) return Part::tensor;
  if (has("PIPELINE_MODEL_PARALLEL|mesh_pp")) return Part::pipeline;
  if (has("DATA_PARALLEL_GROUP|INTRA_DISTRIBUTED_OPTIMIZER|mesh_dp|mesh_fsdp")) return Part::data;
  return has("EMBEDDING_GROUP") ? Part::embedding : Part::communication;
}

StepWork work_in(const Window& window, const Capture& capture, const Device& device, const Timeline& timeline) {
  StepWork work;
  work.step_s = timeline.seconds(window.end_ns) - timeline.seconds(window.start_ns);
  work.loading_s = device.loading_s;
  std::size_t collectives = 0;
  for (const GpuEvent& event : device.events) {
    if (event.start_ns >= window.end_ns) break;
    const bool communicates = is_communication(event.kernel_class);
    const std::size_t collective = communicates ? collectives++ : 0;
    if (event.end_ns <= window.start_ns) continue;
    analysis::StepOperation operation;
    operation.start_s = static_cast<double>(event.start_ns - window.start_ns) * 1e-9;
    operation.end_s = static_cast<double>(event.end_ns - window.start_ns) * 1e-9;
    operation.main = event.stream == timeline.main_stream;
    describe(event, capture, *work.words, operation);
    if (!work.operations.empty() && joins(work.operations.back(), operation)) {
      work.operations.back().end_s = std::max(work.operations.back().end_s, operation.end_s);
      continue;
    }
    if (communicates) work.collectives.emplace_back(work.operations.size(), collective);
    work.operations.push_back(operation);
  }
  return work;
}

TimedStep time_step(const StepWork& work) {
  auto [b, copies_s, waits_s] =
      analysis::divide_step(work.operations, work.step_s, work.loading_s > 0 ? work.loading_s : NAN);
  if (const double loading_s = work.idle_s[Cause::loading]; loading_s > 0) {
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
    for (std::size_t i = 0; i < cause_count; ++i) mean.idle_s.of_cause[i] += share * step.idle_s.of_cause[i];
    mean.idle_s.stalled_s += share * step.idle_s.stalled_s;
  }
  mean.breakdown = analysis::mean_of(breakdowns);
  return mean;
}

}  // namespace harness::traces
