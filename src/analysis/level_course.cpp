#include "analysis/level_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/median.h"

namespace harness::analysis {
namespace {

constexpr std::size_t window = 8;  // blocks on either side of a jump
constexpr std::size_t near = 3;    // blocks on either side that show most of it already: drift takes longer
constexpr double least_jump = 0.03, least_errors = 5, least_sudden = 2.0 / 3, least_unusual = 4;
constexpr double median_to_mean_error = 1.2533;  // sqrt(pi / 2): a median's standard error over a mean's

using Values = std::span<const double>;

double distance_from_median(Values values, std::vector<double>& distances) {
  const double middle = median(values);
  double sum = 0;
  for (const double value : values) {
    distances.push_back(std::abs(value - middle));
    sum += distances.back();
  }
  return sum;
}

// One session's blocks, and the places between two of them that have a window on either side.
class Session {
 public:
  explicit Session(Values machine) : machine_(machine), scatter_(usual_scatter()) {}

  // Places of jumps, each the number of blocks before it.
  std::vector<LevelJump> jumps() const {
    std::vector<LevelJump> found;
    if (machine_.size() < 2 * window) return found;
    for (std::size_t place = window; place <= last_place(); ++place) {
      if (!is_largest_nearby(place) || !is_jump(place)) continue;
      const std::size_t sharp = sharpest_near(place);
      if (!is_jump(sharp) || !is_sudden(sharp)) continue;
      if (!found.empty() && sharp - found.back().first < window) continue;
      found.push_back({sharp, change_at(sharp), error_at(sharp)});
    }
    return found;
  }

 private:
  std::size_t last_place() const { return machine_.size() - window; }
  Values before(std::size_t place, std::size_t blocks = window) const {
    return machine_.subspan(place - blocks, blocks);
  }
  Values after(std::size_t place, std::size_t blocks = window) const { return machine_.subspan(place, blocks); }

  double change_at(std::size_t place, std::size_t blocks = window) const {
    return median(after(place, blocks)) - median(before(place, blocks));
  }

  // The deviation of one block from the median of its surroundings. A jump changes it at few blocks only.
  double usual_scatter() const {
    std::vector<double> distances;
    for (std::size_t i = 0; i < machine_.size(); ++i) {
      const std::size_t first = i > window ? i - window : 0, last = std::min(i + window + 1, machine_.size());
      const Values around = machine_.subspan(first, last - first);
      distances.push_back(std::abs(machine_[i] - median(around)));
    }
    return mad_to_deviation * median(distances);
  }

  // From one window to the next, elsewhere in the session: what drifts has many changes that are no jumps. 0 in a
  // session too short to tell.
  double usual_change_beside(std::size_t place) const {
    std::vector<double> changes;
    for (std::size_t other = window; other <= last_place(); ++other) {
      const std::size_t distance = other > place ? other - place : place - other;
      if (distance >= window) changes.push_back(std::abs(change_at(other)));
    }
    return changes.size() < window ? 0 : mad_to_deviation * median(changes);
  }

  // The standard error of the difference of two medians of `window` blocks. The scatter of the surroundings counts
  // where it is larger than usual.
  double error_at(std::size_t place) const {
    std::vector<double> distances;
    distance_from_median(before(place), distances);
    distance_from_median(after(place), distances);
    const double scatter = std::max(scatter_, mad_to_deviation * median(distances));
    return median_to_mean_error * scatter * std::sqrt(2.0 / window);
  }

  bool is_jump(std::size_t place) const {
    const double change = std::abs(change_at(place));
    return change > std::log1p(least_jump) && change > least_errors * error_at(place) &&
           change > least_unusual * usual_change_beside(place);
  }

  bool is_sudden(std::size_t place) const {
    const double change = change_at(place);
    return change_at(place, near) / change > least_sudden;
  }

  bool is_largest_nearby(std::size_t place) const {
    const double own = std::abs(change_at(place));
    const std::size_t first = std::max(window, place - window + 1), last = std::min(last_place(), place + window - 1);
    for (std::size_t other = first; other <= last; ++other) {
      const double change = std::abs(change_at(other));
      if (change > own || (change == own && other < place)) return false;
    }
    return true;
  }

  // Medians hardly notice a few blocks on the wrong side, distances from them do.
  std::size_t sharpest_near(std::size_t place) const {
    const std::size_t first = std::max(window, place - window / 2), last = std::min(last_place(), place + window / 2);
    std::size_t best = place;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t other = first; other <= last; ++other) {
      std::vector<double> ignored;
      const double distance =
          distance_from_median(before(other), ignored) + distance_from_median(after(other), ignored);
      if (distance >= least) continue;
      least = distance;
      best = other;
    }
    return best;
  }

  Values machine_;
  double scatter_;
};

std::pair<std::int32_t, double> session_and_time(const FinishedBlock& block) {
  return {block.session, block.steps_unix_s};
}

// Sorts the blocks by session and time, as the model does (keep_with_neighbour), and drops sessions whose blocks all
// have one time.
std::vector<FinishedBlock> in_order(std::vector<FinishedBlock> blocks) {
  std::map<std::int32_t, std::set<double>> times;
  for (const FinishedBlock& block : blocks) times[block.session].insert(block.steps_unix_s);
  std::erase_if(blocks, [&](const FinishedBlock& block) { return times[block.session].size() < 2; });
  std::ranges::stable_sort(blocks, {}, session_and_time);
  return blocks;
}

std::vector<double> machine_of(std::span<const CourseBlock> blocks) {
  std::vector<double> machine;
  for (const CourseBlock& block : blocks) machine.push_back(block.machine);
  return machine;
}

void find_jumps(LevelCourse& course) {
  const std::vector<double> machine = machine_of(course.blocks);
  for (std::size_t first = 0; first < machine.size();) {
    std::size_t end = first;
    while (end < machine.size() && course.blocks[end].session == course.blocks[first].session) ++end;
    for (LevelJump jump : Session(Values(machine).subspan(first, end - first)).jumps()) {
      jump.first += first;
      course.jumps.push_back(jump);
    }
    first = end;
  }
}

std::vector<CourseBlock> blocks_of(const SweepBlocks& sweep) {
  const std::vector<FinishedBlock> finished = in_order(sweep.blocks);
  std::vector<LevelBlock> blocks = level_blocks(finished);
  if (!number_groups(blocks, sweep.baseline, no_case).contains(sweep.baseline)) return {};
  std::vector<CourseBlock> course;
  const LevelFit fit = fit_level(blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const double of_case = fit.groups[static_cast<std::size_t>(blocks[i].group)].location - fit.groups[0].location;
    course.push_back({finished[i], std::exp(fit.level[i]), blocks[i].log_seconds - of_case, fit.set_aside[i]});
  }
  return course;
}

}  // namespace

LevelCourse level_course(std::span<const SweepBlocks> sweeps) {
  LevelCourse course;
  for (const SweepBlocks& sweep : sweeps) {
    std::vector<CourseBlock> blocks = blocks_of(sweep);
    const double apart = course.blocks.empty() ? 0 : median(machine_of(blocks)) - median(machine_of(course.blocks));
    for (CourseBlock& block : blocks) {
      block.level_seconds *= std::exp(-apart);
      block.machine -= apart;
      course.blocks.push_back(block);
    }
  }
  std::ranges::stable_sort(course.blocks, {}, session_and_time);
  find_jumps(course);
  return course;
}

LevelCourse level_course(const store::Result& result) {
  return level_course(comparable_blocks(result));
}

double level_drift(const LevelCourse& course) {
  const std::size_t third = course.blocks.size() / 3;
  if (third < 5 || course.blocks.front().session != course.blocks.back().session)
    return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> machine = machine_of(course.blocks);
  const Values all(machine);
  return median(all.last(third)) - median(all.first(third));
}

std::string change_in_words(double log_change) {
  return fmt::format("{:.3g} % {}", 100 * std::abs(std::expm1(log_change)), log_change > 0 ? "slower" : "faster");
}

}  // namespace harness::analysis
