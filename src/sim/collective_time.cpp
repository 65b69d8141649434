#include "sim/collective_time.h"

#include <cmath>
#include <utility>
#include <vector>

namespace harness::sim {
namespace {

// NCCL's model steps from size to size and from choice to choice. Points this near follow it to a tenth of a percent.
constexpr int points_of_octave = 4, octaves = 44;

}  // namespace

CollectiveTime::CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                               const config::Calibration& calibration, const config::Settings& settings)
    : kind_(kind),
      spread_(spread),
      network_(network),
      calibration_(calibration),
      effects_(kind, nccl_group(spread, network), settings) {
  if (!effects_.some()) return;
  std::vector<config::CurvePoint> points;
  for (int i = 0; i <= points_of_octave * octaves; ++i) {
    const double bytes = std::exp2(static_cast<double>(i) / points_of_octave);
    points.push_back({bytes, law(bytes) * effects_.at(bytes).slower});
  }
  rising_ = config::Curve(std::move(points)).rising();
}

double CollectiveTime::seconds(double bytes) const {
  return effects_.some() ? rising_.seconds_at(bytes) : law(bytes);
}

double CollectiveTime::law(double bytes) const {
  return collective_seconds(kind_, bytes, spread_, network_, calibration_);
}

}  // namespace harness::sim
