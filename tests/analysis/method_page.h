#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "analysis/verdict.h"
#include "store/result.h"

// What docs/method.md says, computed by its formulas alone: nothing here or in method_*.cpp calls src/analysis, except
// to compare. A test that fails means that the page and the program say different things; one of them is wrong.
namespace harness::method {

/// results/example.h5 with all that it holds.
const store::Result& example();

double median(std::vector<double> values);

/// "Block, round, session": the median of a block's timed steps; of finished blocks by their place in the file.
std::map<std::size_t, double> block_medians(const store::Result& result);
/// The step time of a case: the median over its blocks.
double step_time(const store::Result& result, std::int32_t case_index);

/// Of a log ratio.
struct PageInterval {
  double center = 0, low = 0, high = 0;
  double error = 0, degrees = 0;  // the standard error, and its degrees of freedom
};
/// center ± t(1 - alpha / 2; degrees) · error
PageInterval t_interval(double center, double error, double degrees, double alpha);
/// "Verdict": of an interval, e being the smallest effect that matters.
analysis::Verdict verdict(const PageInterval& interval, double e);

/// "Pairs within rounds": what trimming leaves of n values. Fewer than 5 are not trimmed.
struct Trimmed {
  int n = 0, h = 0;
  double mean = 0;  // of the h middle values
  double d = 0;     // its squared error: the winsorised sum of squares / (h (h - 1))
};
Trimmed trimmed(std::vector<double> values);

/// Of Student's t: t with P(T <= t) = probability > 1/2.
double student_t(double probability, double degrees);
/// P(|T| > t).
double t_tails(double t, double degrees);
/// P(F > f) of Fisher's distribution.
double f_tail(double f, double numerator, double denominator);
/// P(X >= k) for X ~ Binomial(n, q).
double binomial_tail(int n, int k, double q);

}  // namespace harness::method
