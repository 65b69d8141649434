#include "sweep/planned_result.h"

#include <algorithm>

#include "base/error.h"
#include "base/identity.h"
#include "plan/fit.h"
#include "sim/trust.h"
#include "store/result_file.h"
#include "sweep/decide.h"

namespace harness::sweep {
namespace {

store::ResultCase case_row(config::BackendKind backend, const plan::PlannedCase& planned) {
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
  row.planned_memory_bytes = plan::planned_memory_bytes(backend, planned);
  row.program_hash = fmt::format("{:016x}", s.program_hash);
  return row;
}

void add_roles(const plan::PlannedCase& planned, std::int32_t case_index, std::vector<store::ResultRole>& roles) {
  if (!planned.is_possible()) return;
  for (std::int32_t rank = 0; rank < planned.layout.ranks(); ++rank) {
    const program::Coordinates at = planned.layout.coordinates(rank);
    roles.push_back({case_index, rank, program::role_of(planned.layout, planned.survey.role_axes, at), at});
  }
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
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    r.cases.push_back(case_row(plan.experiment.backend, plan.cases[i]));
    add_roles(plan.cases[i], static_cast<std::int32_t>(i), r.roles);
    const workloads::Rate& rate = plan.cases[i].survey.rate;
    if (rate.repetitions == 0) continue;
    r.points.push_back({static_cast<std::int32_t>(i), rate.operation, rate.repetitions, rate.bytes, rate.bus_factor, 0,
                        "", fmt::format("{}", fmt::join(plan.cases[i].uses, "; ")), rate.count});
  }
  for (const plan::Slot& slot : plan.schedule) {
    r.blocks.push_back(pending_block(slot));
  }
  return r;
}

namespace {

// Rank 0 holds all intervals while it prepares, as does a reader of the file: some 300 bytes each.
constexpr std::int64_t most_intervals = 20'000'000;

}  // namespace

std::int64_t needed_space(const plan::Plan& plan) {
  // An operation may be several kernels, and so several intervals.
  constexpr std::int64_t intervals_of_operation = 2;
  const bool all_ranks = plan.experiment.measure.timeline == config::Timelines::all;
  store::Result result = planned_result(plan);
  if (plan.experiment.measure.auto_steps) result.steps = most_auto_steps;
  store::ResultCapacity capacity;
  for (const plan::PlannedCase& planned : plan.cases) {
    std::int64_t sorts = 0;  // of operations, on the rank that has most of them
    const auto roles = std::max<std::int64_t>(1, std::ssize(planned.survey.counts));
    const std::int64_t kept_of_role = all_ranks ? planned.layout.ranks() / roles : 1;
    for (const program::Count& count : planned.survey.counts) {
      capacity.intervals += kept_of_role * intervals_of_operation * count.operations;
      sorts = std::max(sorts, static_cast<std::int64_t>(count.flop_kinds.size() + count.traffic.size()) + 8);
    }
    capacity.totals += sorts * plan.ranks;
  }
  if (all_ranks && capacity.intervals > most_intervals) {
    fail(
        "measure.timeline: all would keep up to {} million intervals of profiled steps; at most {} million fit: try "
        "fewer cases (--only), or timeline: roles",
        capacity.intervals / 1'000'000, most_intervals / 1'000'000);
  }
  return store::most_bytes(result, capacity);
}

}  // namespace harness::sweep
