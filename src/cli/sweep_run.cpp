#include "cli/sweep_run.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "analysis/statistics.h"
#include "base/error.h"
#include "base/units.h"

namespace harness {
namespace {

std::string now_utc() {
  const std::time_t t = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&t));
  return text;
}

std::string new_uuid() {
  std::random_device device;
  const auto word = [&] { return static_cast<unsigned>(device()); };
  const unsigned a = word(), b = word(), c = word(), d = word();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", a, b >> 16, b & 0xfffu, 0x8000u | (c >> 18),
                     c & 0xffffu, d);
}

// One row for a block: means and extremes over the ranks whose device could be watched.
ResultGpu gpu_row(const std::vector<BlockSamples>& samples) {
  ResultGpu row;
  std::uint64_t throttling = 0;
  const auto mean = [&](double GpuStatistics::*field) {
    double sum = 0;
    int n = 0;
    for (const BlockSamples& s : samples) {
      if (std::isnan(s.gpu.*field)) continue;
      sum += s.gpu.*field;
      ++n;
    }
    return n > 0 ? sum / n : ResultGpu::nan;
  };
  const auto extreme = [&](double GpuStatistics::*field, bool largest) {
    double found = ResultGpu::nan;
    for (const BlockSamples& s : samples) {
      const double value = s.gpu.*field;
      if (std::isnan(value)) continue;
      found = std::isnan(found) ? value : (largest ? std::max(found, value) : std::min(found, value));
    }
    return found;
  };
  for (const BlockSamples& s : samples) {
    row.ranks += s.gpu.samples > 0;
    throttling |= s.gpu.throttle_reasons;
  }
  row.utilisation = mean(&GpuStatistics::mean_utilisation);
  row.sm_clock_hz = mean(&GpuStatistics::mean_sm_clock_hz);
  row.min_sm_clock_hz = extreme(&GpuStatistics::min_sm_clock_hz, false);
  row.max_sm_clock_hz = extreme(&GpuStatistics::max_possible_sm_clock_hz, true);
  row.power_w = mean(&GpuStatistics::mean_power_w);
  row.temperature_c = extreme(&GpuStatistics::max_temperature_c, true);
  row.memory_used_bytes = extreme(&GpuStatistics::max_memory_used_bytes, true);
  row.energy_j = row.ranks > 0 ? mean(&GpuStatistics::energy_j) * row.ranks : ResultGpu::nan;
  row.throttling = harmful_throttling(throttling);
  return row;
}

}  // namespace

void SweepRun::create_file(const std::string& path, const std::string& command, bool overwrite) {
  result_.argv = command;
  result_.created = now_utc();
  result_.run_uuid = new_uuid();
  ResultCapacity capacity;
  capacity.intervals = static_cast<std::int64_t>(result_.timeline.size());
  capacity.totals = static_cast<std::int64_t>(result_.totals.size());
  if (!wrap_.empty()) {
    result_.warnings.push_back(fmt::format(
        "the workers ran under `{}`: their times are not to be compared with others; measure without --wrap", wrap_));
  }
  file_ = ResultFile::create(path, result_, capacity, overwrite);
  file_->add_timeline(result_.timeline);
  file_->add_totals(result_.totals);
}

void SweepRun::resume_file(const std::string& path) {
  Result earlier = read_result(path, {.rank_seconds = false, .timeline = false});
  const auto refuse = [&](const std::string& what) {
    fail("{} cannot be resumed: {}. Give the same configuration and launch as before, or another -o", path, what);
  };
  if (earlier.state == RunState::complete) refuse("it is complete");
  if (earlier.config_text != result_.config_text) refuse("its configuration differs from " + result_.config_path);
  if (earlier.overrides != result_.overrides) refuse("it was made with other --set options");
  if (earlier.ranks != result_.ranks)
    refuse(fmt::format("it was made on {} ranks, this job has {}", earlier.ranks, result_.ranks));
  for (std::size_t i = 0; i < result_.cases.size(); ++i) {
    if (i >= earlier.cases.size() || earlier.cases[i].program_hash != result_.cases[i].program_hash) {
      refuse("its programs differ from those this build makes");
    }
  }
  if (earlier.identity != result_.identity) {
    progress_.say(
        "warning: library versions or machine differ from those the file began with; rounds are only compared "
        "within one session");
  }
  // Peaks and measured facts stay those of the file's beginning.
  result_ = std::move(earlier);
  session_ = result_.sessions;
  result_.sessions = session_ + 1;
  file_ = ResultFile::reopen(path);
  file_->set_sessions(result_.sessions);
  for (std::size_t i = 0; i < result_.cases.size(); ++i)
    states_[i].dropped = result_.cases[i].status == CaseStatus::failed;
}

// Blocks still to be measured. An interrupted round is measured again as a whole: its blocks must share an allocation.
std::vector<int> SweepRun::blocks_to_run() const {
  std::vector<bool> round_open(static_cast<std::size_t>(result_.rounds), false);
  for (const ResultBlock& b : result_.blocks) {
    const bool runs = result_.cases[static_cast<std::size_t>(b.case_index)].status != CaseStatus::failed;
    if (b.status == BlockStatus::pending && runs) round_open[static_cast<std::size_t>(b.round)] = true;
  }
  std::vector<int> open;
  for (std::size_t i = 0; i < result_.blocks.size(); ++i) {
    if (round_open[static_cast<std::size_t>(result_.blocks[i].round)]) open.push_back(static_cast<int>(i));
  }
  return open;
}

bool SweepRun::out_of_time(double next_seconds) const {
  const double end = job_.allocation_end_unix_s();
  return end > 0 && static_cast<double>(std::time(nullptr)) + 1.5 * next_seconds + 10 > end;
}

void SweepRun::run_rounds() {
  const std::vector<int> todo = blocks_to_run();
  const int total = static_cast<int>(result_.blocks.size());
  const int before = total - static_cast<int>(todo.size());
  for (std::size_t k = 0; k < todo.size() && !interrupted_; ++k) {
    ResultBlock& block = result_.blocks[static_cast<std::size_t>(todo[k])];
    CaseState& state = states_[static_cast<std::size_t>(block.case_index)];
    if (state.dropped) continue;
    if (job_.stop_requests() > 0) {
      interrupted_ = true;
      break;
    }
    if (out_of_time(state.block_seconds)) {
      warn("the allocation ends before another block can finish; --resume goes on in the next one");
      interrupted_ = true;
      break;
    }
    const std::string& name = result_.cases[static_cast<std::size_t>(block.case_index)].name;
    progress_.begin(before + static_cast<int>(k), total,
                    fmt::format("round {}/{} {}", block.round + 1, result_.rounds, name));
    const auto start = std::chrono::steady_clock::now();
    const BlockOutcome outcome = run(block.case_index, BlockMode::timed);
    if (outcome.stopped) {
      progress_.end("stopped");
      interrupted_ = true;
      break;
    }
    state.block_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_block(todo[k], outcome);
  }
}

void SweepRun::write_block(int index, const BlockOutcome& outcome) {
  ResultBlock& block = result_.blocks[static_cast<std::size_t>(index)];
  const auto steps = static_cast<std::size_t>(result_.warmup_steps) + static_cast<std::size_t>(result_.steps);
  const auto ranks = static_cast<std::size_t>(result_.ranks);
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> step_seconds(steps, nothing), losses(steps, nothing), rank_seconds(steps * ranks, nothing);
  block.status = outcome.ok ? BlockStatus::ok : BlockStatus::failed;
  block.session = session_;
  block.start_unix_s = outcome.start_unix_s;
  block.setup_s = outcome.setup_s;
  block.reason = outcome.reason;
  block.first_step_s = block.timed_total_s = block.peak_memory_bytes = 0;
  block.peak_memory_rank = -1;
  for (std::size_t rank = 0; outcome.ok && rank < outcome.samples.size(); ++rank) {
    const BlockSamples& s = outcome.samples[rank];
    for (std::size_t i = 0; i < steps; ++i) {
      const auto seconds = static_cast<float>(s.step_seconds[i]);
      rank_seconds[i * ranks + rank] = seconds;
      step_seconds[i] = rank == 0 ? seconds : std::max(step_seconds[i], seconds);
    }
    if (rank == 0) losses.assign(s.losses.begin(), s.losses.end());
    block.first_step_s = std::max(block.first_step_s, s.first_step_seconds);
    block.timed_total_s = std::max(block.timed_total_s, s.timed_total_seconds);
    if (static_cast<double>(s.peak_memory_bytes) > block.peak_memory_bytes) {
      block.peak_memory_bytes = static_cast<double>(s.peak_memory_bytes);
      block.peak_memory_rank = static_cast<std::int32_t>(rank);
    }
    for (const std::string& w : s.warnings) warn(w);
  }
  if (outcome.ok) file_->write_gpu(index, gpu_row(outcome.samples));
  file_->write_block(index, block, step_seconds, losses, rank_seconds);
  ResultCase& row = result_.cases[static_cast<std::size_t>(block.case_index)];
  if (!outcome.ok) {
    progress_.end("failed: " + outcome.reason);
    note_failure(block.case_index, outcome);
    return;
  }
  if (row.status != CaseStatus::ok) {
    row.status = CaseStatus::ok;
    file_->write_case(block.case_index, row);
  }
  const std::vector<double> timed(step_seconds.begin() + result_.warmup_steps, step_seconds.end());
  progress_.end(show_seconds(median(timed)) + " a step");
}

RunState SweepRun::finish() {
  bool open = interrupted_;
  for (const ResultBlock& b : result_.blocks) {
    const bool dropped = states_[static_cast<std::size_t>(b.case_index)].dropped;
    open = open || (b.status == BlockStatus::pending && !dropped);
  }
  // Failed in every block, though never twice alike: it has nothing to show either.
  for (std::size_t i = 0; i < result_.cases.size() && !interrupted_; ++i) {
    if (result_.cases[i].status != CaseStatus::pending) continue;
    result_.cases[i].status = CaseStatus::failed;
    file_->write_case(static_cast<int>(i), result_.cases[i]);
  }
  const RunState state = open ? RunState::partial : RunState::complete;
  file_->finish(state);
  file_.reset();
  return state;
}

}  // namespace harness
