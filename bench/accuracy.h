#pragma once

#include <array>
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

// ---- the fit

/// The numbers of a calibration that are fitted to steps; all others are counted or stand in published tables.
struct Scalar {
  const char* key;
  double (*value)(const config::Calibration& c);
  void (*set)(config::Calibration& c, double value);
  double published;  // what tables say that have nothing to do with these steps
};
inline constexpr std::size_t scalar_count = 3;
/// Of a calibration's file.
const std::array<Scalar, scalar_count>& scalars(const std::string& family);

/// The calibration, and with each scalar a little larger: what predict() needs for a fit.
std::vector<config::Calibration> around(const config::Calibration& calibration);

/// The scalars that fit these points best. The loss is Huber's of the errors' logarithms, whose square ends at 5 %, so
/// that a few points that nothing explains do not decide. A point weighs 1 / sqrt(points of its group). A scalar on
/// which the points hardly depend stays near what is published of it. Linear in the logarithms around the calibration
/// that the points were predicted with: repeat until it stays.
std::array<double, scalar_count> fitted(std::span<const Point* const> points, const config::Calibration& calibration);

/// What the points' errors would be with other scalars, by the same linear law.
double error_with(const Point& point, const config::Calibration& calibration,
                  const std::array<double, scalar_count>& values);

}  // namespace harness::accuracy
