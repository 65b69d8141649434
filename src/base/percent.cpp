#include "base/percent.h"

#include <fmt/format.h>

namespace harness {

std::string percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", 100 * share, decimals);
}

std::string signed_percent(double share, int decimals) {
  const std::string text = fmt::format("{:+.{}f} %", 100 * share, decimals);
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

}  // namespace harness
