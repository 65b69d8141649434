#include "sweep/recorder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/estimator.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/plan.h"
#include "sim/trust.h"
#include "store/result_file.h"
#include "workloads/workload.h"

namespace harness::sweep {

namespace {

store::ResultCase case_row(const config::Experiment& experiment, const plan::PlannedCase& planned) {
  const plan::Survey& s = planned.survey;
  store::ResultCase row;
  row.reference = static_cast<std::int32_t>(planned.reference);
  row.name = planned.name;
  row.variable = planned.variable;
  row.value = planned.value;
  for (const config::Variable& v : config::registry()) row.settings.push_back(v.print(planned.settings));
  if (!planned.is_possible()) {
    row.status = store::CaseStatus::impossible;
    row.reason = planned.impossible;
    return row;
  }
  row.reason = fmt::format("{}", fmt::join(planned.notes, "; "));
  row.ranks = planned.layout.ranks();
  row.layout = planned.layout;
  row.micro_batches = planned.micro_batches;
  row.tokens_per_step = s.tokens_per_step;
  row.model_flop_per_step = s.flop.model;
  row.noncausal_flop_per_step = s.flop.noncausal;
  row.hardware_flop_per_step = s.hardware_flop;
  row.goodput = s.goodput;
  row.planned_memory_bytes = plan::planned_memory_bytes(experiment, planned);
  row.program_hash = fmt::format("{:016x}", s.program_hash);
  return row;
}

// Rank 0 and a reader of the file hold all intervals in memory, some 300 bytes each.
constexpr std::int64_t most_intervals = 20'000'000;

// Throws Error: the budget allows `fit` rounds, but a verdict needs `least`.
[[noreturn]] void refuse_budget(const Recorder& recorder, const config::Measure& measure, double spent_s, int fit,
                                int least) {
  const store::Result& result = recorder.result();
  double least_s = spent_s;
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    if (recorder.may_run(i)) least_s += least * recorder.expected_block_s(i);
  }
  fail(
      "the time budget of {} ends after {} of {} rounds, and no verdict is possible before {}: nothing was measured. "
      "All cases take {} for {} rounds. Take fewer of them (--only), or a larger budget",
      show_seconds(measure.time_budget_s), fit, result.rounds, least, show_seconds(least_s), least);
}

}  // namespace

store::ResultBlock pending_block(const plan::Slot& slot) {
  store::ResultBlock block;
  block.round = slot.round;
  block.position = slot.position;
  block.case_index = static_cast<std::int32_t>(slot.case_index);
  block.process = slot.process;
  return block;
}

void add_record(store::Result& result, const store::DoctorRecord& doctor) {
  result.doctor = doctor;
  for (const store::ResultFinding& finding : doctor.findings) {
    if (finding.is_of_nodes()) continue;
    std::string& notes = result.cases[static_cast<std::size_t>(finding.case_index)].reason;
    notes += fmt::format("{}doctor, {}: {}", notes.empty() ? "" : "; ", finding.check, finding.evidence);
  }
}

store::Result planned_result(const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  store::Result r;
  r.tool_version = tool_version();
  r.name = e.name;
  r.backend = config::name_of(e.backend);
  r.stands_for = config::name_of(config::stands_for(e));
  r.ranks = plan.ranks;
  r.rounds = e.measure.rounds;
  r.warmup_steps = e.measure.warmup_steps;
  r.steps = e.measure.steps;
  r.seed = e.measure.seed;
  r.smallest_effect = sim::smallest_effect(e);
  r.confidence = e.measure.confidence;
  r.interval = config::traits_of(e.backend).predicts() ? "predicted" : "level";
  r.looks = fmt::format("{}", fmt::join(e.measure.looks, ","));
  r.config_text = e.text;
  r.config_path = e.path;
  r.overrides = e.overrides;
  r.model = e.model.resolved();
  r.flop_formula = workloads::workload_of(e.baseline).flop_formula(e.model);
  r.variables = config::variable_names();
  r.warnings = plan::warnings_of(plan);
  for (std::int32_t i = 0; i < std::ssize(plan.cases); ++i) {
    const plan::PlannedCase& planned = plan.cases[static_cast<std::size_t>(i)];
    r.cases.push_back(case_row(plan.experiment, planned));
    for (std::int32_t rank = 0; planned.is_possible() && rank < planned.layout.ranks(); ++rank) {
      const program::Coordinates at = planned.layout.coordinates(rank);
      r.roles.push_back({i, rank, program::role_of(planned.layout, planned.survey.role_axes, at), at});
    }
    const workloads::Rate& rate = planned.survey.rate;
    if (rate.repetitions == 0) continue;
    r.points.push_back({i, rate.operation, rate.repetitions, rate.bytes, rate.bus_factor, 0, "",
                        fmt::format("{}", fmt::join(planned.uses, "; ")), rate.count});
  }
  for (const plan::Slot& slot : plan.schedule) {
    r.blocks.push_back(pending_block(slot));
  }
  return r;
}

std::int64_t needed_space(const plan::Plan& plan) {
  // An operation may consist of several kernels, and thus several intervals.
  constexpr std::int64_t intervals_of_operation = 2;
  const bool all_ranks = plan.experiment.measure.timeline == config::Timelines::all;
  store::Result result = planned_result(plan);
  if (plan.experiment.measure.auto_steps) result.steps = most_auto_steps;
  store::TimelineRows expected;
  for (const plan::PlannedCase& planned : plan.cases) {
    std::int64_t sorts = 0;  // of operations, on the rank with the most
    const auto roles = std::max<std::int64_t>(1, std::ssize(planned.survey.counts));
    const std::int64_t kept_of_role = all_ranks ? planned.layout.ranks() / roles : 1;
    for (const program::Count& count : planned.survey.counts) {
      expected.intervals += kept_of_role * intervals_of_operation * count.operations;
      sorts = std::max(sorts, static_cast<std::int64_t>(count.flop_kinds.size() + count.traffic.size()) + 8);
    }
    expected.totals += sorts * plan.ranks;
  }
  if (all_ranks && expected.intervals > most_intervals) {
    fail(
        "measure.timeline: all would keep up to {} million intervals of profiled steps; at most {} million fit: try "
        "fewer cases (--only), or timeline: roles",
        expected.intervals / 1'000'000, most_intervals / 1'000'000);
  }
  return store::most_bytes(result, expected);
}

int auto_steps(double set_up_s, double step_s, int warmup_steps) {
  constexpr double share = 0.75;
  constexpr int min_steps = 3;
  const double fixed_s = set_up_s + warmup_steps * step_s;
  const auto most = static_cast<double>(std::min<std::int64_t>(most_auto_steps, workloads::loss_ring - warmup_steps));
  return static_cast<int>(std::clamp<double>(std::round(share * fixed_s / step_s), min_steps, most));
}

bool decide_steps(Recorder& recorder, config::Measure& measure) {
  if (!measure.auto_steps) return false;
  const CaseState& baseline = recorder.state(0);
  if (!(baseline.step_s > 0)) return false;
  measure.steps = recorder.draft().steps = auto_steps(baseline.set_up_s, baseline.step_s, measure.warmup_steps);
  return true;
}

void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s, bool interrupted) {
  store::Result& result = recorder.draft();
  if (measure.time_budget_s <= 0) return;
  int fit = 0;
  while (fit < result.rounds && spent_s + recorder.expected_s(fit + 1) <= measure.time_budget_s) ++fit;
  const int least = measure.looks.empty() ? analysis::least_pairs : measure.looks.front();
  const bool too_few = fit < std::min(least, result.rounds) && analysis::declared_comparisons(result) > 0;
  if (too_few && !interrupted) refuse_budget(recorder, measure, spent_s, fit, least);
  const int rounds = std::max(too_few ? least : 1, fit);
  if (rounds >= result.rounds || !measure.looks.empty()) return;
  recorder.warn(fmt::format(
      "{} rounds were reduced to {} before the first block, to fit the time budget of {}: preparation took {}, a round "
      "takes about {}. A larger time_budget allows all of them",
      measure.rounds, rounds, show_seconds(measure.time_budget_s), show_seconds(spent_s),
      show_seconds(recorder.expected_s(fit + 1) / (fit + 1))));
  result.rounds = rounds;
  std::erase_if(result.blocks, [&](const store::ResultBlock& block) { return block.round >= rounds; });
}

}  // namespace harness::sweep
