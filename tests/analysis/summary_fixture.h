#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/summary.h"
#include "base/random.h"
#include "store/result.h"
#include "support/sample_results.h"

namespace harness::analysis {

// A finished sweep: the two baselines and `changes`, one block per case and round, whose timed steps are about
// `seconds(case, round)` after a slow warm-up step.
class SummaryTest : public ::testing::Test {
 protected:
  template <class Seconds>
  store::Result sweep(int rounds, const std::vector<std::string>& changes, Seconds seconds) {
    store::Result result;
    result.state = store::RunState::complete;
    result.ranks = 4;
    result.rounds = rounds;
    result.warmup_steps = 1;
    result.steps = 3;
    result.variables = {"micro_batch_size"};
    std::vector<std::string> names{"baseline", "baseline_again"};
    names.insert(names.end(), changes.begin(), changes.end());
    for (const auto& name : names) {
      store::ResultCase row;
      row.name = name;
      row.status = store::CaseStatus::ok;
      row.settings = {"1"};
      row.ranks = 4;
      row.tokens_per_step = 1000;
      row.model_flop_per_step = 8e9;
      row.noncausal_flop_per_step = 9e9;
      row.hardware_flop_per_step = 10e9;
      row.peak_flops_per_rank = 4e9;
      result.cases.push_back(row);
    }
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t c = 0; c < names.size(); ++c) {
        const auto index = static_cast<int>(c);
        store::ResultBlock block = test::samples::finished_block(round, index, index);
        block.start_unix_s =
            1.7e9 + 60.0 * static_cast<double>(round * names.size() + place(index, round, names.size()));
        block.peak_memory_bytes = 1e6 * (round + 1);
        const auto s = static_cast<float>(seconds(index, round));
        block.timed_total_s = 3 * s;
        result.blocks.push_back(block);
        result.step_seconds.push_back({50 * s, s * 0.99f, s, s * 1.01f});
        result.losses.push_back({5, 4, 3, 2});
      }
    }
    return result;
  }
  // The order of the cases differs from round to round.
  static std::size_t place(int c, int round, std::size_t cases) {
    const auto n = static_cast<int>(cases);
    return static_cast<std::size_t>((round % 2 == 0 ? c : n - 1 - c) + round / 2) % cases;
  }
  static double scatter(int c, int round) { return philox_normal(1, static_cast<std::uint64_t>(100 * c + round)); }
  // A sweep whose change is unresolved.
  store::Result open_after_four_rounds() {
    return sweep(4, {"a=1"},
                 [](int c, int round) { return (c == 2 ? 1.03 : 1.0) * (1 + 0.005 * ((3 * c + 5 * round) % 7 - 3)); });
  }
  // Case 2 takes 0.8 s, the others 1 s, with a drift common to all and a scatter of 0.1 %.
  store::Result ordinary(int rounds = 12) {
    return sweep(rounds, {"micro_batch_size=2", "micro_batch_size=4"}, [](int c, int round) {
      return (c == 2 ? 0.8 : 1.0) * (1 + 0.002 * round) * (1 + 0.001 * scatter(c, round));
    });
  }
  static store::ResultBlock& block(store::Result& result, int round, int of) {
    return result.blocks[static_cast<std::size_t>(round) * result.cases.size() + static_cast<std::size_t>(of)];
  }
  static bool warns(const Summary& summary, const std::string& part) {
    for (const auto& warning : summary.warnings) {
      if (warning.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

}  // namespace harness::analysis
