#include "report/effect_words.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/statistics.h"
#include "report/scale.h"

namespace harness::report {
namespace {

constexpr double max_share = 10, min_share = -0.9;

// An end of an interval. Where both are beyond the same limit, they say something.
std::string bound(double ratio, double other) {
  const double share = ratio - 1, other_share = other - 1;
  if (share > max_share && !(other_share > max_share)) return "over " + signed_percent(max_share, 0);
  if (share < min_share && !(other_share < min_share)) return "under " + signed_percent(min_share, 0);
  return signed_percent(share);
}

}  // namespace

std::string change_words(double ratio) {
  return std::isfinite(ratio) ? signed_percent(ratio - 1) : "";
}

std::string interval_words(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return "";
  return fmt::format("[{}, {}]", bound(low, high), bound(high, low));
}

std::string change_of(const analysis::CaseSummary& row) {
  return row.effect ? change_words(row.effect->ratio) : "";
}

std::string interval_of(const analysis::CaseSummary& row) {
  return row.effect ? interval_words(row.effect->low, row.effect->high) : "";
}

Cell change_cell(double ratio) {
  Cell cell = change_words(ratio);
  if (std::isfinite(ratio)) cell.key = std::round(1000 * (ratio - 1));
  return cell;
}

Tone tone_of(analysis::Verdict verdict) {
  if (analysis::moved(verdict)) return verdict == analysis::Verdict::faster ? Tone::good : Tone::bad;
  return verdict == analysis::Verdict::unresolved ? Tone::open : Tone::plain;
}

Tone tone_of(const analysis::Judgement& judgement) {
  switch (judgement.reason) {
    case analysis::Reason::failed:
    case analysis::Reason::beyond_limit:
      return Tone::bad;
    case analysis::Reason::interval:
      return tone_of(judgement.verdict);
    default:
      return Tone::plain;
  }
}

std::string interval_heading(double confidence) {
  return fmt::format("{:.3g} % interval", 100 * confidence);
}

}  // namespace harness::report
