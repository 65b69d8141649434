#include "report/money.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/units.h"

namespace harness::report {

std::string show_money(double amount, const std::string& currency) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(amount), std::abs(amount) < 100 ? 2 : 0);
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return fmt::format("{}{} {}", amount < 0 ? "-" : "", grouped, currency);
}

std::string show_tokens(double tokens) {
  constexpr std::pair<double, const char*> scales[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}};
  for (const auto& [scale, name] : scales) {
    if (tokens >= scale) return fmt::format("{:.4g}{} tokens", tokens / scale, name);
  }
  return fmt::format("{:.0f} tokens", tokens);
}

std::string show_duration(double seconds) {
  constexpr double day = 86400;
  return seconds >= 2 * day ? fmt::format("{:.1f} days", seconds / day) : show_seconds(seconds);
}

}  // namespace harness::report
