#include "sweep/rounds.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>

#include "base/error.h"
#include "base/units.h"

namespace harness::sweep {
namespace {

// An interrupted round is measured again as a whole: its blocks must share an allocation.
std::vector<std::size_t> blocks_to_run(const store::Result& result) {
  std::set<std::int32_t> open_rounds;
  for (const store::ResultBlock& block : result.blocks) {
    const bool runs = result.at(block).status != store::CaseStatus::failed;
    if (block.status == store::BlockStatus::pending && runs) open_rounds.insert(block.round);
  }
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (open_rounds.contains(result.blocks[i].round)) blocks.push_back(i);
  }
  return blocks;
}

bool out_of_time(const launch::Job& job, double next_seconds) {
  const double end = job.allocation_end_unix_s();
  return end > 0 && static_cast<double>(std::time(nullptr)) + 1.5 * next_seconds + 10 > end;
}

}  // namespace

void decide_rounds(Recorder& recorder, const config::Measure& measure) {
  store::Result& result = recorder.draft();
  double round_seconds = 0;
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    if (result.cases[i].status != store::CaseStatus::pending) continue;
    // A timeline block runs warm-up and one slower step; a timed block warm-up and `steps`.
    const double steps = (measure.warmup_steps + measure.steps) / static_cast<double>(measure.warmup_steps + 1);
    round_seconds += recorder.state(i).block_seconds * std::max(1.0, steps);
  }
  if (measure.time_budget_s <= 0 || round_seconds <= 0) return;
  const int fit = static_cast<int>(measure.time_budget_s / round_seconds);
  if (fit >= measure.rounds) return;
  const int rounds = std::max(1, fit);
  recorder.warn(fmt::format(
      "{} rounds were reduced to {} before the first block, to fit the time budget of {} (a round takes about {}); a "
      "larger time_budget allows all of them",
      measure.rounds, rounds, show_seconds(measure.time_budget_s), show_seconds(round_seconds)));
  result.rounds = rounds;
  std::erase_if(result.blocks, [&](const store::ResultBlock& block) { return block.round >= rounds; });
}

bool run_rounds(launch::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress) {
  const store::Result& result = recorder.result();
  const std::vector<std::size_t> blocks = blocks_to_run(result);
  progress.start_phase(result.blocks.size(), result.blocks.size() - blocks.size());
  for (const std::size_t index : blocks) {
    const store::ResultBlock& block = result.blocks[index];
    const std::size_t case_index = block.case_index;
    CaseState& state = recorder.state(case_index);
    if (job.stop_requests() > 0) return true;
    if (!state.dropped && out_of_time(job, state.block_seconds)) {
      recorder.warn(
          "the allocation ends before another block can finish; continue with --resume in the next allocation");
      return true;
    }
    progress.begin(fmt::format("round {}/{} {}", block.round + 1, result.rounds, result.cases[case_index].name));
    if (state.dropped) {
      progress.skip();
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const launch::BlockOutcome outcome =
        job.run(block_request(plan.experiment, plan.cases[case_index], measure::BlockMode::timed, defaults));
    if (outcome.stopped) {
      progress.end("stopped");
      return true;
    }
    state.block_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double median_step_s = recorder.write_block(index, outcome);
    progress.end(outcome.ok ? show_seconds(median_step_s) + " per step" : "failed: " + outcome.reason);
  }
  return false;
}

}  // namespace harness::sweep
