#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/median.h"

namespace harness::test::simulated {

/// How a cluster's speed wanders, in shares of the step time. Drift is an Ornstein-Uhlenbeck process.
struct Noise {
  double drift = 0.01, drift_time_s = 600;
  double set_up = 0.002;                    // one draw per block: memory placement, routes
  double step = 0.004;                      // one draw per step
  double spike_share = 0.02, spike = 0.10;  // of steps; mean extra time, exponential
};

/// One sweep: a baseline and `cases` others, each once per round in random order, blocks of 60 steps of about 1 s, 10 s
/// between blocks. Returns block medians [case][round]; [0] is the baseline.
class Sweep {
 public:
  Sweep(const Noise& noise, unsigned seed) : noise_(noise), random_(seed) { drift_ = noise_.drift * normal_(random_); }

  std::vector<std::vector<double>> run(int cases, int rounds, const std::vector<double>& true_ratios) {
    std::vector<std::vector<double>> medians(static_cast<std::size_t>(cases) + 1,
                                             std::vector<double>(static_cast<std::size_t>(rounds)));
    std::vector<std::size_t> order(medians.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
      std::shuffle(order.begin(), order.end(), random_);
      for (const std::size_t which : order) medians[which][round] = block(true_ratios[which]);
    }
    return medians;
  }

 private:
  void pass(double seconds) {
    const double kept = std::exp(-seconds / noise_.drift_time_s);
    drift_ = drift_ * kept + noise_.drift * std::sqrt(1 - kept * kept) * normal_(random_);
  }
  double block(double ratio) {
    pass(10);
    const double set_up = noise_.set_up * normal_(random_);
    for (double& step : steps_) {
      pass(1);
      step = ratio * std::exp(drift_ + set_up + noise_.step * normal_(random_));
      if (uniform_(random_) < noise_.spike_share) step -= noise_.spike * std::log1p(-uniform_(random_));
    }
    return median(steps_);
  }

  Noise noise_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double drift_ = 0;
  std::vector<double> steps_ = std::vector<double>(60);
};

}  // namespace harness::test::simulated
