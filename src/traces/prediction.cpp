#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "explain/explain.h"
#include "plan/plan.h"
#include "sweep/recorder.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

using analysis::Breakdown;

bool has_axes(const Breakdown& b) {
  return std::ranges::any_of(all_parts, [&](Part part) {
    return is_exposed_communication(part) && part != Part::communication && part != Part::world && b[part];
  });
}

// Returns the row that a part counts in; parts that the trace cannot separate share one.
std::string row_of(Part part, const Breakdown& measured, bool recomputes) {
  const bool waits = part == Part::waiting || part == Part::bubble;
  const bool told = measured[Part::waiting] || measured[Part::bubble];
  if (recomputes && is_computation(part)) return "computation";
  if (!has_axes(measured) && is_exposed_communication(part)) return told ? "communication" : "communication, waiting";
  if (waits && !told) return has_axes(measured) ? "waiting and bubble" : "communication, waiting";
  if (part == Part::world) return name_of(Part::communication);
  return part == Part::loading ? name_of(Part::idle) : name_of(part);
}

std::vector<PartBeside> parts_beside(const TimedStep& measured, const Breakdown& predicted) {
  std::vector<PartBeside> rows;
  const bool recomputes = predicted[Part::recomputation].value_or(0) > 0 && !measured.breakdown[Part::recomputation];
  const auto row = [&](const std::string& name) -> PartBeside& {
    const auto found = std::ranges::find(rows, name, &PartBeside::name);
    return found == rows.end() ? rows.emplace_back(PartBeside{name}) : *found;
  };
  for (const Part part : all_parts) {
    if (!measured.breakdown[part] && !predicted[part]) continue;
    PartBeside& sum = row(row_of(part, measured.breakdown, recomputes));
    sum.measured_s += measured.breakdown[part].value_or(0);
    sum.predicted_s += predicted[part].value_or(0);
  }
  if (measured.copies_s > 0) row("copies").measured_s += measured.copies_s;
  std::erase_if(rows, [](const PartBeside& r) { return r.measured_s <= 0 && r.predicted_s <= 0; });
  std::ranges::stable_sort(rows, std::greater(), &PartBeside::excess_s);
  return rows;
}

// Returns the times that the diagnosis compares, from traces of all ranks.
explain::Picture picture_of(const Report& report) {
  explain::Picture picture{report.mean.breakdown.step_s, {}, report.mean.breakdown.kinds};
  for (analysis::KindTime& time : picture.kinds)  // "all-reduce" is "all_reduce" in harness
    time.kind = time.kind == "send and receive" ? "send" : replaced(time.kind, {{'-', "_"}});
  for (const TracedGpu& gpu : report.gpus) {
    const Breakdown& b = gpu.step.breakdown;
    explain::RankTime& rank = picture.ranks.emplace_back();
    rank.computes_s = b.parts.computation();
    for (const analysis::KindTime& kind : b.kinds) rank.communicates_s += kind.group.empty() ? 0 : kind.takes_s;
    rank.waits_s = gpu.step.waits_s;
  }
  return picture;
}

// Describes exposed communication that is predicted to be hidden; "": there is none.
std::string overlap_cause(const Breakdown& measured, const Breakdown& predicted) {
  const double hidden_s = measured.overlapped_s(), expected_s = predicted.overlapped_s();
  constexpr double notable = 0.02;
  const bool excess = measured.step_s - predicted.step_s > notable * predicted.step_s;
  if (!excess || expected_s < 2 * hidden_s || expected_s - hidden_s < notable * measured.step_s) return "";
  return fmt::format(
      "{} of communication that should be hidden behind computation are not: overlap is off, or does not work.",
      ms(expected_s - hidden_s));
}

}  // namespace

Beside beside_prediction(const Report& report, config::Experiment experiment) {
  if (!experiment.hardware || !experiment.calibration)
    fail("nothing can be predicted: the configuration names no GPU; add `hardware: h100-sxm`, say");
  experiment.changes.clear();
  experiment.faults = {};
  Beside beside;
  beside.hardware = experiment.hardware->name;
  beside.ranks = static_cast<int>(
      std::clamp<std::int64_t>(report.gpus.front().world.value_or(std::ssize(report.gpus)), 1, 1 << 20));
  const int on_node = experiment.hardware->gpus_of_node > 0 ? experiment.hardware->gpus_of_node : 8;
  const auto topology = machine::Topology::node_by_node(beside.ranks, on_node);
  const plan::Plan plan = plan::prepare(experiment, beside.ranks, {}, plan::Processes::as_needed, topology);
  store::Result result = sweep::planned_result(plan);
  for (std::int32_t rank = 0; rank < beside.ranks; ++rank) {
    store::ResultRank& row = result.rank_table.emplace_back();
    row.rank = rank;
    row.node = topology.node_of[static_cast<std::size_t>(rank)];
  }
  const explain::Reference reference{experiment, topology.node_of};
  const explain::CaseModel model(reference, result, 0);
  const Breakdown predicted = analysis::break_down(model.predict({})).front().mean;
  beside.measured_s = report.mean.breakdown.step_s;
  beside.predicted_s = predicted.step_s;
  const plan::PlannedCase& baseline = plan.baseline();
  const double peak = plan::configured_peak(experiment, baseline.settings.precision).flops * beside.ranks;
  if (peak > 0 && baseline.survey.flop.model > 0) {
    beside.measured_mfu = baseline.survey.flop.model / (beside.measured_s * peak);
    beside.predicted_mfu = baseline.survey.flop.model / (beside.predicted_s * peak);
  }
  beside.parts = parts_beside(report.mean, predicted);
  constexpr std::int64_t most_diagnosed = 4096;
  const bool other_job = beside.measured_mfu.value_or(0) > 1 || beside.measured_s < 0.5 * beside.predicted_s;
  if (other_job) {
    beside.causes.emplace_back(
        "The step is much shorter than predicted: the configuration describes another model or batch, or another GPU.");
    return beside;
  }
  if (const std::string overlap = overlap_cause(report.mean.breakdown, predicted); !overlap.empty()) {
    beside.causes.push_back(overlap);
  } else if (std::ssize(report.gpus) == beside.ranks && beside.ranks <= most_diagnosed) {
    for (const analysis::Cause& cause : explain::diagnose(model, picture_of(report), result).causes) {
      std::string words = cause.words;
      for (const auto& [fault, other] : cause.or_else) words += "; or " + other;
      beside.causes.push_back(words + fmt::format(". It explains {} of the difference.", percent(cause.explains, 0)));
    }
  }
  const PartBeside& most = beside.parts.front();
  if (beside.causes.empty() && most.excess_s() > 0.02 * beside.measured_s && beside.measured_s > beside.predicted_s)
    beside.causes.push_back(fmt::format("{}: {} more than predicted, which no fault that is known explains.", most.name,
                                        ms(most.excess_s())));
  return beside;
}

evidence::Answer answer_of(const Beside& beside, const std::string& configuration) {
  evidence::Answer answer;
  answer.object = "prediction";
  answer.kind = "prediction of this job";
  answer.files = {configuration};
  answer.headline = fmt::format("step of {}, predicted {} on {} of {}: {}", ms(beside.measured_s),
                                ms(beside.predicted_s), plural(beside.ranks, "rank"), beside.hardware,
                                signed_percent(beside.measured_s / beside.predicted_s - 1));
  answer.facts = {{"step_time_s", beside.measured_s}, {"predicted_step_time_s", beside.predicted_s}};
  if (beside.measured_mfu) {
    answer.fact("mfu", *beside.measured_mfu);
    answer.fact("predicted_mfu", *beside.predicted_mfu);
    answer.tell("MFU", fmt::format("{}, predicted {}", percent(*beside.measured_mfu), percent(*beside.predicted_mfu)));
  }
  evidence::Value parts = evidence::Value::array();
  constexpr std::size_t most = 6;
  for (const PartBeside& part : beside.parts) {
    parts.push_back({{"part", part.name},
                     {"measured_ms", 1e3 * part.measured_s},
                     {"predicted_ms", 1e3 * part.predicted_s},
                     {"excess_ms", 1e3 * part.excess_s()}});
    if (answer.evidence.size() < most)
      answer.tell(part.name, fmt::format("{}, predicted {}: {} ms", ms(part.measured_s), ms(part.predicted_s),
                                         signed_number(1e3 * part.excess_s(), 2)));
  }
  answer.members["parts"] = std::move(parts);
  constexpr std::size_t most_causes = 2;
  answer.problems = beside.causes;
  answer.problems.resize(std::min(most_causes, answer.problems.size()));
  return answer;
}

}  // namespace harness::traces
