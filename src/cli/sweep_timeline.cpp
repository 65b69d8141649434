#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "cli/sweep_run.h"
#include "cli/timeline_rows.h"

namespace harness {

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
  LeastTimes limits(set, nodes_of_ranks(), links_of(c));
  add_timeline(result_, case_index, set, outcome.samples, limits);
  for (const BlockSamples& s : outcome.samples) {
    for (const std::string& w : s.warnings) warn(w);
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
