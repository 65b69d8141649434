#include "analysis/verdict.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace harness::analysis {
namespace {

// The share that a trimmed mean discards at either end.
constexpr double trim_share = 0.2;

struct TrimmedMean {
  int n = 0, kept = 0;
  double mean = store::not_known;      // of the values that trimming keeps
  double variance = store::not_known;  // of that mean: the winsorised sum of squares / (h (h - 1)), h values kept
};

TrimmedMean trimmed_mean(std::span<const double> values, double share) {
  const std::size_t n = values.size(),
                    cut = static_cast<std::size_t>(std::floor(share * static_cast<double>(n) + 1e-9));
  TrimmedMean out;
  out.n = static_cast<int>(n);
  out.kept = static_cast<int>(n - 2 * cut);
  if (out.kept < 1) return out;
  std::vector<double> in_order(values.begin(), values.end());
  std::ranges::sort(in_order);
  const auto winsorised = [&](std::size_t i) { return in_order[std::clamp(i, cut, n - 1 - cut)]; };
  double sum = 0, winsorised_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    winsorised_sum += winsorised(i);
    if (i >= cut && i < n - cut) sum += in_order[i];
  }
  out.mean = sum / out.kept;
  if (out.kept < 2) return out;
  const double winsorised_mean = winsorised_sum / static_cast<double>(n);
  double squares = 0;  // (n - 1) × the winsorised variance
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(winsorised(i) - winsorised_mean, 2);
  out.variance = squares / (static_cast<double>(out.kept) * (out.kept - 1));
  return out;
}

// Student's t interval.
ConfidenceInterval around(double center, double standard_error, double degrees, double alpha, int n) {
  const double half_width = student_t_quantile(1 - alpha / 2, degrees) * standard_error;
  return {center, center - half_width, center + half_width, n, standard_error};
}

// Doubles suffice: promotion to long double costs time and gains nothing here.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

Reason reason_for(Verdict verdict, bool is_small, const Evidence& evidence) {
  if (!evidence.within_limit) return Reason::beyond_limit;
  if (evidence.role == store::CaseRole::change && !evidence.trains_alike) return Reason::trains_differently;
  if (evidence.status == store::CaseStatus::failed) return Reason::failed;
  if (evidence.status == store::CaseStatus::impossible) return Reason::impossible;
  if (!evidence.measured) return Reason::not_measured;
  if (store::is_reference(evidence.role)) return Reason::baseline;
  if (evidence.predicted) return is_small ? Reason::too_close_to_call : Reason::predicted;
  if (verdict == Verdict::not_honoured) return Reason::not_honoured;
  return verdict == Verdict::none ? Reason::too_few_rounds : Reason::interval;
}

}  // namespace

double family_alpha(int comparisons, double confidence) {
  return (1 - confidence) / std::max(comparisons, 1);
}

double average(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return store::not_known;
  const double mean = average(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

ConfidenceInterval mean_interval(std::span<const double> values, double alpha) {
  const TrimmedMean of = trimmed_mean(values, 0);
  if (of.kept < 2) return {.center = of.mean, .n = of.n};
  return around(of.mean, std::sqrt(of.variance), of.kept - 1, alpha, of.n);
}

ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha) {
  const TrimmedMean a = trimmed_mean(first, trim_share), b = trimmed_mean(second, trim_share);
  const double center = b.mean - a.mean, variance = a.variance + b.variance;
  const int n = a.n + b.n;
  if (!std::isfinite(variance)) return {.center = center, .n = n};
  // Samples without scatter, such as a file compared with itself at one round, have zero width.
  if (!(variance > 0)) return {center, center, center, n, 0};
  const double degrees =
      variance * variance / (a.variance * a.variance / (a.kept - 1) + b.variance * b.variance / (b.kept - 1));
  return around(center, std::sqrt(variance), degrees, alpha, n);
}

double student_t_quantile(double probability, double degrees) {
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

const char* name_of(Verdict verdict) {
  static constexpr std::array names{"faster", "slower", "same", "unresolved", "not honoured", "none"};
  return names[static_cast<std::size_t>(verdict)];
}

Verdict verdict_of(const ConfidenceInterval& log_ratio, double smallest_effect) {
  if (std::isnan(log_ratio.low) || std::isnan(log_ratio.high)) return Verdict::none;
  const double threshold = std::log1p(smallest_effect);
  if (log_ratio.low > threshold) return Verdict::slower;
  if (log_ratio.high < -threshold) return Verdict::faster;
  const bool inside = log_ratio.low > -threshold && log_ratio.high < threshold;
  return inside ? Verdict::same : Verdict::unresolved;
}

Judgement decide(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence) {
  Verdict verdict = Verdict::none;
  if (!store::is_reference(evidence.role)) verdict = verdict_of(log_ratio, smallest_effect);
  if (evidence.role == store::CaseRole::change && !evidence.honoured) verdict = Verdict::not_honoured;
  if (evidence.role == store::CaseRole::change && !(evidence.within_limit && evidence.trains_alike))
    verdict = Verdict::none;
  const bool is_small = std::abs(log_ratio.center) < std::log1p(smallest_effect);
  return {verdict, reason_for(verdict, is_small, evidence)};
}

std::string threshold_words(double smallest_effect) {
  return fmt::format("{:+.3g} % or {:+.3g} %", 100 * smallest_effect, 100 * (1 / (1 + smallest_effect) - 1));
}

std::string within_threshold_words(double smallest_effect) {
  return fmt::format("between {:+.3g} % and {:+.3g} %", 100 * (1 / (1 + smallest_effect) - 1), 100 * smallest_effect);
}

const char* name_of(const Judgement& judgement) {
  // In the order of Reason. "": the verdict's name is used.
  static constexpr std::array names{
      "", "(baseline)",     "beyond the limit", "trains differently", "failed", "impossible", "not measured",
      "", "too few rounds", "predicted",        "too close to call"};
  static_assert(names.size() == static_cast<std::size_t>(Reason::too_close_to_call) + 1);
  const char* name = names[static_cast<std::size_t>(judgement.reason)];
  return *name == '\0' ? name_of(judgement.verdict) : name;
}

}  // namespace harness::analysis
