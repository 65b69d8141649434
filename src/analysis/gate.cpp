#include "analysis/gate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

double parse_percentage(const std::string& option, std::string number) {
  if (!number.empty() && number.back() == '%') number.pop_back();
  double percent = 0;
  try {
    percent = parse_real(trim(number));
  } catch (const Error& error) {
    fail("--fail-on {}: {}; expected a percentage, such as slower:5", quote(option), error.what());
  }
  if (!std::isfinite(percent) || percent < 0 || percent > 10000) {
    fail("--fail-on {}: allowed: 0 to 10000 percent, such as slower:5", quote(option));
  }
  return percent / 100;
}

}  // namespace

Gate parse_gate(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  Gate gate;
  if (word == "not-proven-within") {
    gate.fails_on = Gate::FailsOn::not_proven_within;
    if (colon == std::string::npos) fail("--fail-on {}: within what? Such as not-proven-within:2%", quote(text));
  } else if (word != "slower") {
    fail("--fail-on {}: expected slower, slower:PERCENT or not-proven-within:PERCENT, such as slower:5", quote(text));
  }
  if (colon != std::string::npos) gate.share = parse_percentage(text, text.substr(colon + 1));
  return gate;
}

bool fails(const Gate& gate, const Comparison& comparison, const CaseComparison& row) {
  const double limit = 1 + gate.share.value_or(comparison.smallest_effect);
  // NaN, where a side has not measured it, is no proof.
  return gate.fails_on == Gate::FailsOn::slower ? row.low > limit : !(row.high <= limit);
}

bool any_fails(const Gate& gate, std::span<const Comparison> comparisons) {
  return std::ranges::any_of(comparisons, [&](const Comparison& comparison) {
    return std::ranges::any_of(comparison.cases,
                               [&](const CaseComparison& row) { return fails(gate, comparison, row); });
  });
}

}  // namespace harness::analysis
