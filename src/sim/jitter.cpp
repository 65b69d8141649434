#include "sim/jitter.h"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/text.h"
#include "sim/known.h"

namespace harness::sim {
namespace {

// The finisher of SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// In (0, 1].
double uniform(std::uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

}  // namespace

double jitter_factor(const config::Jitter& jitter, int draw, int rank, program::OperationId operation) {
  std::uint64_t bits = jitter.seed;
  for (const int part : std::array{draw, rank, static_cast<int>(operation)})
    bits = mixed(bits ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(part)));
  // Box and Muller 1958.
  const double normal = std::sqrt(-2 * std::log(uniform(bits))) * std::cos(2 * std::numbers::pi * uniform(mixed(bits)));
  const double variance = std::log1p(jitter.per_operation * jitter.per_operation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

double JitteredSteps::mean_s() const {
  return std::accumulate(step_s.begin(), step_s.end(), 0.0) / static_cast<double>(step_s.size());
}

double JitteredSteps::deviation_s() const {
  const double mean = mean_s();
  double squares = 0;
  for (const double s : step_s) squares += (s - mean) * (s - mean);
  return std::sqrt(squares / static_cast<double>(step_s.size() - 1));
}

JitteredSteps draw_steps(const RankClasses& classes, const std::vector<std::vector<Cost>>& costs,
                         const config::Jitter& jitter) {
  const program::ProgramSet& set = classes.set();
  std::int64_t operations = 0;
  for (std::size_t c = 0; c < costs.size(); ++c) operations += classes.list()[c].ranks * std::ssize(costs[c]);
  if (operations > jitter_operations_most) {
    throw NotPredicted(fmt::format(
        "with jitter every rank is simulated, and {} of {} operations are more than {}: take fewer ranks or "
        "micro-batches, or leave jitter out",
        plural(set.layout.ranks(), "rank"), operations / set.layout.ranks(), jitter_operations_most));
  }
  std::vector<int> each(set.layout.ranks());
  std::iota(each.begin(), each.end(), 0);
  const RankClasses ranks(set, each);  // numbered as the ranks are
  JitteredSteps drawn;
  for (int draw = 0; draw < jitter_draws; ++draw) {
    const SimulatedStep step = simulate(ranks, [&](int rank, program::OperationId id) {
      Cost cost = costs[classes.class_of(rank)][id];
      const double factor = jitter_factor(jitter, draw, rank, id);
      cost.alone = std::llround(static_cast<double>(cost.alone) * factor);
      return cost;
    });
    drawn.step_s.push_back(seconds_of(step.length));
  }
  return drawn;
}

}  // namespace harness::sim
