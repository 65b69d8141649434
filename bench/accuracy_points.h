#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/calibration.h"
#include "config/files.h"

namespace harness::accuracy {

/// A published step of configs/published/steps.csv. `use` is "fit", or "judge": a step that no number is fitted to.
using Row = config::PublishedRow;

/// The calibration of a family of software, of CONFIGS/calibration.
config::Calibration read_calibration(const std::string& family, const std::string& configs);
/// Sets the bytes that eager element-wise operations move, for each byte that they must.
void set_eager_bytes(config::Calibration& calibration, double bytes);

struct Point {
  Row row;
  double published_s = 0;
  std::vector<double> predicted_s;  // by calibration
  double largest_message_bytes = 0;
  std::string gpu;  // the hardware file of the GPU, without the machine around it

  bool is_fitted() const { return row.at("use") == "fit"; }
  double error(std::size_t calibration = 0) const { return predicted_s[calibration] / published_s - 1; }
};
/// Predicts a step with each of these calibrations.
Point predict(const Row& row, const std::string& configs, std::span<const config::Calibration> calibrations);

/// Two points that differ in one setting.
struct Pair {
  const Point* from;
  const Point* to;
  std::string setting;
  /// Of the predicted change: of the ratio of both steps.
  double error(std::size_t calibration = 0) const {
    return (to->predicted_s[calibration] / from->predicted_s[calibration]) / (to->published_s / from->published_s) - 1;
  }
};
/// Of one source; the axes of a layout are one setting, as in a sweep.
std::vector<Pair> pairs_of(std::span<const Point> points);

}  // namespace harness::accuracy
