#include "sweep/sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "backend/backend.h"
#include "base/identity.h"
#include "base/text.h"
#include "plan/plan.h"
#include "store/result_file.h"
#include "sweep/probe.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"

namespace harness::sweep {
namespace {

store::Result result_on(const Machine& machine, const plan::Plan& plan) {
  store::Result result = planned_result(plan);
  result.identity = machine.identity;
  result.environment = machine.environment;
  for (const job::RankPlace& place : machine.places) {
    const int threads = plan.experiment.baseline.compute_threads(place.cores / std::max(1, place.local_ranks));
    result.rank_table.push_back({place.rank, place.local_rank, place.node, place.host,
                                 machine.device.empty() ? place.device : machine.device, place.cores, threads,
                                 place.memory_bytes});
  }
  result.nodes = machine.topology().nodes();
  std::int32_t known = -1;
  machine::Topology topology;  // of the case `known`
  for (store::ResultRole& row : result.roles) {
    if (std::exchange(known, row.case_index) != row.case_index)
      topology = plan::under_faults(plan.experiment, plan.cases[known].settings, machine.topology());
    row.node = topology.node_of.at(row.rank);
  }
  fill_peaks(result, plan);
  fill_link_limits(result, plan, machine);
  return result;
}

// The best rate counts, so measurements far apart are better than several in a row: the machine may be quieter at one.
void measure_peaks_again(job::Job& job, const plan::Plan& plan, Peaks& peaks, Recorder& recorder) {
  measure_peaks(job, plan, peaks);
  raise_peaks(recorder, plan, peaks);
}

// Returns why the cases of a file cannot run as before; "" if they can. Those that the file refused do not run.
std::string why_other_programs(const store::Result& earlier, const store::Result& planned) {
  constexpr const char* other_build = "its programs differ from those of this build";
  if (earlier.cases.size() != planned.cases.size()) return other_build;
  for (std::size_t i = 0; i < earlier.cases.size(); ++i) {
    const store::ResultCase &then = earlier.cases[i], &now = planned.cases[i];
    if (then.status == store::CaseStatus::impossible) continue;
    if (now.status == store::CaseStatus::impossible) return fmt::format("{} cannot run here: {}", now.name, now.reason);
    if (then.program_hash != now.program_hash) return other_build;
  }
  return "";
}

bool has_open_verdict(const store::Result& result) {
  return std::ranges::any_of(analysis::summarise(result).cases, analysis::needs_rounds);
}

// Returns why a file cannot have more rounds; "" if it can.
std::string why_not_extensible(const std::string& path, const store::Result& result, const plan::Plan& plan,
                               int rounds) {
  if (result.state != store::RunState::complete)
    return fmt::format("it is not complete; `{}` continues it", resume_command(result.ranks, path));
  const int declared = analysis::declared_rounds(result), over = analysis::rounds_over(result);
  if (rounds < declared || rounds <= over) {
    return fmt::format("it declared {} and measured {}; --rounds names the new total, {} or more", declared, over,
                       std::max(declared, over + 1));
  }
  if (!std::ranges::equal(result.cases, plan.cases, {}, &store::ResultCase::name, &plan::PlannedCase::name))
    return "its cases are not those that its configuration gives on these ranks";
  if (std::string why = why_other_programs(result, planned_result(plan)); !why.empty()) return why;
  return has_open_verdict(result) ? "" : "no verdict in it is open, so they would settle nothing";
}

}  // namespace

store::RunState run_sweep(job::Job& job, plan::Plan plan, SweepOutput& output, const SweepRequest& request,
                          ProgressLine& progress) {
  const double start_s = job.clock().seconds();
  output.has_result = request.resume && !request.more_rounds;
  const config::BackendKind backend = plan.experiment.backend;
  if (!config::traits_of(backend).predicts()) {
    progress.announce(config::traits_of(backend).ranks_are_gpus
                          ? "checking that all ranks agree and that each has a GPU of its own"
                          : "checking that all ranks agree, measuring the peak of matrix products");
  }
  const Machine machine = probe(job, plan);
  if (!machine.device.empty()) plan = plan::plan_for_device(std::move(plan), machine.device);
  plan::refuse_what_does_not_fit(
      plan, [&](const plan::PlannedCase& planned) { return memory_of(plan.experiment, planned, machine); });
  Recorder recorder(result_on(machine, plan));
  add_record(recorder.draft(), request.doctor);

  BlockDefaults defaults;
  defaults.wrap = request.wrap;
  Peaks peaks = machine.peaks;
  bool interrupted = false;
  bool begins_anew = false;  // it was stopped before the number of timed steps and that of the rounds were decided
  if (request.resume) {
    const store::Result earlier = store::read_result(output.lock.path(), {.rank_seconds = false, .timeline = false});
    begins_anew = earlier.splits.empty() && std::ranges::none_of(earlier.blocks, &store::ResultBlock::has_run);
  }
  if (begins_anew) progress.say("the sweep was stopped before it knew a step of the baseline: it begins anew");
  if (request.resume && !begins_anew) {
    output.lock.require();  // the first workers may have taken long
    if (request.more_rounds) extend_file(output.lock.path(), plan, plan.experiment.measure.rounds);
    if (recorder.resume_file(output.lock)) {
      progress.warn(
          "warning: the library versions or the machine have changed since the file was created; rounds are compared "
          "only within a session");
    }
    // The file keeps the doctor record of its first session.
    for (const store::ResultFinding& finding : request.doctor.findings) {
      if (!finding.is_failure() || !finding.is_of_nodes()) continue;
      recorder.warn(fmt::format("resumed where doctor finds a failure: {} on {}: {}. {}", finding.check, finding.where,
                                finding.evidence, finding.remedy));
    }
    defaults.tuning = recorder.result().tuning;
    plan.experiment.measure.steps = recorder.result().steps;
    measure_peaks_again(job, plan, peaks, recorder);
  } else {
    interrupted = tune(job, plan, defaults, recorder, progress) || observe(job, plan, defaults, recorder, progress) ||
                  record_timelines(job, plan, defaults, machine, recorder, progress);
    measure_peaks_again(job, plan, peaks, recorder);
    if (decide_steps(recorder, plan.experiment.measure))
      progress.say(fmt::format("{} timed steps per block, by how long set-up takes", plan.experiment.measure.steps));
    decide_rounds(recorder, plan.experiment.measure, job.clock().seconds() - start_s, interrupted);
    recorder.create_file(output.lock, request.command, output.overwrite || begins_anew);
  }
  output.has_result = true;
  recorder.warn(machine.warnings);
  if (const char* fault = test_hook("HARNESS_TEST_FAULT"))
    recorder.warn(fmt::format("a fault was planted, so nothing here is a finding: HARNESS_TEST_FAULT={}", fault));
  if (!request.wrap.empty()) {
    recorder.warn(fmt::format(
        "the workers ran under `{}`, so their times cannot be compared with others; measure again without --wrap",
        request.wrap));
  }
  std::optional<double> end_s;
  const config::Measure& measure = plan.experiment.measure;
  if (!measure.looks.empty() && measure.time_budget_s > 0) end_s = start_s + measure.time_budget_s;
  if (!interrupted) interrupted = run_rounds(job, plan, defaults, recorder, progress, end_s);
  if (!interrupted) measure_peaks_again(job, plan, peaks, recorder);
  return recorder.finish(interrupted);
}

std::string resume_command(int ranks, const std::string& path) {
  return fmt::format("mpirun -np {} {} sweep --resume {}", ranks, called(), shell_word(path));
}

void require_same_ranks(const store::Result& earlier, int ranks, const std::string& path) {
  if (earlier.ranks == ranks) return;
  fail("{} was made on {}, but this job has {}: `{}` continues it", path, plural(earlier.ranks, "rank"), ranks,
       resume_command(earlier.ranks, path));
}

void require_resumable(const store::Result& earlier, const std::string& path) {
  if (earlier.state != store::RunState::complete) return;
  const std::string more = has_open_verdict(earlier)
                               ? fmt::format("`--resume {} --rounds N` adds rounds to it, up to N; ", shell_word(path))
                               : "";
  fail("{} is complete, so there is nothing to resume: {}-o names another file, --force puts a new one in its place",
       path, more);
}

void require_same_programs(const store::Result& earlier, const store::Result& planned, const std::string& path) {
  require_resumable(earlier, path);
  require_same_ranks(earlier, planned.ranks, path);
  if (const std::string why = why_other_programs(earlier, planned); !why.empty())
    fail("{} cannot be resumed: {}; name another file with -o", path, why);
}

void extend_file(const std::string& path, const plan::Plan& plan, int rounds) {
  store::Result result = store::read_result(path);
  if (const std::string why = why_not_extensible(path, result, plan, rounds); !why.empty())
    fail("{} cannot have more rounds: {}", path, why);
  const int declared = analysis::declared_rounds(result), over = analysis::rounds_over(result);
  std::set<int> looks{over, rounds};
  for (const int look : analysis::declared_looks(result)) looks.insert(look);
  if (rounds > declared) result.extended += fmt::format("{}{}", result.extended.empty() ? "" : ",", declared);
  result.looks = fmt::format("{}", fmt::join(looks, ","));
  result.rounds = rounds;
  result.state = store::RunState::partial;

  const auto kept = static_cast<std::size_t>(
      std::ranges::count_if(result.blocks, [&](const store::ResultBlock& block) { return block.round < over; }));
  result.blocks.resize(kept);
  result.step_seconds.resize(kept);
  result.losses.resize(kept);
  result.rank_seconds.resize(kept);
  std::int32_t planned_process = -1, process = 0;
  for (const plan::Slot& slot : plan.schedule) {
    // The plan may have cases that the file refused, because they did not fit on its machine.
    const bool refused = result.cases[slot.case_index].status == store::CaseStatus::impossible;
    if (slot.round < over || refused) continue;
    if (std::exchange(planned_process, slot.process) != slot.process)
      process = static_cast<std::int32_t>(result.blocks.size());
    result.blocks.push_back(pending_block(slot));
    result.blocks.back().process = process;
  }
  store::write_result(path, result);
}

}  // namespace harness::sweep
