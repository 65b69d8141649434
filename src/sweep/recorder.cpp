#include "sweep/recorder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <utility>

#include "analysis/cases.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/columns.h"
#include "sweep/sweep.h"

namespace harness::sweep {
namespace {

std::string new_uuid() {
  std::random_device device;
  std::array<unsigned, 4> words{};
  for (unsigned& word : words) word = device();
  const auto [a, b, c, d] = words;
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", a, b >> 16, b & 0xfffu, 0x8000u | (c >> 18),
                     c & 0xffffu, d);
}

// One row for a block, over the ranks whose device could be monitored.
store::ResultGpu gpu_row(const job::BlockOutcome& outcome) {
  std::vector<machine::GpuStatistics> devices;
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank) {
    const machine::GpuStatistics& gpu = outcome.of<job::TimedSamples>(rank).gpu;
    if (gpu.samples > 0) devices.push_back(gpu);
  }
  const machine::GpuStatistics all = machine::together(devices);
  return {static_cast<std::int32_t>(devices.size()), all, machine::harmful_throttling(all.throttle_reasons)};
}

// The rows of a block in the matrices of steps and ranks.
struct BlockRows {
  std::vector<float> step_seconds, losses, rank_seconds;
};

// The time of a step is that of its slowest rank.
BlockRows fill_block(store::ResultBlock& block, const job::BlockOutcome& outcome, std::size_t steps,
                     std::size_t ranks) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  BlockRows rows{std::vector(steps, nothing), std::vector(steps, nothing), std::vector(steps * ranks, nothing)};
  block.status = outcome.ok ? store::BlockStatus::ok : store::BlockStatus::failed;
  block.start_unix_s = outcome.start_unix_s;
  block.setup_s = outcome.setup_s;
  block.total_s = outcome.total_s;
  block.reason = outcome.reason;
  for (std::size_t rank = 0; outcome.ok && rank < outcome.samples.size(); ++rank) {
    const job::Samples& s = outcome.samples[rank];
    const auto& timed = outcome.of<job::TimedSamples>(rank);
    for (std::size_t i = 0; i < steps; ++i) {
      const auto seconds = static_cast<float>(timed.step_s[i]);
      rows.rank_seconds[i * ranks + rank] = seconds;
      rows.step_seconds[i] = rank == 0 ? seconds : std::max(rows.step_seconds[i], seconds);
    }
    if (rank == 0 && !timed.losses.empty()) rows.losses.assign(timed.losses.begin(), timed.losses.end());
    block.first_step_s = std::max(block.first_step_s, s.first_step_s);
    block.timed_total_s = std::max(block.timed_total_s, timed.timed_total_s);
    block.skipped_steps = std::max(block.skipped_steps, timed.skipped_steps);
    if (static_cast<double>(s.peak_memory_bytes) > block.peak_memory_bytes) {
      block.peak_memory_bytes = static_cast<double>(s.peak_memory_bytes);
      block.peak_memory_rank = static_cast<std::int32_t>(rank);
    }
  }
  return rows;
}

}  // namespace

void Recorder::warn(const std::string& text) {
  // As the file keeps it: a resumed sweep compares with what it has read from there.
  const std::string kept = store::shortened(text, store::warning_bytes);
  if (std::ranges::find(result_.warnings, kept) != result_.warnings.end()) return;
  result_.warnings.push_back(kept);
  if (!file_) return;
  require_lock();
  file_->add_warning(kept);
}

void Recorder::create_file(const store::Lock& lock, const std::string& command, bool overwrite) {
  result_.argv = command;
  result_.created = utc_text();
  result_.run_uuid = new_uuid();
  lock.require();
  lock_ = &lock;
  file_ = store::ResultFile::create(lock.path(), result_, overwrite);
}

bool Recorder::resume_file(const store::Lock& lock) {
  store::Result earlier = store::read_result(lock.path());  // reads everything, so that a damaged file is not extended
  earlier.rank_seconds = {};
  earlier.timeline = {};
  earlier.totals = {};
  require_same_programs(earlier, result_, lock.path());
  const bool changed = earlier.identity != result_.identity;
  result_ = std::move(earlier);
  session_ = result_.sessions;
  result_.sessions = session_ + 1;
  lock.require();
  lock_ = &lock;
  file_ = std::make_unique<store::ResultFile>(lock.path());
  file_->begin_session(result_.sessions);
  for (const analysis::FinishedBlock& block : analysis::finished_blocks(result_)) {
    states_[block.case_index].set_up_s = result_.blocks[block.index].setup_s;
    states_[block.case_index].step_s = block.seconds;
  }
  const std::int32_t interrupted = analysis::first_open_round(result_);
  for (store::ResultBlock& block : result_.blocks) {
    if (block.round >= interrupted && block.has_run()) block.status = store::BlockStatus::pending;
  }
  return changed;
}

void Recorder::note_failure(std::size_t case_index, const job::BlockOutcome& outcome, bool last_try) {
  CaseState& state = states_[case_index];
  store::ResultCase& row = result_.cases[case_index];
  const bool again = std::exchange(state.last_failure, outcome.signature) == outcome.signature;
  row.reason = outcome.reason;
  if (again || last_try) {
    row.reason.insert(
        0, again ? "failed twice in the same way and was dropped: " : "failed at each try and was dropped, at last: ");
    row.status = store::CaseStatus::failed;
  }
  write_case(case_index);
}

double Recorder::expected_s(int end_round) const {
  double seconds = 0;
  for (const store::ResultBlock& block : result_.blocks) {
    if (block.round < end_round && analysis::will_still_run(result_, block))
      seconds += expected_block_s(block.case_index);
  }
  return seconds;
}

void Recorder::raise_peak(std::size_t case_index, double flops) {
  double& peak = result_.cases[case_index].peak_flops_per_rank;
  if (!(flops > peak)) return;
  peak = flops;
  write_case(case_index);
}

void Recorder::move_to_new_process(std::span<const std::size_t> block_indices) {
  require_lock();
  for (const std::size_t index : block_indices) {
    result_.blocks[index].process = static_cast<std::int32_t>(block_indices.front());
    reopen_block(index);
  }
}

void Recorder::reopen_block(std::size_t block_index) {
  store::ResultBlock& block = result_.blocks[block_index];
  block = pending_block({block.round, block.position, static_cast<std::size_t>(block.case_index), block.process});
  file_->reopen_block(static_cast<int>(block_index), block);
}

double Recorder::write_block(std::size_t block_index, const job::BlockOutcome& outcome) {
  store::ResultBlock& block = result_.blocks[block_index];
  const std::size_t case_index = block.case_index;
  const std::size_t steps = result_.first_timed_step() + result_.steps;
  require_lock();  // here too, because a block may take long
  reopen_block(block_index);
  const BlockRows rows = fill_block(block, outcome, steps, result_.rank_count());
  block.session = session_;
  for (const job::Samples& s : outcome.samples) warn(s.warnings);
  const int index = static_cast<int>(block_index);
  if (outcome.ok) file_->write_gpu(index, gpu_row(outcome));
  file_->write_conditions(index, outcome.conditions);
  file_->write_block(index, block, rows.step_seconds, rows.losses, rows.rank_seconds);
  // For the sweep's own looks.
  result_.step_seconds.resize(result_.blocks.size());
  result_.step_seconds[block_index] = rows.step_seconds;
  result_.losses.resize(result_.blocks.size());
  result_.losses[block_index] = rows.losses;
  if (!outcome.ok) {
    note_failure(case_index, outcome);
  } else if (result_.cases[case_index].status != store::CaseStatus::ok) {
    result_.cases[case_index].status = store::CaseStatus::ok;
    write_case(case_index);
  }
  return analysis::block_median(result_, block_index).value_or(store::not_known);
}

void Recorder::leave_out(std::size_t block_index, const std::string& reason) {
  require_lock();
  reopen_block(block_index);
  store::ResultBlock& block = result_.blocks[block_index];
  block.status = store::BlockStatus::left_out;
  block.session = session_;
  block.reason = reason;
  file_->write_block(static_cast<int>(block_index), block, {}, {}, {});
}

store::RunState Recorder::finish(bool interrupted) {
  const bool blocks_left = analysis::first_open_round(result_) < result_.rounds;
  // A case that failed in every block, but never twice in the same way, also counts as failed.
  for (std::size_t i = 0; i < result_.cases.size() && !interrupted; ++i) {
    if (result_.cases[i].status != store::CaseStatus::pending) continue;
    result_.cases[i].status = store::CaseStatus::failed;
    write_case(i);
  }
  const store::RunState state = interrupted || blocks_left ? store::RunState::partial : store::RunState::complete;
  require_lock();
  file_->finish(state);
  file_.reset();
  return state;
}

}  // namespace harness::sweep
