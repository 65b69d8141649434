#pragma once

#include <optional>
#include <span>

namespace harness::analysis {

// Do estimates of one thing differ by more than their own errors explain? Cochran's Q (Supplement to the Journal of the
// Royal Statistical Society 4, 1937; Biometrics 10, 1954) is the weighted sum of squares of k estimates y_i with
// standard errors s_i about their mean,
//
//   Q = sum w_i (y_i - m)²,   w_i = 1 / s_i²,   m = sum w_i y_i / W,   W = sum w_i
//
// and chi-squared with k - 1 degrees of freedom only if the s_i are exact. These come from few rounds, with f_i degrees
// of freedom each, and Q would find differences too often. Welch's test (Biometrika 38, 1951) allows for that:
//
//   F = Q / (k - 1) / (1 + 2 (k - 2) / (k² - 1) · L),   L = sum (1 - w_i / W)² / f_i
//
// has Fisher's F distribution with k - 1 and (k² - 1) / (3 L) degrees of freedom, nearly. For k = 2 it is Welch's t.

struct OwnEstimate {
  double value = 0;
  double standard_error = 0, degrees = 0;  // of the standard error: its degrees of freedom
};

/// The probability of an F at least as large where nothing differs. Estimates without a standard error above 0 or
/// without degrees of freedom do not count; nothing with fewer than two that do.
std::optional<double> heterogeneity_p(std::span<const OwnEstimate> estimates);

}  // namespace harness::analysis
