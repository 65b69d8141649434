#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "config/calibration.h"
#include "config/files.h"

namespace harness::accuracy {

/// A published step of configs/published/steps.csv. `use` is "fit", or "judge": a step excluded from every fit.
using Row = config::PublishedRow;

/// Reads the calibration of a software family from CONFIGS/calibration.
config::Calibration read_calibration(const std::string& family, const std::string& configs);
/// Sets the bytes that eager element-wise operations move per byte of their minimum traffic.
void set_eager_bytes(config::Calibration& calibration, double bytes);

struct Point {
  Row row;
  double published_s = 0;
  std::vector<double> predicted_s;  // one per calibration
  double largest_message_bytes = 0;
  std::string gpu;  // hardware file of the GPU alone, without its machine

  bool is_fitted() const { return row.at("use") == "fit"; }
  double error(std::size_t calibration = 0) const { return predicted_s[calibration] / published_s - 1; }
};
/// Predicts a step with each calibration.
Point predict(const Row& row, const std::string& configs, std::span<const config::Calibration> calibrations);

/// Two points that differ in one setting.
struct Pair {
  const Point* from;
  const Point* to;
  std::string setting;
  /// Returns the relative error of the predicted ratio of both step times.
  double error(std::size_t calibration = 0) const {
    return (to->predicted_s[calibration] / from->predicted_s[calibration]) / (to->published_s / from->published_s) - 1;
  }
};
/// Pairs points of one source. The axes of a layout count as one setting, as in a sweep.
std::vector<Pair> pairs_of(std::span<const Point> points);

// ---- the fit

/// A calibration value that is fitted to steps. All other values are counted or come from published tables.
struct Scalar {
  const char* key;
  double (*value)(const config::Calibration& c);
  void (*set)(config::Calibration& c, double value);
  double published;  // prior from tables that are independent of these steps
};
inline constexpr std::size_t scalar_count = 3;
/// Returns the scalars of a calibration file.
const std::array<Scalar, scalar_count>& scalars(const std::string& family);

/// Returns the calibration, then one copy per scalar with that scalar a little larger, for predict() and a fit.
std::vector<config::Calibration> around(const config::Calibration& calibration);

/// Returns the scalars that fit these points best. The loss is Huber's on the logarithms of the errors, quadratic up to
/// 5 %, so that a few unexplained points do not dominate. A point weighs 1 / sqrt(points of its group). A scalar that
/// the points hardly depend on stays near its published value. The model is linear in the logarithms around the
/// calibration that predicted the points: repeat until the scalars converge.
std::array<double, scalar_count> fitted(std::span<const Point* const> points, const config::Calibration& calibration);

/// Returns the error of a point with other scalars, by the same linear model.
double error_with(const Point& point, const config::Calibration& calibration,
                  const std::array<double, scalar_count>& values);

}  // namespace harness::accuracy
