#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "cli/sweep_run.h"
#include "measure/waiting.h"
#include "program/count.h"

namespace harness {
namespace {

// What a step's operations amount to, by the texts that tell their intervals apart in the file.
std::vector<ResultOperations> sorts_of_operations(const ProgramSet& set, const Program& program) {
  using Key = std::tuple<std::string_view, StreamId, Phase, std::string_view, bool, std::string>;
  std::map<Key, ResultOperations> sorts;
  for (const Operation& op : program.step) {
    const bool communicates = is_communication(op.action);
    std::string group = communicates ? destination(set, op.action) : "";
    if (is_point_to_point(op.action)) group = group.substr(0, group.find_first_of("+-"));
    ResultOperations& row =
        sorts[{name_of(op.action), op.stream, op.label.phase, op.label.what, op.label.recomputed, group}];
    row.group = std::move(group);
    ++row.operations;
    row.model_flop += flop_of(op.action).model;
    row.bytes += communicates ? message_bytes(program, op.action) : bytes_touched(program, op.action);
  }
  std::vector<ResultOperations> rows;
  for (auto& [key, row] : sorts) {
    const auto& [kind, stream, phase, what, recomputed, group] = key;
    row.kind = kind;
    row.stream = program.streams[static_cast<std::size_t>(stream)];
    row.phase = name_of(phase);
    row.what = what;
    row.recomputed = recomputed ? 1 : 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

// A rank's waiting by operation of its Program; NaN where it is not known.
std::vector<Waiting> by_operation(const Program& program, const std::vector<Waiting>& of_communications) {
  std::vector<Waiting> all(program.step.size(), {NAN, NAN});
  auto next = of_communications.begin();
  for (std::size_t i = 0; i < all.size() && next != of_communications.end(); ++i) {
    if (is_communication(program.step[i].action)) all[i] = *next++;
  }
  return all;
}

// NaN if any of it is not known.
double sum_of(const std::vector<Waiting>& waiting, float Waiting::*member) {
  double sum = waiting.empty() ? NAN : 0;
  for (const Waiting& one : waiting) sum += one.*member;
  return sum;
}

}  // namespace

void SweepRun::note_failure(int case_index, const BlockOutcome& outcome) {
  CaseState& state = states_[static_cast<std::size_t>(case_index)];
  ResultCase& row = result_.cases[static_cast<std::size_t>(case_index)];
  state.dropped = state.last_failure == outcome.signature;
  state.last_failure = outcome.signature;
  row.reason = state.dropped ? "failed twice alike and was dropped: " + outcome.reason : outcome.reason;
  if (state.dropped) row.status = CaseStatus::failed;
  if (file_) file_->write_case(case_index, row);
}

void SweepRun::record_timelines() {
  const int n = static_cast<int>(prepared_.plan.cases.size());
  for (int i = 0; i < n && !interrupted_; ++i) {
    const Case& c = prepared_.plan.cases[static_cast<std::size_t>(i)];
    if (!c.impossible.empty() || i == 1) continue;  // baseline_again is the baseline
    CaseState& state = states_[static_cast<std::size_t>(i)];
    // A second try tells a passing fault from a lasting one; what fails in ever new ways is dropped as well.
    for (int attempt = 0; attempt < 3 && !state.dropped && !interrupted_; ++attempt) {
      progress_.begin(i, n, "timeline of " + c.name);
      const auto start = std::chrono::steady_clock::now();
      const BlockOutcome outcome = run(i, BlockMode::timeline);
      state.block_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      interrupted_ = outcome.stopped || job_.stop_requests() > 0;
      if (outcome.stopped) {
        progress_.end("stopped");
        break;
      }
      if (outcome.ok) {
        keep_timeline(i, outcome);
        progress_.end(fmt::format("{} a step", show_seconds(outcome.samples.front().profiled_step_seconds)));
        break;
      }
      progress_.end("failed: " + outcome.reason);
      note_failure(i, outcome);
    }
  }
  states_[1].block_seconds = states_[0].block_seconds;
  if (states_[0].dropped) {
    throw Error(
        fmt::format("the baseline does not run, so there is nothing to compare with: {}", result_.cases[0].reason), 4);
  }
}

void SweepRun::keep_timeline(int case_index, const BlockOutcome& outcome) {
  const Experiment& e = prepared_.plan.experiment;
  const Case& c = prepared_.plan.cases[static_cast<std::size_t>(case_index)];
  const ProgramSet set = lower(build_programs(e.model, c.settings, c.layout), declared_fused(e.backend));
  std::vector<std::vector<float>> durations;
  for (const BlockSamples& s : outcome.samples) durations.push_back(s.communication_s);
  const auto waiting = find_waiting(set, durations);
  for (int role = 0; role < static_cast<int>(set.roles.size()); ++role) {
    const int rank = set.first_rank(role);
    const Program& program = set.roles[static_cast<std::size_t>(role)];
    const auto waits = by_operation(program, waiting[static_cast<std::size_t>(rank)]);
    for (const Interval& x : outcome.samples[static_cast<std::size_t>(rank)].timeline) {
      const Operation& op = program.step[static_cast<std::size_t>(x.operation)];
      ResultInterval row;
      row.case_index = case_index;
      row.role = role;
      row.rank = rank;
      row.operation = x.operation;
      row.kind = name_of(op.action);
      row.stream = program.streams[static_cast<std::size_t>(x.stream)];
      row.phase = name_of(op.label.phase);
      row.what = op.label.what;
      row.micro_batch = op.label.micro_batch;
      row.layer = op.label.layer;
      row.recomputed = op.label.recomputed ? 1 : 0;
      row.start_s = x.start_s;
      row.end_s = x.end_s;
      if (is_communication(op.action)) {
        row.waiting_s = waits[static_cast<std::size_t>(x.operation)].members_s;
        row.bubble_s = waits[static_cast<std::size_t>(x.operation)].stages_s;
      }
      result_.timeline.push_back(std::move(row));
    }
    for (ResultOperations& row : sorts_of_operations(set, program)) {
      row.case_index = case_index;
      row.role = role;
      result_.operations.push_back(std::move(row));
    }
  }
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank) {
    const StepSplit& s = outcome.samples[rank].split;
    result_.splits.push_back({case_index, static_cast<std::int32_t>(rank), s.step_s, s.compute_s, s.communication_s,
                              s.exposed_s, s.overlapped_s, s.idle_s, outcome.samples[rank].loading_s,
                              sum_of(waiting[rank], &Waiting::members_s), sum_of(waiting[rank], &Waiting::stages_s)});
    for (const std::string& w : outcome.samples[rank].warnings) warn(w);
    for (const KindTotal& t : outcome.samples[rank].totals) {
      result_.totals.push_back(
          {case_index, static_cast<std::int32_t>(rank), t.kind, t.stream, t.seconds, t.operations});
    }
  }
}

void SweepRun::decide_rounds() {
  const Measure& m = prepared_.plan.experiment.measure;
  double round_seconds = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (result_.cases[i].status != CaseStatus::pending) continue;
    // A timeline block runs warm-up and one slower step; a timed block warm-up and `steps`.
    const double steps = (m.warmup_steps + m.steps) / static_cast<double>(m.warmup_steps + 1);
    round_seconds += states_[i].block_seconds * std::max(1.0, steps);
  }
  if (m.time_budget_s <= 0 || round_seconds <= 0) return;
  const int fit = static_cast<int>(m.time_budget_s / round_seconds);
  if (fit >= m.rounds) return;
  const int rounds = std::max(1, fit);
  warn(fmt::format(
      "{} rounds were cut to {} to fit the time budget of {} (a round takes about {}), decided before the first "
      "block; a larger time_budget gives all of them",
      m.rounds, rounds, show_seconds(m.time_budget_s), show_seconds(round_seconds)));
  result_.rounds = rounds;
  std::erase_if(result_.blocks, [&](const ResultBlock& b) { return b.round >= rounds; });
}

}  // namespace harness
