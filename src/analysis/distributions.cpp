#include "analysis/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"

namespace harness::analysis {
namespace {

// Student's t through the regularised incomplete beta function (Abramowitz & Stegun 26.5.8, 26.7.1):
//   P(|T| > t) = I_x(degrees / 2, 1 / 2) with x = degrees / (degrees + t²).

// The continued fraction of I_x(a, b), DLMF 8.17.22, by Lentz's method. Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto nonzero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1;
  double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return fraction;
}

// I_x(a, b), with y = 1 - x given apart so that neither end loses digits.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

// P(T > t) for t >= 0.
double student_t_upper_tail(double t, double degrees) {
  const double whole = degrees + t * t;
  return incomplete_beta(degrees / 2, 0.5, degrees / whole, t * t / whole) / 2;
}

double student_t_density(double t, double degrees) {
  return std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) -
                  (degrees + 1) / 2 * std::log1p(t * t / degrees)) /
         std::sqrt(degrees * std::numbers::pi);
}

}  // namespace

double student_t_quantile(double probability, double degrees) {
  if (!(probability > 0 && probability < 1) || !(degrees > 0)) {
    fail("student_t_quantile: needs 0 < probability < 1 and degrees > 0, got {} and {}", probability, degrees);
  }
  if (probability == 0.5) return 0;
  const double tail = std::min(probability, 1 - probability);
  // Newton from the left of the root: the tail is convex for t > 0, so every step stays left of it and lands nearer.
  double t = 0;
  for (double probe = 1; student_t_upper_tail(probe, degrees) > tail && probe < 1e300; probe *= 2) t = probe;
  for (int i = 0; i < 200; ++i) {
    const double step = (student_t_upper_tail(t, degrees) - tail) / student_t_density(t, degrees);
    t += step;
    if (!(step > 4 * std::numeric_limits<double>::epsilon() * t)) break;
  }
  return probability < 0.5 ? -t : t;
}

// Abramowitz & Stegun 26.6.2.
double f_upper_tail(double f, double numerator_degrees, double denominator_degrees) {
  if (!(f > 0)) return 1;
  const double numerator = numerator_degrees * f, whole = numerator + denominator_degrees;
  return incomplete_beta(denominator_degrees / 2, numerator_degrees / 2, denominator_degrees / whole,
                         numerator / whole);
}

double normal_density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

double normal_upper_quantile(double tail) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > tail ? low : high) = middle;
  }
  return low;
}

double binomial_upper_tail(int n, int k, double p) {
  double sum = 0;
  for (int i = k; i <= n; ++i) {
    const double ways = std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0);
    sum += std::exp(ways + i * std::log(p) + (n - i) * std::log1p(-p));
  }
  return sum;
}

int fair_coin_lower_rank(int n, double tail) {
  double mass = std::exp2(-n);  // P(X = k)
  double below = 0;             // P(X < k)
  int k = 0;
  while (k < n / 2 && below + mass <= tail) {
    below += mass;
    mass *= static_cast<double>(n - k) / (k + 1);
    ++k;
  }
  return k;
}

}  // namespace harness::analysis
