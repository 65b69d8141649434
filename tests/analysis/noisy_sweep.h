#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

#include "analysis/estimator.h"

namespace harness::test::simulated {

/// Noise between blocks of cases that do not differ. Amounts are in log seconds; 0 turns a source off.
struct Disturbance {
  const char* name = "";
  double drift = 0.01, drift_time_s = 600;       // an Ornstein-Uhlenbeck process that all cases share
  double set_up = 0.002;                         // per block
  double step = 0.004;                           // per step
  double hit = 0;                                // share of blocks that take 5 to 20 % longer
  bool heavy_tails = false;                      // set-up effect with Student's t distribution, 3 degrees of freedom
  double odd_scatter = 1, baseline_scatter = 1;  // factors on the set-up effect of every second case, of the baselines
  double trend = 0;                              // over the whole sweep
  int visits = 0;                                // times that another job slows all blocks by 3 %
  double odd_suffers = 0;                        // extra share of that slowdown for every second case
  double sine = 0;                               // amplitude, with a period of 20 min
  double after_third = 0;                        // for the block after every third case
  double round_scatter = 0;                      // standard deviation of the log of a round's scatter
  double missing = 0;                            // share of blocks that are missing
  double odd_drift = 0;                          // additional drift of every second case
  bool odd_drift_centred = false;                // around its mean over the sweep
  int sessions = 1;                              // sessions, whose levels differ by 3 % (standard deviation)
  double second_state = 0;                       // share of blocks that independently take half as long again
};

struct Size {
  int cases = 11, rounds = 12;
  double steps = 60, step_s = 1, gap_s = 10;  // gap: set-up and warm-up of a block
};

/// Draws sweeps in which no case has an effect. Case 0 is the baseline, case 1 its copy. Each round holds every case
/// once, in the order of a row of a Williams square.
class NoisySweeps {
 public:
  NoisySweeps(const Disturbance& noise, const Size& size, unsigned seed) : noise_(noise), size_(size), random_(seed) {}

  analysis::SweepBlocks draw() {
    const std::vector<int> order = draw_order(size_.cases + 2);
    const int n = static_cast<int>(order.size()), columns = n / size_.rounds;
    const double block_s = size_.gap_s + size_.steps * size_.step_s;
    const std::vector<double> drift = wander(n, block_s);
    std::vector<double> own = wander(n, block_s);
    if (noise_.odd_drift_centred) centre(own);
    const std::vector<int> visitors = draw_visits(n);
    const double phase = 2 * std::numbers::pi * uniform();
    std::vector<double> y(static_cast<std::size_t>(n));
    analysis::SweepBlocks sweep{{}, 0, 1};
    double scatter_of_round = 1, level_of_session = 0;
    int previous_session = -1, previous = -1;
    const double mean_visitors = std::accumulate(visitors.begin(), visitors.end(), 0.0) / n;
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int which = order[at];
      const int round = i / columns;
      const bool odd = which >= 2 && which % 2 == 1;
      const int session = round / ((size_.rounds + noise_.sessions - 1) / noise_.sessions);
      if (session != previous_session) level_of_session = noise_.sessions > 1 ? 0.03 * normal() : 0;
      previous_session = session;
      if (i % columns == 0) scatter_of_round = std::exp(noise_.round_scatter * normal());
      double log_seconds = noise_.drift * drift[at] + noise_.trend * i / n + level_of_session;
      log_seconds += noise_.sine * std::sin(2 * std::numbers::pi * i * block_s / 1200 + phase);
      const double visit = 0.03 * (odd ? 1 + noise_.odd_suffers : 1);
      log_seconds += visit * visitors[at];
      if (odd) log_seconds -= 0.03 * noise_.odd_suffers * mean_visitors;  // the true value is this sweep's mean
      if (odd) log_seconds += noise_.odd_drift * own[at];
      const double scatter = scatter_of_round * scatter_of(which, odd);
      log_seconds += noise_.set_up * scatter * (noise_.heavy_tails ? student() : normal());
      log_seconds += 1.2533 * noise_.step / std::sqrt(size_.steps) * normal();  // standard error of a median
      if (uniform() < noise_.hit) log_seconds += std::log1p(0.05 + 0.15 * uniform());
      if (noise_.second_state > 0 && uniform() < noise_.second_state) log_seconds += std::log(1.5);
      if (previous >= 2 && (previous - 2) % 3 == 0) log_seconds += noise_.after_third;
      previous = which;
      y[at] = log_seconds;
      if (uniform() < noise_.missing) continue;
      sweep.blocks.push_back({.index = at,
                              .case_index = which,
                              .round = round,
                              .session = session,
                              .steps_unix_s = i * block_s,
                              .seconds = std::exp(log_seconds)});
    }
    return sweep;
  }

 private:
  double normal() { return normal_(random_); }
  double uniform() { return uniform_(random_); }
  double student() { return student_(random_) / std::numbers::sqrt3; }  // scaled to standard deviation 1

  static void centre(std::vector<double>& values) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    for (double& value : values) value -= mean;
  }

  double scatter_of(int which, bool odd) const {
    if (which < 2) return noise_.baseline_scatter;
    return odd ? noise_.odd_scatter : 1;
  }

  // Rows of a Williams square (0, 1, n - 1, 2, …) in random order, with random names.
  std::vector<int> draw_order(int columns) {
    std::vector<int> order, names(static_cast<std::size_t>(columns)), rotations;
    for (int round = 0; round < size_.rounds; ++round) {
      if (round % columns == 0) {
        for (int i = 0; i < columns; ++i) names[static_cast<std::size_t>(i)] = i;
        rotations = names;
        std::ranges::shuffle(names, random_);
        std::ranges::shuffle(rotations, random_);
      }
      for (int i = 0; i < columns; ++i) {
        const int zigzag = i % 2 == 1 ? (i + 1) / 2 : (columns - i / 2) % columns;
        const int place = (zigzag + rotations[static_cast<std::size_t>(round % columns)]) % columns;
        order.push_back(names[static_cast<std::size_t>(place)]);
      }
    }
    return order;
  }

  // Returns the mean over the timed part of each block of an Ornstein-Uhlenbeck process with standard deviation 1.
  std::vector<double> wander(int blocks, double block_s) {
    const double wanted_s = std::min(block_s / 5, noise_.drift_time_s / 3);
    const int parts = std::max(static_cast<int>(std::lround(block_s / wanted_s)), 1);
    const double part_s = block_s / parts, kept = std::exp(-part_s / noise_.drift_time_s);
    const int skipped = std::min(static_cast<int>(std::lround(size_.gap_s / part_s)), parts - 1);
    std::vector<double> means;
    double now = normal();
    for (int block = 0; block < blocks; ++block) {
      double sum = 0;
      for (int part = 0; part < parts; ++part) {
        if (part >= skipped) sum += now;
        now = kept * now + std::sqrt(1 - kept * kept) * normal();
      }
      means.push_back(sum / (parts - skipped));
    }
    return means;
  }

  // Returns the number of visitors during each block.
  std::vector<int> draw_visits(int blocks) {
    std::vector<int> visitors(static_cast<std::size_t>(blocks), 0);
    for (int visit = 0; visit < noise_.visits; ++visit) {
      const double from = uniform() * blocks, to = from - 0.25 * blocks * std::log1p(-uniform());
      for (int i = 0; i < blocks; ++i) {
        if (i >= from && i < to) ++visitors[static_cast<std::size_t>(i)];
      }
    }
    return visitors;
  }

  Disturbance noise_;
  Size size_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::student_t_distribution<double> student_{3};
  std::uniform_real_distribution<double> uniform_;
};

}  // namespace harness::test::simulated
