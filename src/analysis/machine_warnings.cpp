#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

constexpr double much_foreign = 0.05;  // share of the cores
constexpr double much_stolen = 0.02;
constexpr std::size_t most_named = 6;

std::string moment_of(const store::Result& result, std::size_t block) {
  return fmt::format("{} UTC (round {})", clock_text(result.blocks[block].start_unix_s),
                     result.blocks[block].round + 1);
}

std::map<std::string, std::int32_t> cores_by_host(const store::Result& result) {
  std::map<std::string, std::int32_t> cores;
  for (const store::ResultRank& rank : result.rank_table) cores[rank.host] = std::max(cores[rank.host], rank.cores);
  return cores;
}

void foreign_use_warning(const store::Result& result, Warnings& warnings) {
  const Exceeded foreign = foreign_use(result);
  if (!foreign.is_news()) return;
  std::map<std::string, std::int32_t> cores = cores_by_host(result);
  const std::string& host = result.conditions[foreign.worst].busiest_host;
  warnings.push_back(fmt::format(
      "other processes kept cores busy in {} of {} blocks, at most {:.1f} of {} cores, on {} at {}. Look at what ran "
      "there besides this job (top, squeue -w {}), and measure again without it: it slows cases and widens intervals.",
      foreign.blocks, foreign.known, foreign.most, cores[host], host, moment_of(result, foreign.worst), host));
}

void stolen_time_warning(const store::Result& result, Warnings& warnings) {
  const Exceeded steal = stolen_time(result);
  if (!steal.is_news()) return;
  warnings.push_back(fmt::format(
      "this is a virtual machine whose host gave more than {:.0f} % of its CPU time to other guests in {} of {} "
      "blocks, at most {:.0f} %, at {}. Measure on an instance of its own, or repeat the sweep at another time.",
      100 * much_stolen, steal.blocks, steal.known, 100 * steal.most, moment_of(result, steal.worst)));
}

// An operation with several sizes is judged at the size with the largest change.
void changed_speed(const store::Result& result, std::span<const LevelFindings> levels, Warnings& warnings) {
  const auto change = [](const LevelFindings& level) { return level.range ? level.range->log_change : 0; };
  const auto most = std::ranges::max_element(levels, {}, change);
  if (most == levels.end() || !most->range) return;
  warnings.push_back(
      fmt::format("the machine took {:.3g} times as long at {} as at {}. Look at what started or ended between on the "
                  "nodes, and let the machine run warm before a sweep. Verdicts take the machine's level out of each "
                  "block; step times, tokens/s and MFU do not.",
                  std::exp(most->range->log_change), moment_of(result, most->range->slowest),
                  moment_of(result, most->range->fastest)));
}

// A few blocks set aside are disturbances. More than a tenth of all, or more of one case than chance (1 %) explains at
// the other cases' share, indicate a second state of the machine or of the case.
void set_aside_warning(const store::Result& result, std::span<const LevelFindings> levels, Warnings& warnings) {
  constexpr double few = 0.1, usual = 0.02, chance = 0.01;
  int all = 0, blocks = 0;
  for (const LevelFindings& level : levels) {
    blocks += level.blocks;
    for (const auto& row : level.set_aside) all += row.set_aside;
  }
  std::vector<std::string> suspects;
  for (const LevelFindings& level : levels) {
    for (const auto& row : level.set_aside) {
      const double of_others = static_cast<double>(all - row.set_aside) / std::max(blocks - row.blocks, 1);
      if (binomial_upper_tail(row.blocks, row.set_aside, std::clamp(of_others, usual, 0.99)) >= chance) continue;
      suspects.push_back(
          fmt::format("{} of {} of {}", row.set_aside, row.blocks, short_name(result.case_at(row.case_index).name)));
    }
  }
  if (suspects.empty() && !(all > few * blocks)) return;
  warnings.push_back(
      fmt::format("{} of {} blocks are too far off the others of their case to count{}. So many are no rare "
                  "disturbance: look for other jobs on the nodes, or for two states of a case; its effect describes "
                  "the state that most blocks are in.",
                  all, blocks, suspects.empty() ? "" : ", above all " + join_first(suspects, most_named)));
}

// The verdict decides whether they matter: a wide interval may still lie beyond the threshold.
void two_states_warning(const Summary& summary, Warnings& warnings) {
  std::vector<std::string> names;
  for (const CaseSummary& row : summary.cases) {
    if (row.effect && row.effect->two_states) names.push_back(short_name(row.name));
  }
  if (names.empty()) return;
  warnings.push_back(
      fmt::format("some blocks of {} lie far off the rest. Blocks so far off are so common in this sweep that most "
                  "blocks of a case may be the disturbed ones, so its interval reaches to both groups. More rounds "
                  "tell them apart; so does a quiet machine.",
                  join_first(names, most_named)));
}

// The first size with an objection stands for the others.
void guard_warnings(const store::Result& result, std::span<const LevelFindings> levels, Warnings& warnings) {
  const auto where = [&](const LevelFindings& level) {
    return is_grid(result) ? fmt::format(" (at {})", result.case_at(level.reference).name) : "";
  };
  const auto left =
      std::ranges::find_if(levels, [](const LevelFindings& level) { return level.baseline_left.has_value(); });
  if (left != levels.end()) {
    warnings.push_back(fmt::format(
        "baseline_again is {:+.1f} % off the baseline{}, so it is no reference: all effects are against the baseline "
        "alone. Find out what moved, then measure again.",
        100 * std::expm1(*left->baseline_left), where(*left)));
  }
  const auto carries =
      std::ranges::find_if(levels, [](const LevelFindings& level) { return level.carry_over != no_case; });
  if (carries != levels.end()) {
    warnings.push_back(fmt::format(
        "a block's time depends on the case that ran before it{}; it is longest after {}. So each block is held "
        "against the other blocks of its round instead of its neighbours, and the intervals are wider. Use more "
        "warm-up steps (measure.warmup_steps), or longer blocks.",
        where(*carries), short_name(result.case_at(carries->carry_over).name)));
  }
  const auto drifts = std::ranges::find_if(levels, [](const LevelFindings& level) { return level.widening > 1; });
  if (drifts != levels.end()) {
    warnings.push_back(fmt::format(
        "cases drift in ways of their own{}, or suffer unequally from what comes and goes: their blocks of successive "
        "rounds are off together (correlation {:.2f}). All intervals are made {:.2f} times as wide. They hold for the "
        "conditions of this sweep; measure when the machine is quiet, or repeat the sweep another day.",
        where(*drifts), drifts->serial_correlation, drifts->widening));
  }
}

}  // namespace

void Exceeded::count(std::size_t block, double value, double limit) {
  if (std::isnan(value)) return;
  ++known;
  if (value > limit) ++blocks;
  if (value <= most) return;
  most = value;
  worst = block;
}

Exceeded foreign_use(const store::Result& result) {
  std::map<std::string, std::int32_t> cores = cores_by_host(result);
  Exceeded foreign;
  for (const std::size_t i : good_blocks(result, result.conditions.size())) {
    const std::int32_t of_host = cores[result.conditions[i].busiest_host];
    if (of_host > 0) foreign.count(i, result.conditions[i].foreign_cores, much_foreign * of_host);
  }
  return foreign;
}

Exceeded stolen_time(const store::Result& result) {
  Exceeded steal;
  for (const std::size_t i : good_blocks(result, result.conditions.size()))
    steal.count(i, result.conditions[i].steal_share, much_stolen);
  return steal;
}

void machine_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  foreign_use_warning(result, warnings);
  stolen_time_warning(result, warnings);
  changed_speed(result, summary.levels, warnings);
}

void level_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  if (sweeps_sizes_alone(result)) return;  // their intervals are not shown
  guard_warnings(result, summary.levels, warnings);
  set_aside_warning(result, summary.levels, warnings);
  two_states_warning(summary, warnings);
}

}  // namespace harness::analysis
