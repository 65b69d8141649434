#include "analysis/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/disturbed.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

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

void foreign_use_warning(const store::Result& result, std::vector<std::string>& warnings) {
  const Exceeded foreign = foreign_use(result);
  if (!foreign.is_news()) return;
  std::map<std::string, std::int32_t> cores = cores_by_host(result);
  const std::string& host = result.conditions[foreign.worst].busiest_host;
  warnings.push_back(fmt::format(
      "other processes kept cores busy in {} of {} blocks, at most {:.1f} of {} cores, on {} at {}. Look at what ran "
      "there besides this job (top, squeue -w {}), and measure again without it: it slows cases and widens intervals.",
      foreign.blocks, foreign.known, foreign.most, cores[host], host, moment_of(result, foreign.worst), host));
}

void stolen_time_warning(const store::Result& result, std::vector<std::string>& warnings) {
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
  std::string words = fmt::format("{} at {}", change_in_words(jump.log_change), moment(first.time_unix_s, first.round));
  const double before = foreign_cores(result, course, jump.first < around ? 0 : jump.first - around, jump.first);
  const double after = foreign_cores(result, course, jump.first, jump.first + around);
  if (std::abs(after - before) > 0.1)
    words += fmt::format(", when other processes went from {:.1f} to {:.1f} busy cores", before, after);
  return words;
}

const char* effect_on_verdicts(const Summary& summary) {
  return summary.level ? "Verdicts take the machine's level out of each block; step times, tokens/s and MFU do not."
                       : "Verdicts compare blocks of the same round; step times, tokens/s and MFU mix both states.";
}

void jumps(const store::Result& result, const Summary& summary, const LevelCourse& course,
           std::vector<std::string>& warnings) {
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

void drift(const Summary& summary, const LevelCourse& course, std::vector<std::string>& warnings) {
  constexpr double much = 0.05;
  const double whole = level_drift(course);
  double by_jumps = 0;
  for (const LevelJump& jump : course.jumps) by_jumps += jump.log_change;
  // What a jump explains has been said.
  if (!(std::abs(whole) > much) || std::abs(whole - by_jumps) < much) return;
  warnings.push_back(
      fmt::format("the machine became {} from the first third of the sweep to the last. Let it run warm before the "
                  "sweep, or look for jobs that came or went. {}",
                  change_in_words(whole), effect_on_verdicts(summary)));
}

}  // namespace

std::vector<std::string> machine_warnings(const store::Result& result, const Summary& summary,
                                          const LevelCourse& course) {
  std::vector<std::string> warnings;
  foreign_use_warning(result, warnings);
  stolen_time_warning(result, warnings);
  jumps(result, summary, course, warnings);
  drift(summary, course, warnings);
  return warnings;
}

}  // namespace harness::analysis
