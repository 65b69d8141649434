#pragma once

#include <cstdint>
#include <vector>

#include "config/jitter.h"
#include "sim/engine.h"

namespace harness::sim {

/// By how much longer an operation of a rank takes this time: log-normal with mean 1 and the deviation of `jitter`. A
/// pure function: the same rank, operation and draw have the same factor in every prediction.
double jitter_factor(const config::Jitter& jitter, int draw, int rank, program::OperationId operation);

/// Steps of a job whose operations each take a little more or less.
struct JitteredSteps {
  std::vector<double> step_s;  // of each draw
  double mean_s() const;
  double deviation_s() const;  // of one step
};

/// How often a step is drawn.
inline constexpr int jitter_draws = 5;
/// More operations of all ranks together than this would fill the memory of a laptop.
inline constexpr std::int64_t jitter_operations_most = 8'000'000;

/// Draws steps of all ranks of these classes: no two of them do the same at the same times now, so that each is
/// simulated. `costs`, by class and operation, are those without jitter; a communication takes what its last member to
/// come draws. Throws NotPredicted (sim/known.h) if there are more operations than jitter_operations_most.
JitteredSteps draw_steps(const RankClasses& classes, const std::vector<std::vector<Cost>>& costs,
                         const config::Jitter& jitter);

}  // namespace harness::sim
