#include "analysis/clock_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace harness::analysis {

std::string clock_text(double unix_s, bool seconds) {
  constexpr double year_10000 = 253402300800;
  if (!(unix_s >= 0 && unix_s < year_10000)) return "?";
  const std::int64_t of_day = static_cast<std::int64_t>(unix_s) % 86400;
  const std::string minutes = fmt::format("{:02}:{:02}", of_day / 3600, of_day / 60 % 60);
  return seconds ? fmt::format("{}:{:02}", minutes, of_day % 60) : minutes;
}

}  // namespace harness::analysis
