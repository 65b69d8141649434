#include "sweep/rounds.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analysis/cases.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "workloads/workload.h"

namespace harness::sweep {

namespace {

template <class Which>  // bool(const store::ResultBlock&), of pending blocks
void leave_out(Recorder& recorder, Which&& which, const std::string& reason) {
  const auto& blocks = recorder.result().blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (analysis::will_still_run(recorder.result(), blocks[i]) && which(blocks[i])) recorder.leave_out(i, reason);
  }
}

// "2 of 7 settled"
std::string settled_words(const analysis::Summary& summary) {
  const auto changes = std::ranges::count(summary.cases, store::CaseRole::change, &analysis::CaseSummary::role);
  const auto settled = std::ranges::count_if(summary.cases, [](const analysis::CaseSummary& row) {
    return row.role == store::CaseRole::change && row.settled_after > 0;  // the control is judged anew at each look
  });
  return fmt::format("{} of {} settled", settled, changes);
}

// Leaves out cases that the declared looks have settled, and the baseline of a size once all changes at that size are
// settled. Does nothing between looks, or for cases that are left out already.
void leave_out_settled(const analysis::Summary& summary, Recorder& recorder, ProgressLine& progress) {
  if (summary.looks.empty() || analysis::sweeps_sizes_alone(recorder.result())) return;
  const store::Result& result = recorder.result();
  std::set<std::int32_t> compared, open;  // the cases that changes are compared with, and those with an open change
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change || row.status == store::CaseStatus::impossible) continue;
    const std::int32_t reference = result.at(row).reference;
    compared.insert(reference);
    if (row.settled_after > 0) {
      const auto is_its = [&](const store::ResultBlock& block) { return block.case_index == row.case_index; };
      leave_out(recorder, is_its,
                fmt::format("settled by the look after round {}: {}", row.settled_after, name_of(row.judgement)));
    } else if (store::may_run(row.status)) {
      open.insert(reference);
    }
  }
  if (open.empty()) {
    progress.say(fmt::format("every verdict is settled after round {}", summary.looks.back().rounds));
    leave_out(
        recorder, [](const auto&) { return true; }, "every verdict was settled");
  }
  const auto is_done = [&](const store::ResultBlock& block) {
    const std::int32_t reference = result.at(block).reference;
    return compared.contains(reference) && !open.contains(reference);
  };
  leave_out(recorder, is_done, "every verdict that it is for was settled");
}

// The other blocks that run in the process of the first one.
std::vector<std::size_t> others_in_process(const Recorder& recorder, std::span<const std::size_t> blocks) {
  const auto& all = recorder.result().blocks;
  std::vector<std::size_t> others;
  for (const std::size_t index : blocks.subspan(1)) {
    if (all[index].process == all[blocks.front()].process && analysis::will_still_run(recorder.result(), all[index]))
      others.push_back(index);
  }
  return others;
}

// Measures the first of `blocks`. A process for several blocks begins with a warm-up of the first one. A block that
// fails in such a process is repeated at once in its own process, and only a failure there counts against the case; the
// other blocks continue in a new process.
job::BlockOutcome run_block(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                            std::span<const std::size_t> blocks, std::int32_t& process_underway) {
  const store::Result& result = recorder.result();
  const std::size_t index = blocks.front();
  const plan::PlannedCase& planned = plan.cases[result.blocks[index].case_index];
  const job::Task timed = job::TimeSteps{plan.experiment.measure.steps};
  job::BlockRequest request = block_request(plan.experiment, planned, timed, defaults);
  request.environment.emplace_back("HARNESS_BLOCK", std::to_string(index));  // names the files of a --wrap command
  // The file that is resumed may have planned that blocks share a process.
  if (!defaults.wrap.empty()) recorder.move_to_new_process(blocks.first(1));
  const std::int32_t process = result.blocks[index].process;
  const bool shares = process >= 0 && std::ranges::count(result.blocks, process, &store::ResultBlock::process) > 1;
  if (!defaults.wrap.empty() || !shares) {
    process_underway = -1;  // a process of its own ends the one that others share
    return job.run_alone(request);
  }

  const std::vector<std::size_t> others = others_in_process(recorder, blocks);
  const job::WorkerSet set{process, {}};
  if (std::exchange(process_underway, set.number) != set.number) {
    job::BlockOutcome warm = warm_up(job, set, block_request(plan.experiment, planned, timed, defaults));
    if (warm.stopped) return warm;
    if (!warm.ok) {
      recorder.warn(fmt::format(
          "the warm-up of a process that {} shares with other cases failed, so a new process began without one and its "
          "first block may be slow: {}",
          planned.name, warm.reason));
    }
  }
  job::BlockOutcome outcome = job.run({set, request, others.empty()});
  if (outcome.ok || outcome.stopped) return outcome;
  recorder.warn(fmt::format("a block of {} failed in a process that it shared, and was repeated in one of its own: {}",
                            planned.name, outcome.reason));
  recorder.move_to_new_process(others);  // first, so that a kill between the two leaves consecutive blocks together
  recorder.move_to_new_process(blocks.first(1));
  return job.run_alone(request);
}

}  // namespace

bool run_rounds(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress, std::optional<double> end_s) {
  const store::Result& result = recorder.result();
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (analysis::will_still_run(result, result.blocks[i])) blocks.push_back(i);
  }
  // Predicted steps are known from the timelines, and their blocks take negligible wall-clock time.
  const bool takes_time = !config::traits_of(plan.experiment.backend).predicts();
  const analysis::HowFar far = analysis::how_far(result);
  progress.start_phase("", far.blocks, far.blocks_done);
  int round = -1;
  std::int32_t process_underway = -1;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const store::ResultBlock& block = result.blocks[blocks[i]];
    const std::size_t case_index = block.case_index;
    const std::span<const std::size_t> rest = std::span(blocks).subspan(i);
    if (block.round != round) {
      if (result.looks.empty()) {
        if (round >= 0 && takes_time) progress.end_round(round + 1, result.rounds, "");
      } else {
        const analysis::Summary summary = analysis::summarise(result);
        if (round >= 0 && takes_time) progress.end_round(round + 1, result.rounds, settled_words(summary));
        leave_out_settled(summary, recorder, progress);  // also after a sweep that was killed before it did this
      }
      round = block.round;
      if (end_s && round > 0 && job.clock().seconds() + recorder.expected_s(round + 1) > *end_s) {
        const std::string reason = fmt::format("the time budget was spent after round {}", round);
        progress.say(reason);
        leave_out(
            recorder, [](const auto&) { return true; }, reason);
      }
      if (analysis::first_open_round(result) == result.rounds) return false;
    }
    CaseState& state = recorder.state(case_index);
    const bool runs = analysis::will_still_run(result, block);
    if (runs && job.stop_requests() > 0) return true;
    if (runs && out_of_time(job, recorder.expected_block_s(case_index))) {
      recorder.warn(
          "the allocation ends before another block can finish; continue with --resume in the next allocation");
      return true;
    }
    if (takes_time) {
      const plan::PlannedCase& planned = plan.cases[case_index];
      const auto titled = [&](const std::string& name) {
        return fmt::format("round {}/{} {}", block.round + 1, result.rounds, name);
      };
      progress.begin(titled(planned.name),
                     planned.variable == "layout" ? titled(program::label_of(planned.layout)) : "");
    }
    if (!runs) {
      progress.skip();
      continue;
    }
    recorder.require_lock();
    const double start_s = job.clock().seconds();
    const job::BlockOutcome outcome = run_block(job, plan, defaults, recorder, rest, process_underway);
    if (outcome.stopped) {
      progress.end("stopped");
      return true;
    }
    const double whole_s = job.clock().seconds() - start_s;
    const double median_step_s = recorder.write_block(blocks[i], outcome);
    if (outcome.ok) {
      state.step_s = median_step_s;
      state.set_up_s = std::max(0.0, whole_s - (result.warmup_steps + result.steps) * median_step_s);
    }
    if (!takes_time) continue;
    const double rest_s = recorder.expected_s(result.rounds);
    progress.expect(end_s ? std::clamp(*end_s - job.clock().seconds(), 0.0, rest_s) : rest_s);
    progress.end(outcome.ok ? show_seconds(median_step_s) + " per step" : "failed: " + outcome.reason);
  }
  if (round >= 0 && takes_time) progress.end_round(round + 1, result.rounds, "");
  return false;
}

job::BlockRequest block_request(const config::Experiment& experiment, const plan::PlannedCase& planned,
                                const job::Task& task, const BlockDefaults& defaults) {
  job::BlockRequest request;
  request.case_name = planned.name;
  request.backend = experiment.backend;
  request.model = experiment.model;
  request.settings = planned.settings;
  request.layout = planned.layout;
  request.task = task;
  request.warmup_steps = experiment.measure.warmup_steps;
  request.seed = experiment.measure.seed;
  request.deadlines = experiment.measure.deadlines;
  if (experiment.measure.usual_start)
    request.deadlines.start_s = config::usual_start_s(experiment.backend, planned.layout.ranks());
  request.memory_limit_bytes = experiment.measure.memory_limit_bytes;
  request.share_gpus = experiment.measure.share_gpus;
  if (std::holds_alternative<job::TimeSteps>(task)) request.wrap = defaults.wrap;
  request.tuning = defaults.tuning;
  // Logging costs time; the observing worker enables it itself.
  if (config::traits_of(experiment.backend).uses_nccl) request.environment.emplace_back("NCCL_DEBUG", "WARN");
  return request;
}

job::BlockOutcome run_untimed(job::Job& job, const job::BlockRequest& request,
                              const std::function<void(const job::BlockOutcome&)>& failed) {
  constexpr int most_tries = 3;
  job::BlockOutcome outcome = job.run_alone(request);
  for (int tries = 1; tries < most_tries && !outcome.ok && !stop_wanted(job, outcome); ++tries) {
    if (failed) failed(outcome);
    const std::string before = std::exchange(outcome, job.run_alone(request)).signature;
    if (outcome.signature == before) break;
  }
  return outcome;
}

bool out_of_time(const job::Job& job, double block_s) {
  const double end = job.allocation_end_unix_s();
  return end > 0 && job.clock().unix_s() + 1.5 * block_s + 10 > end;
}

bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome) {
  return outcome.stopped || job.stop_requests() > 0;
}

job::BlockOutcome warm_up(job::Job& job, const job::WorkerSet& set, job::BlockRequest request) {
  constexpr double seconds = 3;
  request.task = job::TimeSteps{1};
  job::BlockOutcome outcome = job.run({set, request, false});
  if (!outcome.ok || !config::traits_of(request.backend).ranks_are_gpus) return outcome;
  double step_s = 0;
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank)
    step_s = std::max(step_s, outcome.of<job::TimedSamples>(rank).step_s.back());
  const auto most_steps = static_cast<double>(workloads::loss_ring - request.warmup_steps);
  request.task = job::TimeSteps{static_cast<int>(std::clamp(seconds / step_s, 1.0, most_steps))};
  return job.run({set, request, false});
}

}  // namespace harness::sweep
