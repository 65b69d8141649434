#include "machine/hcas.h"

#include <limits>
#include <optional>

#include "base/text.h"
#include "machine/proc.h"

namespace harness::machine {

std::string state_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  return std::string(trim(colon == std::string_view::npos ? text : text.substr(colon + 1)));
}

double rate_in(std::string_view text) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN(), giga = 1e9;
  const std::optional<double> rate = number(take_word(text));
  return rate && take_word(text) == "Gb/sec" ? *rate * giga : unknown;
}

}  // namespace harness::machine
