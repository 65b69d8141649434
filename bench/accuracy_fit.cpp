#include "accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace harness::accuracy {
namespace {

constexpr double larger = 1.03;
constexpr double square_ends = 0.05;    // the quadratic part of the Huber loss, log of a ratio
constexpr double published_within = 1;  // width of a scalar's prior, log of a ratio

using Vector = std::array<double, scalar_count>;

// The logarithm of the error, and its derivative by the logarithm of each scalar.
double log_error(const Point& point) {
  return std::log(point.predicted_s[0] / point.published_s);
}
Vector slope_of(const Point& point) {
  Vector slope{};
  for (std::size_t k = 0; k < scalar_count; ++k)
    slope[k] = std::log(point.predicted_s[k + 1] / point.predicted_s[0]) / std::log(larger);
  return slope;
}

// Gaussian elimination without pivoting: the matrix is positive definite.
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

const std::array<Scalar, scalar_count>& scalars(const std::string& family) {
  using C = config::Calibration;
  using Scalars = std::array<Scalar, scalar_count>;
  static constexpr Scalar product_share{"products.share", [](const C& c) { return c.product_share; },
                                        [](C& c, double v) { c.product_share = v; }, 0.87};
  static constexpr Scalar of_sustained{"products.share", product_share.value, product_share.set, 1};
  static constexpr Scalar host{"software.host", [](const C& c) { return c.software.host_s; },
                               [](C& c, double v) { c.software.host_s = v; }, 8e-6};
  static constexpr Scalars of_2022{{product_share,
                                    host,
                                    {"network.share", [](const C& c) { return c.network_share; },
                                     [](C& c, double v) { c.network_share = v; }, 0.92}}};
  static constexpr Scalars of_2025{{of_sustained,
                                    {"overlap.tensor_hidden", [](const C& c) { return c.tensor_hidden; },
                                     [](C& c, double v) { c.tensor_hidden = std::min(v, 1.0); }, 0.7},
                                    {"products.on", [](const C& c) { return c.share_on.at("gb200"); },
                                     [](C& c, double v) { c.share_on["gb200"] = c.share_on["gb300"] = v; }, 1}}};
  static constexpr Scalars of_torch{{of_sustained,
                                     {host.key, host.value, host.set, 31e-6},  // in no table: the prior is its value
                                     {"bytes of eager operations",
                                      [](const C& c) {
                                        return c.software.kinds.at({"swiglu", false}).bytes;
                                      },
                                      [](C& c, double v) { set_eager_bytes(c, v); }, 1}}};
  if (family == "megatron-2022") return of_2022;
  return family == "torch-fsdp" ? of_torch : of_2025;
}

std::vector<config::Calibration> around(const config::Calibration& calibration) {
  std::vector<config::Calibration> all{calibration};
  for (const Scalar& scalar : scalars(calibration.file)) {
    scalar.set(all.emplace_back(calibration), larger * scalar.value(calibration));
  }
  return all;
}

Vector fitted(std::span<const Point* const> points, const config::Calibration& calibration) {
  const auto& all = scalars(calibration.file);
  std::map<std::string, int> of_group;
  for (const Point* point : points) ++of_group[point->row.at("group")];
  Vector moved{};
  constexpr int repetitions = 50;
  for (int i = 0; i < repetitions; ++i) {
    std::array<Vector, scalar_count> a{};
    Vector b{};
    for (std::size_t k = 0; k < scalar_count; ++k) {
      const double towards = std::log(all[k].published / all[k].value(calibration));
      const double weight = std::pow(square_ends / published_within, 2);
      a[k][k] += weight;
      b[k] += weight * towards;
    }
    for (const Point* point : points) {
      const double error = log_error_at(*point, moved);
      const double weight = std::min(1.0, square_ends / std::max(std::abs(error), 1e-12)) /
                            std::sqrt(of_group.at(point->row.at("group")));
      const Vector s = slope_of(*point);
      for (std::size_t k = 0; k < scalar_count; ++k) {
        b[k] -= weight * s[k] * log_error(*point);
        for (std::size_t c = 0; c < scalar_count; ++c) a[k][c] += weight * s[k] * s[c];
      }
    }
    moved = solve(a, b);
  }
  Vector values{};
  for (std::size_t k = 0; k < scalar_count; ++k) values[k] = all[k].value(calibration) * std::exp(moved[k]);
  return values;
}

double error_with(const Point& point, const config::Calibration& calibration, const Vector& values) {
  Vector moved{};
  for (std::size_t k = 0; k < scalar_count; ++k)
    moved[k] = std::log(values[k] / scalars(calibration.file)[k].value(calibration));
  return std::exp(log_error_at(point, moved)) - 1;
}

}  // namespace harness::accuracy
