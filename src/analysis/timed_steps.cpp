#include "analysis/timed_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace harness {

TimedSteps::TimedSteps(const Result& result) : result_(result), lasts_(static_cast<std::size_t>(result.ranks)) {
  for (std::size_t block = 0; block < result.rank_seconds.size() && block < result.blocks.size(); ++block) {
    if (result.blocks[block].status == BlockStatus::ok) look_at(block);
  }
}

const float* TimedSteps::step_of(std::size_t block, std::size_t step) const {
  return result_.rank_seconds[block].data() + step * static_cast<std::size_t>(result_.ranks);
}

float TimedSteps::median_of(const float* seconds) const {
  scratch_.clear();
  for (std::int32_t r = 0; r < result_.ranks; ++r) {
    if (std::isfinite(seconds[r])) scratch_.push_back(seconds[r]);
  }
  if (scratch_.size() < 2) return std::numeric_limits<float>::quiet_NaN();
  const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>((scratch_.size() - 1) / 2);
  std::nth_element(scratch_.begin(), middle, scratch_.end());
  return *middle;  // the lower of two: with two ranks the excess is over the other
}

void TimedSteps::look_at(std::size_t block) {
  const auto ranks = static_cast<std::size_t>(result_.ranks);
  for (auto step = static_cast<std::size_t>(result_.warmup_steps);
       ranks > 0 && (step + 1) * ranks <= result_.rank_seconds[block].size(); ++step) {
    const float* seconds = step_of(block, step);
    const float median_s = median_of(seconds);
    if (!(median_s > 0)) continue;
    std::size_t last = 0;
    for (std::size_t r = 1; r < ranks; ++r) {
      if (!std::isfinite(seconds[last]) || seconds[r] > seconds[last]) last = r;
    }
    const float excess_s = seconds[last] - median_s, share = excess_s / median_s;
    ++steps;
    lasts_[last].excess_s.push_back(excess_s);
    lasts_[last].excess_share.push_back(share);
    if (worst_block && share <= worst_) continue;
    worst_ = share;
    worst_block = block;
  }
}

HeatMap TimedSteps::heat(std::size_t rows) const {
  HeatMap map;
  const std::size_t block = *worst_block;
  map.block = static_cast<std::int32_t>(block);
  map.case_index = result_.blocks[block].case_index;
  const auto ranks = static_cast<std::size_t>(result_.ranks), most = std::max<std::size_t>(rows, 1);
  const std::size_t per_row = (ranks + most - 1) / most;
  map.ranks_per_row = static_cast<std::int32_t>(per_row);
  const auto first_step = static_cast<std::size_t>(result_.warmup_steps);
  const std::size_t all_steps = result_.rank_seconds[block].size() / ranks;
  for (std::size_t first = 0; first < ranks; first += per_row) {
    map.first_rank.push_back(static_cast<std::int32_t>(first));
    auto& row = map.seconds.emplace_back();
    for (std::size_t step = first_step; step < all_steps; ++step) {
      float slowest = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t r = first; r < std::min(first + per_row, ranks); ++r) {
        const float s = step_of(block, step)[r];
        if (!(s <= slowest) && std::isfinite(s)) slowest = s;
      }
      row.push_back(slowest);
    }
  }
  for (std::size_t step = first_step; step < all_steps; ++step) map.median.push_back(median_of(step_of(block, step)));
  return map;
}

}  // namespace harness
