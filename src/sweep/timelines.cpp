#include "sweep/timelines.h"

#include <algorithm>

#include "analysis/blocks.h"
#include "backend/backend.h"
#include "base/error.h"
#include "base/units.h"
#include "sweep/limits_of_machine.h"
#include "sweep/timeline_rows.h"

namespace harness::sweep {
namespace {

void keep_timeline(const plan::Plan& plan, std::size_t case_index, const Machine& machine,
                   const job::BlockOutcome& outcome, Recorder& recorder) {
  const config::Experiment& e = plan.experiment;
  const plan::PlannedCase& planned = plan.cases[case_index];
  const program::ProgramSet set = program::lower(workloads::build_programs(e.model, planned.settings, planned.layout),
                                                 config::fused_for(e, planned.settings));
  const machine::Topology topology = plan::under_faults(e, planned.settings, machine.topology());
  program::LeastTimes limits(set, topology.node_of, links_of(e, planned));
  add_timeline(recorder.draft(), static_cast<int>(case_index), set, outcome.samples, limits);
  const job::ProfiledSteps& profiled = outcome.of<job::TimelineSamples>(0).all;
  store::ResultCase& row = recorder.draft().cases[case_index];
  row.profiled_steps = profiled.count;
  row.fastest_profiled_s = profiled.fastest_s;
  row.slowest_profiled_s = profiled.slowest_s;
  for (const job::Samples& s : outcome.samples) recorder.warn(s.warnings);
}

// By what its workers used, which the plan did not know.
void refuse_if_too_large(const plan::Plan& plan, std::size_t case_index, const Machine& machine,
                         const job::BlockOutcome& outcome, Recorder& recorder) {
  const plan::PlannedCase& planned = plan.cases[case_index];
  std::int64_t most = 0;
  for (const job::Samples& s : outcome.samples) most = std::max(most, s.peak_memory_bytes);
  const plan::DeviceMemory device = memory_of(plan.experiment, planned, machine);
  const std::string why = plan::why_too_large(planned, static_cast<double>(most), device, "used");
  if (!why.empty()) recorder.refuse(case_index, why);
}

// How long a block takes besides its steps: in a process that runs, and with the start of one.
struct SetUp {
  double shared_s = 0, alone_s = 0;
};

// Of the slowest rank, from a process that runs.
double set_up_of(const job::BlockOutcome& outcome) {
  double slowest_s = 0;
  for (const job::Samples& s : outcome.samples)
    slowest_s = std::max(slowest_s, s.set_up.build_s + s.set_up.connect_s + s.set_up.initialize_s);
  return slowest_s;
}

}  // namespace

bool record_timelines(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress) {
  bool interrupted = false;
  const bool shares = analysis::shares_processes(recorder.result());
  const int profiled = config::traits_of(plan.experiment.backend).predicts() ? 1 : profiled_steps;
  SetUp baseline;
  progress.start_phase(plan.cases.size());
  for (std::size_t i = 0; i < plan.cases.size() && !interrupted; ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    CaseState& state = recorder.state(i);
    progress.begin((config::traits_of(plan.experiment.backend).predicts() ? "prediction of " : "timeline of ") +
                   planned.name);
    const bool shared = shares && !recorder.result().is_alone(static_cast<std::int32_t>(i));
    if (planned.is_copy) {  // it is the baseline
      state = recorder.state(0);
      state.set_up_s = shared ? baseline.shared_s : baseline.alone_s;
    }
    if (!planned.is_possible() || planned.is_copy) {
      progress.skip();
      continue;
    }
    // A second try tells a passing fault from a lasting one; what fails in ever new ways is dropped as well.
    for (int attempt = 0; attempt < 3 && recorder.may_run(i) && !interrupted; ++attempt) {
      const double start_s = job.clock().seconds();
      const job::RecordTimeline task{plan.experiment.measure.timeline, profiled};
      const job::BlockOutcome outcome = job.run_alone(block_request(plan.experiment, planned, task, defaults));
      const double whole_s = job.clock().seconds() - start_s;
      interrupted = stop_wanted(job, outcome);
      if (outcome.ok) {
        keep_timeline(plan, i, machine, outcome, recorder);
        refuse_if_too_large(plan, i, machine, outcome, recorder);
        state.step_s = outcome.of<job::TimelineSamples>(0).step_s;
        const int steps = plan.experiment.measure.warmup_steps + profiled;
        const SetUp set_up{set_up_of(outcome), std::max(0.0, whole_s - steps * state.step_s)};
        state.set_up_s = shared ? set_up.shared_s : set_up.alone_s;
        if (i == 0) baseline = set_up;
        progress.end(fmt::format("{} per step", show_seconds(state.step_s)));
        break;
      }
      progress.end(outcome.stopped ? "stopped" : "failed: " + outcome.reason);
      if (outcome.stopped) break;
      recorder.note_failure(i, outcome);
    }
    if (i > 0 || recorder.may_run(i)) continue;
    throw Error(fmt::format("the baseline does not run, so there is nothing to compare with: {}",
                            recorder.result().cases.front().reason),
                4);
  }
  return interrupted;
}

}  // namespace harness::sweep
