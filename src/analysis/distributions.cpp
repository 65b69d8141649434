#include "analysis/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "base/error.h"

namespace harness::analysis {
namespace {

// Doubles suffice: promotion to long double costs time and gains nothing here.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

}  // namespace

double student_t_quantile(double probability, double degrees) {
  if (!(probability > 0 && probability < 1) || !(degrees > 0)) {
    fail("student_t_quantile: needs 0 < probability < 1 and degrees > 0, got {} and {}", probability, degrees);
  }
  return boost::math::quantile(boost::math::students_t_distribution<double, Policy>(degrees), probability);
}

double f_upper_tail(double f, double numerator_degrees, double denominator_degrees) {
  if (!(f > 0)) return 1;
  const boost::math::fisher_f_distribution<double, Policy> fisher(numerator_degrees, denominator_degrees);
  return boost::math::cdf(boost::math::complement(fisher, f));
}

double noncentral_t_upper_tail(double t, double degrees, double shift) {
  const boost::math::non_central_t_distribution<double, Policy> shifted(degrees, shift);
  return boost::math::cdf(boost::math::complement(shifted, t));
}

double binomial_upper_tail(int n, int k, double p) {
  if (k <= 0) return 1;
  if (k > n) return 0;
  const boost::math::binomial_distribution<double, Policy> trials(n, p);
  return boost::math::cdf(boost::math::complement(trials, k - 1));
}

}  // namespace harness::analysis
