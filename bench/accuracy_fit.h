#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "accuracy_points.h"

namespace harness::accuracy {

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
