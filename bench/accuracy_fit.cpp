#include "accuracy_fit.h"

#include <algorithm>
#include <cmath>

namespace harness::accuracy {
namespace {

constexpr double larger = 1.03;
constexpr double square_ends = 0.05;    // of a logarithm of a ratio
constexpr double published_within = 1;  // the same of a scalar, as far as the points do not say

using Vector = std::array<double, scalar_count>;

// Logarithm of the error, and how it grows with the logarithm of each scalar.
double log_error(const Point& point) {
  return std::log(point.predicted_s[0] / point.published_s);
}
Vector slope_of(const Point& point) {
  Vector slope{};
  for (std::size_t k = 0; k < scalar_count; ++k)
    slope[k] = std::log(point.predicted_s[k + 1] / point.predicted_s[0]) / std::log(larger);
  return slope;
}

// Gauss's elimination; the matrix is positive definite.
Vector solve(std::array<Vector, scalar_count> a, Vector b) {
  for (std::size_t i = 0; i < scalar_count; ++i) {
    for (std::size_t r = i + 1; r < scalar_count; ++r) {
      const double f = a[r][i] / a[i][i];
      for (std::size_t c = i; c < scalar_count; ++c) a[r][c] -= f * a[i][c];
      b[r] -= f * b[i];
    }
  }
  Vector x{};
  for (std::size_t i = scalar_count; i-- > 0;) {
    double rest = b[i];
    for (std::size_t c = i + 1; c < scalar_count; ++c) rest -= a[i][c] * x[c];
    x[i] = rest / a[i][i];
  }
  return x;
}

double log_error_at(const Point& point, const Vector& moved) {
  double error = log_error(point);
  const Vector s = slope_of(point);
  for (std::size_t k = 0; k < scalar_count; ++k) error += s[k] * moved[k];
  return error;
}

}  // namespace

const std::array<Scalar, scalar_count>& scalars() {
  using C = config::Calibration;
  static constexpr std::array<Scalar, scalar_count> all{
      {{"share of the peak", "products.share", [](const C& c) { return c.product_share; },
        [](C& c, double v) { c.product_share = v; }, 0.87},
       {"host time", "software.host", [](const C& c) { return c.software.host_s; },
        [](C& c, double v) { c.software.host_s = v; }, 8e-6},
       {"share of the network", "network.share", [](const C& c) { return c.network_share; },
        [](C& c, double v) { c.network_share = v; }, 0.92}}};
  return all;
}

std::vector<config::Calibration> around(const config::Calibration& calibration) {
  std::vector<config::Calibration> all{calibration};
  for (const Scalar& scalar : scalars()) {
    scalar.set(all.emplace_back(calibration), larger * scalar.value(calibration));
  }
  return all;
}

Vector fitted(std::span<const Point* const> points, const config::Calibration& calibration) {
  Vector moved{};
  constexpr int repetitions = 50;
  for (int i = 0; i < repetitions; ++i) {
    std::array<Vector, scalar_count> a{};
    Vector b{};
    for (std::size_t k = 0; k < scalar_count; ++k) {
      const double towards = std::log(scalars()[k].published / scalars()[k].value(calibration));
      const double weight = std::pow(square_ends / published_within, 2);
      a[k][k] += weight;
      b[k] += weight * towards;
    }
    for (const Point* point : points) {
      const double error = log_error_at(*point, moved);
      const double weight = std::min(1.0, square_ends / std::max(std::abs(error), 1e-12));
      const Vector s = slope_of(*point);
      for (std::size_t k = 0; k < scalar_count; ++k) {
        b[k] -= weight * s[k] * log_error(*point);
        for (std::size_t c = 0; c < scalar_count; ++c) a[k][c] += weight * s[k] * s[c];
      }
    }
    moved = solve(a, b);
  }
  Vector values{};
  for (std::size_t k = 0; k < scalar_count; ++k) values[k] = scalars()[k].value(calibration) * std::exp(moved[k]);
  return values;
}

double error_with(const Point& point, const config::Calibration& calibration, const Vector& values) {
  Vector moved{};
  for (std::size_t k = 0; k < scalar_count; ++k) moved[k] = std::log(values[k] / scalars()[k].value(calibration));
  return std::exp(log_error_at(point, moved)) - 1;
}

}  // namespace harness::accuracy
