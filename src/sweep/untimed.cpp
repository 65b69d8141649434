#include "sweep/rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "backend/backend.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "nccl/log.h"
#include "program/count.h"
#include "program/timeline.h"
#include "sweep/probe.h"

namespace harness::sweep {

namespace {

// Writes the texts by which the file tells operations apart, in a row of its operations or of its intervals.
void describe(const program::Program& program, const program::Operation& op, program::StreamId stream, auto& row) {
  row.kind = program::name_of(op.action);
  row.stream = program.streams[stream];
  row.phase = program::name_of(op.label.phase);
  row.what = op.label.what;
  row.recomputed = op.label.recomputed ? 1 : 0;
}

// Sums the operations of a role's step, one row for each combination of those texts.
void add_operations(store::Result& result, int case_index, const program::ProgramSet& set, int role,
                    program::LeastTimes& limits, int context) {
  const program::Program& program = set.roles[role];
  using Key = std::tuple<std::string_view, program::StreamId, program::Phase, std::string_view, bool, std::string>;
  std::map<Key, store::ResultOperations> sorts;
  for (const program::Operation& op : program.step) {
    const bool communicates = program::is_communication(op.action);
    std::string group = communicates ? program::destination(set, op.action) : "";
    if (program::peer_of(op.action) != nullptr) group = group.substr(0, group.find_first_of("+-"));
    store::ResultOperations& row =
        sorts[{program::name_of(op.action), op.stream, op.label.phase, op.label.what, op.label.recomputed, group}];
    describe(program, op, op.stream, row);
    row.group = std::move(group);
    ++row.operations;
    row.model_flop += (program::attention_of(op.action) ? context : 1) * program::flop_of(op.action).model;
    row.limit_s += communicates ? limits.seconds(role, op) : 0;
    row.bytes += communicates ? program::message_bytes(program, op.action) : program::bytes_touched(program, op.action);
  }
  for (auto& [key, row] : sorts) {
    row.case_index = case_index;
    row.role = role;
    result.operations.push_back(std::move(row));
  }
}

// A rank's waiting time by operation of its Program; NaN if unknown, or no communication.
std::vector<program::Waiting> by_operation(const program::Program& program,
                                           const std::vector<program::Waiting>& of_communications) {
  std::vector<program::Waiting> all(program.step.size(), {NAN, NAN});
  auto next = of_communications.begin();
  for (std::size_t i = 0; i < all.size() && next != of_communications.end(); ++i) {
    if (program::is_communication(program.step[i].action)) all[i] = *next++;
  }
  return all;
}

// NaN if any summand is unknown.
double sum_of(const std::vector<program::Waiting>& waits, float program::Waiting::*member) {
  double sum = waits.empty() ? NAN : 0;
  for (const program::Waiting& wait : waits) sum += wait.*member;
  return sum;
}

void add_intervals(store::Result& result, store::ResultInterval row, const program::Program& program,
                   const job::TimelineSamples& samples, const std::vector<program::Waiting>& waits) {
  for (const program::Interval& x : samples.timeline) {
    const program::Operation& op = program.step[x.operation];
    describe(program, op, x.stream, row);
    row.operation = x.operation;
    row.micro_batch = op.label.micro_batch;
    row.layer = op.label.layer;
    row.start_s = x.start_s;
    row.end_s = x.end_s;
    row.waiting_s = waits[x.operation].members_s;
    row.bubble_s = waits[x.operation].stages_s;
    result.timeline.push_back(row);
  }
}

void keep_timeline(const plan::Plan& plan, std::size_t case_index, const Machine& machine,
                   const job::BlockOutcome& outcome, Recorder& recorder) {
  const config::Experiment& e = plan.experiment;
  const plan::PlannedCase& planned = plan.cases[case_index];
  const program::ProgramSet set = program::lower(workloads::build_programs(e.model, planned.settings, planned.layout),
                                                 config::fused_for(e, planned.settings));
  const machine::Topology topology = plan::under_faults(e, planned.settings, machine.topology());
  program::LeastTimes limits(set, topology.node_of, links_of(e, planned));
  add_timeline(recorder.draft(), static_cast<int>(case_index), set, outcome.samples, limits,
               planned.settings.sequence_ranks());
  for (const job::Samples& s : outcome.samples) recorder.warn(s.warnings);
}

// Refuses a case by the memory that its workers used, which the plan could only estimate.
void refuse_if_too_large(const plan::Plan& plan, std::size_t case_index, const Machine& machine,
                         const job::BlockOutcome& outcome, Recorder& recorder) {
  const plan::PlannedCase& planned = plan.cases[case_index];
  std::int64_t most = 0;
  for (const job::Samples& s : outcome.samples) most = std::max(most, s.peak_memory_bytes);
  const plan::DeviceMemory device = memory_of(plan.experiment, planned, machine);
  const std::string why = plan::why_too_large(planned, static_cast<double>(most), device, "used");
  if (!why.empty()) recorder.refuse(case_index, why);
}

void keep_log(Recorder& recorder, std::int32_t case_index, const plan::PlannedCase& planned,
              const job::BlockOutcome& observed_block) {
  store::Result& result = recorder.draft();
  constexpr std::size_t most_bytes = job::ObserveSamples::most_bytes;
  std::string log;
  bool cut = false;
  for (std::size_t rank = 0; rank < observed_block.samples.size(); ++rank) {
    const std::string& of_rank = observed_block.of<job::ObserveSamples>(rank).nccl_log;
    cut = cut || of_rank.size() >= most_bytes;
    log += of_rank + "\n";
  }
  if (cut)
    recorder.warn(
        fmt::format("{}: NCCL's log of a rank was cut at {}, so its calls are counted too low; fewer layers or "
                    "micro-batches make it shorter",
                    planned.name, print_bytes_exact(most_bytes)));
  const nccl::Observed observed = nccl::parse_log(log);
  for (const nccl::Call& call : observed.calls) result.nccl_calls.push_back({call, case_index});
  for (const auto& [name, value] : observed.facts) result.nccl_facts.push_back({case_index, name, value});
  for (const std::string& text : observed.warnings) result.nccl_facts.push_back({case_index, "warning", text});
  const nccl::Compliance compliance = nccl::check_compliance(config::nccl_requests(planned.settings), observed);
  for (const std::string& text : compliance.not_honoured)
    result.nccl_facts.push_back({case_index, "not honoured", text});
  for (const std::string& text : compliance.not_confirmed)
    result.nccl_facts.push_back({case_index, "not confirmed", text});
}

constexpr double tuning_limit_s = 900;  // for one case

// Adds the choices of all ranks and returns the number of new ones. If several ranks timed the same product, all use
// the choice of the lowest rank.
std::size_t keep_new_choices(backend::Tuning& known, const std::vector<job::Samples>& samples) {
  const std::size_t before = known.size();
  for (const job::Samples& s : samples) {
    const NameValues& found = std::get<job::TuneSamples>(s.task).tuning;
    known.insert(found.begin(), found.end());
  }
  return known.size() - before;
}

}  // namespace

void add_timeline(store::Result& result, int case_index, const program::ProgramSet& set,
                  const std::vector<job::Samples>& samples, program::LeastTimes& limits, int context) {
  std::vector<std::vector<float>> durations;
  for (const job::Samples& s : samples) durations.push_back(std::get<job::TimelineSamples>(s.task).communication_s);
  const auto waiting = program::find_waiting(set, durations);
  store::ResultGradient gradient{case_index};
  for (int role = 0; role < static_cast<int>(set.roles.size()); ++role)
    add_operations(result, case_index, set, role, limits, context);
  for (std::int32_t rank = 0; rank < std::ssize(samples); ++rank) {
    const auto& of_rank = std::get<job::TimelineSamples>(samples[rank].task);
    if (!of_rank.timeline.empty()) {
      const int role = set.role_of(set.layout.coordinates(rank));
      const program::Program& program = set.roles[role];
      store::ResultInterval row;
      row.case_index = case_index;
      row.role = role;
      row.rank = rank;
      add_intervals(result, row, program, of_rank, by_operation(program, waiting[rank]));
    }
    const program::StepSplit& s = of_rank.split;
    result.splits.push_back({case_index, rank, s.step_s, s.compute_s, s.communication_s, s.exposed_s, s.overlapped_s,
                             s.idle_s, of_rank.loading_s, sum_of(waiting[rank], &program::Waiting::members_s),
                             sum_of(waiting[rank], &program::Waiting::stages_s)});
    for (const job::KindTotal& t : of_rank.totals) {
      result.totals.push_back({case_index, rank, t.kind, t.stream, t.seconds, t.operations});
    }
    gradient.sharded_squares += of_rank.gradient.sharded;
    gradient.replicated_squares += of_rank.gradient.replicated;
  }
  if (!std::isnan(gradient.sharded_squares)) result.gradients.push_back(gradient);
}

int profiled_steps(const config::Experiment& experiment) {
  const bool repeats = experiment.baseline.workload != config::training_workload;
  return repeats || config::traits_of(experiment.backend).predicts() ? 1 : 5;
}

bool record_timelines(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress) {
  bool interrupted = false;
  const bool predicts = config::traits_of(plan.experiment.backend).predicts();
  const int profiled = profiled_steps(plan.experiment);
  std::vector<plan::EntrantSet> sets = plan::sets_of(plan);  // the cases of a set share processes
  std::erase_if(sets, [&](const plan::EntrantSet& set) { return plan.cases[set.front()].is_copy; });
  std::size_t total = 0;
  for (const plan::EntrantSet& cases : sets) total += cases.size();
  progress.start_phase(predicts ? "predictions" : "timelines", total);
  const auto record = [&](std::size_t i, const job::WorkerSet& set, bool last) {
    const plan::PlannedCase& planned = plan.cases[i];
    CaseState& state = recorder.state(i);
    progress.begin((predicts ? "prediction of " : "timeline of ") + planned.name);
    // A second try distinguishes a transient fault from a permanent one; three different failures drop the case.
    constexpr int tries = 3;
    for (int attempt = 0; attempt < tries && recorder.may_run(i) && !interrupted; ++attempt) {
      const double start_s = job.clock().seconds();
      const job::RecordTimeline task{plan.experiment.measure.timeline, profiled};
      const job::BlockRequest request = block_request(plan.experiment, planned, task, defaults);
      const job::BlockOutcome outcome = attempt == 0 ? job.run({set, request, last}) : job.run_alone(request);
      const double whole_s = job.clock().seconds() - start_s;
      interrupted = stop_wanted(job, outcome);
      if (outcome.ok) {
        keep_timeline(plan, i, machine, outcome, recorder);
        refuse_if_too_large(plan, i, machine, outcome, recorder);
        state.step_s = outcome.of<job::TimelineSamples>(0).step_s;
        const int steps = plan.experiment.measure.warmup_steps + profiled;
        state.set_up_s = std::max(0.0, whole_s - steps * state.step_s);
        progress.end(fmt::format("{} per step", show_seconds(state.step_s)));
        break;
      }
      progress.end(outcome.stopped ? "stopped" : "failed: " + outcome.reason);
      if (outcome.stopped) break;
      recorder.note_failure(i, outcome, attempt + 1 == tries);
    }
    if (i > 0 || recorder.may_run(i)) return;
    throw Error(fmt::format("the baseline does not run, so there is nothing to compare with: {}",
                            recorder.result().cases.front().reason),
                4);
  };
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const plan::EntrantSet& cases = sets[s];
    const job::WorkerSet set{cases.size() > 1 ? static_cast<int>(s) : job::WorkerSet::alone, {}};
    double set_up_s = 0;  // of all processes of the set, spread evenly over its blocks
    for (const std::size_t i : cases) {
      if (!interrupted) record(i, set, i == cases.back());
      set_up_s += recorder.state(i).set_up_s;
    }
    for (const std::size_t i : cases) recorder.state(i).set_up_s = set_up_s / static_cast<double>(cases.size());
  }
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    CaseState& state = recorder.state(i);
    const bool is_copy = plan.cases[i].is_copy;
    if (!is_copy && (state.step_s > 0 || !interrupted)) continue;
    const CaseState& like = recorder.state(is_copy ? plan.cases[i].reference : 0);  // the best estimate of what is left
    state.set_up_s = like.set_up_s;
    state.step_s = like.step_s;
  }
  return interrupted;
}

bool observe(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
             ProgressLine& progress) {
  if (!config::traits_of(plan.experiment.backend).uses_nccl) return false;
  progress.start_phase("what NCCL does", plan.cases.size());
  bool interrupted = false;
  for (std::size_t i = 0; i < plan.cases.size() && !interrupted; ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    progress.begin("what NCCL does in " + planned.name);
    if (!planned.is_possible() || planned.is_copy || planned.layout.ranks() < 2) {
      progress.skip();
      continue;
    }
    const job::BlockOutcome outcome =
        run_untimed(job, block_request(plan.experiment, planned, job::Observe{}, defaults));
    interrupted = stop_wanted(job, outcome);
    progress.end(outcome.ok ? "" : "failed: " + outcome.reason);
    if (outcome.ok) keep_log(recorder, static_cast<std::int32_t>(i), planned, outcome);
  }
  return interrupted;
}

bool tune(job::Job& job, const plan::Plan& plan, BlockDefaults& defaults, Recorder& recorder, ProgressLine& progress) {
  const config::Experiment& e = plan.experiment;
  // Ranks that share a device would time each other.
  if (!config::traits_of(e.backend).tunes || e.measure.share_gpus) return false;
  backend::Tuning known;
  bool interrupted = false;
  progress.start_phase("tuning", plan.cases.size());
  for (const plan::PlannedCase& planned : plan.cases) {
    if (interrupted) break;
    progress.begin("tuning for " + planned.name);
    if (!planned.is_possible() || planned.is_copy) {
      progress.skip();
      continue;
    }
    job::BlockRequest request = block_request(e, planned, job::Tune{}, {{known.begin(), known.end()}, ""});
    request.deadlines.step_s = std::max(request.deadlines.step_s, tuning_limit_s);
    const job::BlockOutcome outcome = run_untimed(job, request);
    interrupted = stop_wanted(job, outcome);
    const std::size_t found = keep_new_choices(known, outcome.samples);
    progress.end(outcome.ok ? fmt::format("{} new choices", found) : "failed: " + outcome.reason);
    if (outcome.ok || outcome.stopped) continue;
    recorder.warn("a case was not tuned and uses the library's first choice: " + outcome.reason);
  }
  defaults.tuning.assign(known.begin(), known.end());
  recorder.draft().tuning = defaults.tuning;
  return interrupted;
}

}  // namespace harness::sweep
