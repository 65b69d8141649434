#include "evidence/training_log.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/verdict.h"
#include "base/median.h"
#include "base/text.h"

namespace harness::evidence {
namespace {

constexpr double least_share = 0.02, deviations = 3, spike_factor = 1.5;
constexpr std::size_t least_side = 5, most_points = 1000;

double mad(std::vector<double> values, double centre) {
  for (double& value : values) value = std::abs(value - centre);
  return median(values);
}

// Splits and slopes are quadratic in the number of values, so long logs are reduced to medians of equal runs of values.
struct Points {
  std::vector<double> values;
  std::vector<std::size_t> places;  // index of each point's first value
};

Points points_of(std::span<const double> values, std::span<const std::size_t> places) {
  Points out;
  const std::size_t run = (values.size() + most_points - 1) / most_points;
  for (std::size_t i = 0; i < values.size(); i += run) {
    out.values.push_back(median(values.subspan(i, std::min(run, values.size() - i))));
    out.places.push_back(places[i]);
  }
  return out;
}

struct Split {
  std::size_t at = 0;
  double left = 0, right = 0;
};

std::optional<Split> largest_split(const std::vector<double>& values) {
  std::optional<Split> best;
  double most = 0;
  const std::span<const double> all(values);
  for (std::size_t at = least_side; at + least_side <= values.size(); ++at) {
    const Split split{at, median(all.first(at)), median(all.subspan(at))};
    const double size = std::abs(std::log(split.right / split.left));
    if (best && size <= most) continue;
    most = size;
    best = split;
  }
  return best;
}

// Medians barely react to a few values from the other side. The split is where the sum of absolute deviations from both
// medians is smallest.
std::size_t sharpest_split(const std::vector<double>& values, const Split& rough) {
  std::size_t best = rough.at;
  double sum = 0, least = 0;  // relative to a split before the first value
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += std::abs(values[i] - rough.left) - std::abs(values[i] - rough.right);
    if (sum >= least) continue;
    least = sum;
    best = i + 1;
  }
  return std::min(best, values.size() - 1);
}

std::optional<StepTimes::Jump> find_jump(const Points& points) {
  const auto split = largest_split(points.values);
  if (!split || std::abs(split->right / split->left - 1) < least_share) return std::nullopt;
  std::vector<double> residuals;
  for (std::size_t i = 0; i < points.values.size(); ++i)
    residuals.push_back(points.values[i] - (i < split->at ? split->left : split->right));
  const double noise = analysis::mad_to_deviation * mad(residuals, 0);
  if (std::abs(split->right - split->left) < deviations * noise) return std::nullopt;
  return StepTimes::Jump{points.places[sharpest_split(points.values, *split)], split->left, split->right};
}

std::optional<double> find_drift(const Points& points, double centre) {
  const std::vector<double>& v = points.values;
  if (v.size() < least_side) return std::nullopt;
  std::vector<double> slopes;
  slopes.reserve(v.size() * (v.size() - 1) / 2);
  for (std::size_t i = 0; i < v.size(); ++i) {
    for (std::size_t j = i + 1; j < v.size(); ++j) slopes.push_back((v[j] - v[i]) / static_cast<double>(j - i));
  }
  const double slope = median(slopes);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < v.size(); ++i) residuals.push_back(v[i] - slope * static_cast<double>(i));
  const double rise = slope * static_cast<double>(v.size() - 1);
  const double noise = mad(residuals, median(residuals));
  if (std::abs(rise) < least_share * centre || std::abs(rise) < deviations * noise) return std::nullopt;
  return rise / centre;
}

// Returns the spacing of at least three spikes, in values, if three quarters of the gaps agree; otherwise 0.
std::int64_t period_of(const std::vector<std::size_t>& spikes) {
  if (spikes.size() < 3) return 0;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < spikes.size(); ++i) gaps.push_back(static_cast<double>(spikes[i] - spikes[i - 1]));
  const double usual = median(gaps);
  const auto fits = [&](double gap) { return usual >= 2 && std::abs(gap - usual) <= std::max(1.0, 0.02 * usual); };
  const auto fitting = static_cast<std::size_t>(std::ranges::count_if(gaps, fits));
  return 4 * fitting >= 3 * gaps.size() ? std::llround(usual) : 0;
}

// Order statistics k and n + 1 - k enclose the median with probability 1 - 2 P(X >= n + 1 - k), X ~ Binomial(n, 1/2).
void add_interval(std::vector<double> values, StepTimes& out) {
  constexpr double tail = 0.025;
  constexpr int most = 100'000;
  const int n = static_cast<int>(std::min<std::size_t>(values.size(), most));
  int low = 1, high = (n + 1) / 2;
  if (n < 6 || values.size() > most) return;
  while (low < high) {  // largest k with a small enough tail
    const int k = (low + high + 1) / 2;
    if (analysis::binomial_upper_tail(n, n + 1 - k, 0.5) <= tail) {
      low = k;
    } else {
      high = k - 1;
    }
  }
  std::ranges::sort(values);
  out.low = values[static_cast<std::size_t>(low - 1)];
  out.high = values[static_cast<std::size_t>(n - low)];
}

}  // namespace

StepTimes judge_steps(std::span<const double> seconds) {
  if (seconds.empty()) fail("the log has no step times");
  StepTimes out;
  const std::size_t n = seconds.size();
  const std::size_t tenth = (n + 9) / 10;
  std::size_t skipped = n <= 4 ? 1 : std::clamp<std::size_t>(tenth, 1, 10);
  if (n == 1) skipped = 0;
  out.intervals = static_cast<std::int64_t>(n);
  out.skipped = static_cast<std::int64_t>(skipped);
  const std::span<const double> kept = seconds.subspan(skipped);
  const double centre = median(kept);
  std::size_t lasting = kept.size();  // first of the values that stay high to the end: a change, no spikes
  while (lasting > 0 && kept[lasting - 1] > spike_factor * centre) --lasting;
  if (kept.size() - lasting < least_side) lasting = kept.size();

  std::vector<double> steady;
  std::vector<std::size_t> places, spikes;
  double excess = 0, sum = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    sum += kept[i];
    if (i < lasting && kept[i] > spike_factor * centre) {
      spikes.push_back(skipped + i);
      excess += kept[i] - centre;
    } else {
      steady.push_back(kept[i]);
      places.push_back(skipped + i);
    }
  }
  out.spikes = static_cast<std::int64_t>(spikes.size());
  out.lost = sum > 0 ? excess / sum : 0;
  out.period = period_of(spikes);

  const Points points = points_of(steady, places);
  out.jump = find_jump(points);
  if (out.jump) {
    const auto behind = std::ranges::lower_bound(places, out.jump->at) - places.begin();
    steady.erase(steady.begin(), steady.begin() + behind);
    out.jump->after = median(steady);
  } else {
    out.drift = find_drift(points, centre);
  }
  out.seconds = out.jump ? out.jump->after : centre;
  out.counted = std::ssize(steady);
  out.spread = analysis::mad_to_deviation * mad(steady, median(steady)) / out.seconds;
  add_interval(std::move(steady), out);
  return out;
}

}  // namespace harness::evidence
