#pragma once

#include <optional>
#include <vector>

#include "analysis/stragglers.h"
#include "store/result.h"

namespace harness {

/// Whenever a rank was last: by how much it then exceeded the median rank.
struct Lasts {
  std::vector<float> excess_s, excess_share;
};

/// Who was last in the timed steps of all finished blocks, by Result::rank_seconds; which the object refers to.
class TimedSteps {
 public:
  explicit TimedSteps(const Result& result);
  HeatMap heat(std::size_t rows) const;

  std::int64_t steps = 0;
  std::optional<std::size_t> worst_block;
  const std::vector<Lasts>& lasts() const { return lasts_; }

 private:
  const float* step_of(std::size_t block, std::size_t step) const;
  float median_of(const float* seconds) const;  // of those that are numbers; NaN with fewer than two
  void look_at(std::size_t block);

  const Result& result_;
  std::vector<Lasts> lasts_;
  mutable std::vector<float> scratch_;
  double worst_ = 0;
};

}  // namespace harness
