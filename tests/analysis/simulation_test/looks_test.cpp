// The benefit of looks, from simulated sweeps with known truth.
#include "analysis/estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>
#include <span>
#include <vector>

#include "analysis/noisy_sweep.h"
#include "analysis/verdict.h"
#include "support/soak.h"

namespace harness::analysis {
namespace {

using test::simulated::Disturbance;
using test::simulated::NoisySweeps;

struct Outcome {
  double settled = 0, blocks = 0;  // share of cases; per sweep, on average
  int false_sweeps = 0;            // sweeps with a verdict that contradicts the truth
};

std::vector<Look> looks_at(std::vector<int> rounds) {
  std::vector<Look> looks;
  int before = 0;
  for (const int r : rounds) {
    looks.push_back({r, static_cast<double>(r - before) / rounds.back()});
    before = r;
  }
  return looks;
}

bool contradicts(Verdict verdict, double effect, double smallest_effect) {
  const double threshold = std::log1p(smallest_effect);
  if (verdict == Verdict::faster) return effect >= -threshold;
  if (verdict == Verdict::slower) return effect <= threshold;
  return verdict == Verdict::same && std::abs(effect) >= threshold;
}

// Simulates a sweep as it would run: the drawn blocks are the disturbance of whatever runs next, and rounds shrink when
// cases are settled.
Outcome simulate(const Disturbance& noise, const std::vector<double>& effects, const std::vector<Look>& looks,
                 double smallest_effect, int sweeps) {
  const auto cases = static_cast<int>(effects.size());
  NoisySweeps noisy(noise, {.cases = cases, .rounds = looks.back().rounds}, 5);
  Outcome out;
  for (int n = 0; n < sweeps; ++n) {
    const SweepBlocks drawn = noisy.draw();
    auto machine = drawn.blocks.begin();
    SweepBlocks measured{{}, drawn.baseline, drawn.control};
    std::set<std::int32_t> open;
    for (int i = 0; i < cases; ++i) open.insert(i + 2);
    bool wrong = false;
    auto next = drawn.blocks.begin();
    for (const Look& look : looks) {
      for (; next != drawn.blocks.end() && next->round < look.rounds; ++next) {
        const std::int32_t which = next->case_index;
        if (which >= 2 && !open.contains(which)) continue;
        FinishedBlock block = *machine++;
        block.case_index = which;
        block.round = next->round;
        if (which >= 2) block.seconds *= std::exp(effects[which - 2]);
        measured.blocks.push_back(block);
      }
      std::vector<Question> questions;
      for (const std::int32_t which : open) questions.push_back({which, family_alpha(cases, 0.95), smallest_effect});
      const SweepEstimate answer = look_by_look(measured, questions, std::span(&look, 1), estimate_level);
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const std::int32_t which = questions[i].case_index;
        const Verdict verdict = verdict_of(answer.answers[i].log_ratio, smallest_effect);
        if (verdict == Verdict::unresolved || verdict == Verdict::none) continue;
        open.erase(which);
        out.settled += 1.0 / cases / sweeps;
        wrong |= contradicts(verdict, effects[which - 2], smallest_effect);
      }
      if (open.empty()) break;
    }
    out.blocks += static_cast<double>(measured.blocks.size()) / sweeps;
    out.false_sweeps += wrong;
  }
  return out;
}

const std::vector<int> usual{5, 8, 12, 18, 27, 40};

// The mixture of the study that recommended the procedure: no effect, small and large effects.
const std::vector<double> mixture{0, 0, 0, 0, 0.003, -0.005, 0.015, -0.02, 0.03, -0.08, std::log(1.4)};

std::vector<Disturbance> noises() {
  return {{.name = "drift 1 %, 600 s; set-up 0.2 %"},
          {.name = "the first, 10 % of blocks +5..20 %", .hit = 0.1},
          {.name = "no drift, set-up 0.5 %", .drift = 0, .set_up = 0.005}};
}

TEST(LooksSimulation, SettleAsMuchAsFortyRoundsWithHalfTheBlocks) {
  const int sweeps = test::soaking() ? 500 : 60;
  for (const Disturbance& noise : noises()) {
    const Outcome fixed = simulate(noise, mixture, looks_at({40}), 0.01, sweeps);
    const Outcome looked = simulate(noise, mixture, looks_at(usual), 0.01, sweeps);
    std::printf("%-40s fixed: %.1f %% settled, %.0f blocks; looks: %.1f %%, %.0f blocks; false %d and %d of %d\n",
                noise.name, 100 * fixed.settled, fixed.blocks, 100 * looked.settled, looked.blocks, fixed.false_sweeps,
                looked.false_sweeps, sweeps);
    EXPECT_GT(looked.settled, fixed.settled - 0.02) << noise.name;
    EXPECT_LT(looked.blocks, fixed.blocks / 2) << noise.name;
    EXPECT_LE(looked.false_sweeps, sweeps / 20) << noise.name;
  }
}

// All cases are identical and any effect counts, so every verdict "faster" or "slower" is false. Without sharing the
// error, six looks triple their number.
TEST(LooksSimulation, KeepTheDeclaredError) {
  const int sweeps = test::draws(120, 1000);
  const std::vector<double> nothing(11, 0.0);
  for (const Disturbance& noise : noises()) {
    std::vector<Look> greedy = looks_at(usual);
    for (Look& look : greedy) look.share = 1;
    const int looked = simulate(noise, nothing, looks_at(usual), 1e-9, sweeps).false_sweeps;
    const int at_will = simulate(noise, nothing, greedy, 1e-9, sweeps).false_sweeps;
    std::printf("%-40s false: %.1f %% of sweeps, %.1f %% without sharing the error\n", noise.name,
                100.0 * looked / sweeps, 100.0 * at_will / sweeps);
    EXPECT_LE(looked, 0.05 * sweeps + 2.5 * std::sqrt(0.05 * 0.95 * sweeps)) << noise.name;
    EXPECT_GT(at_will, looked) << noise.name;
  }
}

}  // namespace
}  // namespace harness::analysis
