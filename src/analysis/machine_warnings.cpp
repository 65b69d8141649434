#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "analysis/level_model.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

constexpr double much_stolen = 0.02;

std::string moment(double unix_s, std::int32_t round) {
  return fmt::format("{} UTC (round {})", clock_text(unix_s), round + 1);
}

std::string moment_of(const store::Result& result, std::size_t block) {
  return moment(result.blocks[block].start_unix_s, result.blocks[block].round);
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

// The mean over the blocks from first to before end; NaN if none of them knows.
double foreign_cores(const store::Result& result, const LevelCourse& course, std::size_t first, std::size_t end) {
  double sum = 0;
  int known = 0;
  for (std::size_t i = first; i < std::min(end, course.blocks.size()); ++i) {
    const std::size_t block = course.blocks[i].index;
    if (block >= result.conditions.size() || std::isnan(result.conditions[block].foreign_cores)) continue;
    sum += result.conditions[block].foreign_cores;
    ++known;
  }
  return known > 0 ? sum / known : std::numeric_limits<double>::quiet_NaN();
}

std::string jump_in_words(const store::Result& result, const LevelCourse& course, const LevelJump& jump) {
  constexpr std::size_t around = 8;
  const CourseBlock& first = course.blocks[jump.first];
  std::string words =
      fmt::format("{} at {}", change_in_words(jump.log_change), moment(first.steps_unix_s, first.round));
  const double before = foreign_cores(result, course, jump.first < around ? 0 : jump.first - around, jump.first);
  const double after = foreign_cores(result, course, jump.first, jump.first + around);
  if (std::abs(after - before) > 0.1)
    words += fmt::format(", when other processes went from {:.1f} to {:.1f} busy cores", before, after);
  return words;
}

const char* effect_on_verdicts(const Summary& summary) {
  return !summary.levels.empty()
             ? "Verdicts take the machine's level out of each block; step times, tokens/s and MFU do not."
             : "Verdicts compare blocks of the same round; step times, tokens/s and MFU mix both states.";
}

void jumps(const store::Result& result, const Summary& summary, const LevelCourse& course, Warnings& warnings) {
  constexpr std::size_t most_listed = 4;
  if (course.jumps.empty()) return;
  std::vector<std::string> listed;
  for (const LevelJump& jump : course.jumps) {
    if (listed.size() < most_listed) listed.push_back(jump_in_words(result, course, jump));
  }
  const std::size_t more = course.jumps.size() - listed.size();
  warnings.push_back(fmt::format("the machine became {}{}. Look at what started or ended then on the nodes. {}",
                                 join(listed, "; "), more > 0 ? fmt::format("; and so on {} more times", more) : "",
                                 effect_on_verdicts(summary)));
}

void drift(const Summary& summary, const LevelCourse& course, Warnings& warnings) {
  constexpr double much = 0.05;
  const double whole = level_drift(course);
  double by_jumps = 0;
  for (const LevelJump& jump : course.jumps) by_jumps += jump.log_change;
  // The warning about jumps covers a drift that they explain.
  if (!(std::abs(whole) > much) || std::abs(whole - by_jumps) < much) return;
  warnings.push_back(
      fmt::format("the machine became {} from the first third of the sweep to the last. Let it run warm before the "
                  "sweep, or look for jobs that came or went. {}",
                  change_in_words(whole), effect_on_verdicts(summary)));
}

using SetAside = LevelFindings::SetAside;

// Blocks so far off are disturbances where they are few. More than a tenth of all, or more of one case than chance (1
// %) puts there at the share of the other cases, are a second state of the machine or of the case.
void set_aside_warnings(const store::Result& result, std::span<const LevelFindings> levels, Warnings& warnings) {
  constexpr double few = 0.1, usual = 0.02, chance = 0.01;
  constexpr std::size_t max_named = 6;
  std::vector<SetAside> rows;
  int all = 0, blocks = 0;
  for (const LevelFindings& level : levels) {
    blocks += level.blocks;
    for (const SetAside& row : level.set_aside) {
      rows.push_back(row);
      all += row.set_aside;
    }
  }
  const double share = static_cast<double>(all) / std::max(blocks, 1);
  std::vector<std::string> suspects;
  for (const SetAside& row : rows) {
    const double of_others = static_cast<double>(all - row.set_aside) / std::max(blocks - row.blocks, 1);
    if (binomial_upper_tail(row.blocks, row.set_aside, std::clamp(of_others, usual, 0.99)) >= chance) continue;
    suspects.push_back(
        fmt::format("{} of {} blocks of {}", row.set_aside, row.blocks, result.case_at(row.case_index).name));
  }
  if (share > few) {
    warnings.push_back(
        fmt::format("{} of {} blocks are too far off the others of their case to count. More than a tenth is no rare "
                    "disturbance: look for other jobs on the nodes, or measure when the machine is quiet.",
                    all, blocks));
  }
  if (!suspects.empty()) {
    warnings.push_back(
        fmt::format("{} lie apart from the others and do not count: the case may have two states. Look at its block "
                    "medians; its effect describes the state that most blocks are in.",
                    join_first(suspects, max_named)));
  }
}

// Whether they matter is for the verdict to say: an interval that reaches far may still lie beyond the threshold.
void two_states_warning(const Summary& summary, Warnings& warnings) {
  constexpr std::size_t max_named = 6;
  std::vector<std::string> names;
  for (const CaseSummary& row : summary.cases) {
    if (row.effect && row.effect->two_states) names.push_back(row.name);
  }
  if (names.empty()) return;
  warnings.push_back(
      fmt::format("some blocks of {} lie far off the rest. Blocks so far off are so common in this sweep that most "
                  "blocks of a case may be the disturbed ones, so its interval reaches to both groups. More rounds "
                  "tell them apart; so does a quiet machine.",
                  join_first(names, max_named)));
}

// " (at message_size=1 MiB, …)": the sizes of an operation that a finding is about; "" where there is one size.
std::string at_sizes(const store::Result& result, std::span<const LevelFindings* const> found) {
  constexpr std::size_t max_named = 4;
  if (!is_grid(result)) return "";
  std::vector<std::string> names;
  for (const LevelFindings* level : found) names.push_back(result.case_at(level->reference).name);
  return fmt::format(" (at {})", join_first(names, max_named));
}

void guard_warnings(const store::Result& result, std::span<const LevelFindings> levels, Warnings& warnings) {
  std::vector<const LevelFindings*> left, carried, widened;
  for (const LevelFindings& level : levels) {
    if (level.baseline_left) left.push_back(&level);
    if (level.carry_over != no_case) carried.push_back(&level);
    if (level.widening > 1) widened.push_back(&level);
  }
  if (!left.empty()) {
    warnings.push_back(
        fmt::format("baseline_again is {:+.1f} % off the baseline{}, so it is no reference: all effects are against "
                    "the baseline alone. Find out what moved, then measure again.",
                    100 * std::expm1(*left.front()->baseline_left), at_sizes(result, left)));
  }
  if (!carried.empty()) {
    warnings.push_back(
        fmt::format("a block's time depends on the case that ran before it{}; it is longest after {}. So each block is "
                    "held against the other blocks of its round instead of its neighbours, and the intervals are "
                    "wider. Use more warm-up steps (measure.warmup_steps), or longer blocks.",
                    at_sizes(result, carried), result.case_at(carried.front()->carry_over).name));
  }
  if (!widened.empty()) {
    const LevelFindings& most = **std::ranges::max_element(widened, {}, &LevelFindings::widening);
    warnings.push_back(fmt::format(
        "cases drift in ways of their own{}, or suffer unequally from what comes and goes: their blocks of successive "
        "rounds are off together (correlation {:.2f}). All intervals are made {:.2f} times as wide. They hold for the "
        "conditions of this sweep; measure when the machine is quiet, or repeat the sweep another day.",
        at_sizes(result, widened), most.serial_correlation, most.widening));
  }
  set_aside_warnings(result, levels, warnings);
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

bool Exceeded::is_news() const {
  constexpr double few = 0.1;
  return blocks > few * known;
}

Exceeded foreign_use(const store::Result& result) {
  constexpr double much = 0.05;  // of the cores
  std::map<std::string, std::int32_t> cores = cores_by_host(result);
  Exceeded foreign;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    const machine::Conditions& row = result.conditions[i];
    if (result.blocks[i].status != store::BlockStatus::ok) continue;
    const std::int32_t of_host = cores[row.busiest_host];
    if (of_host > 0) foreign.count(i, row.foreign_cores, much * of_host);
  }
  return foreign;
}

Exceeded stolen_time(const store::Result& result) {
  Exceeded steal;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    if (result.blocks[i].status == store::BlockStatus::ok)
      steal.count(i, result.conditions[i].steal_share, much_stolen);
  }
  return steal;
}

void machine_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  const LevelCourse course = level_course(result);
  foreign_use_warning(result, warnings);
  stolen_time_warning(result, warnings);
  jumps(result, summary, course, warnings);
  drift(summary, course, warnings);
}

void level_warnings(const store::Result& result, const Summary& summary, Warnings& warnings) {
  if (sweeps_sizes_alone(result)) return;  // nobody sees their intervals
  guard_warnings(result, summary.levels, warnings);
  two_states_warning(summary, warnings);
}

}  // namespace harness::analysis
