#include "sweep/first_answer.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/looks.h"

namespace harness::sweep {
namespace {

constexpr std::size_t max_shown = 8;

std::string change_text(double ratio) {
  const double change = 100 * (ratio - 1);
  return std::abs(change) < 1000 ? fmt::format("{:+.1f} %", change) : fmt::format("x{:.3g}", ratio);
}

}  // namespace

std::string first_answer(const store::Result& result, int rounds) {
  const std::vector<analysis::Standing> standings = analysis::standings_of(result);
  if (standings.empty()) return "";
  std::string text =
      fmt::format("after round {} of {}, no verdict yet: step time against the baseline, and what it could still be",
                  rounds, result.rounds);
  for (std::size_t i = 0; i < std::min(standings.size(), max_shown); ++i) {
    const analysis::Standing& standing = standings[i];
    const bool known = std::isfinite(standing.low) && std::isfinite(standing.high);
    const std::string range = known ? fmt::format("[{}, {}]", change_text(standing.low), change_text(standing.high))
                                    : std::string("[not known yet]");
    text += fmt::format("\n  {:>9}  {:<22}  {}", change_text(standing.ratio), range, result.at(standing).name);
  }
  if (standings.size() > max_shown) text += fmt::format("\n  … and {} slower ones", standings.size() - max_shown);
  return text;
}

}  // namespace harness::sweep
