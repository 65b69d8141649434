#include "sweep/first_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/looks.h"
#include "analysis/sizes.h"

namespace harness::sweep {
namespace {

constexpr std::size_t max_shown = 8;

std::string change_text(double ratio) {
  const double change = 100 * (ratio - 1);
  return std::abs(change) < 1000 ? fmt::format("{:+.1f} %", change) : fmt::format("x{:.3g}", ratio);
}

std::string range_text(double low, double high) {
  const bool known = std::isfinite(low) && std::isfinite(high);
  return known ? fmt::format("[{}, {}]", change_text(low), change_text(high)) : "[not known yet]";
}

std::string line_of(double ratio, double low, double high, const std::string& what) {
  return fmt::format("\n  {:>9}  {:<22}  {}", change_text(ratio), range_text(low, high), what);
}

// Cases are compared by the time for the same work.
std::string what_is_compared(const store::Result& result) {
  const auto other_batch = [&](const store::ResultCase& other) {
    return other.tokens_per_step > 0 && other.tokens_per_step != result.cases.front().tokens_per_step;
  };
  return std::ranges::any_of(result.cases, other_batch) ? "time per token" : "step time";
}

}  // namespace

std::string first_answer(const store::Result& result, const analysis::Summary& summary, int rounds) {
  if (analysis::sweeps_sizes_alone(result)) return "";
  const auto settled = [&](std::int32_t case_index) { return summary.case_at(case_index).settled_after > 0; };
  std::string of_settled, of_open;
  std::size_t shown = 0, more = 0;
  for (const analysis::Standing& standing : analysis::standings_of(result)) {
    const analysis::CaseSummary& row = summary.at(standing);
    if (settled(standing.case_index)) {
      of_settled += line_of(
          row.effect->ratio, row.effect->low, row.effect->high,
          fmt::format("{}: {} by the look after round {}", row.name, name_of(row.effect->verdict), row.settled_after));
    } else if (shown < max_shown) {
      of_open += line_of(standing.ratio, standing.low, standing.high, row.name);
      ++shown;
    } else {
      ++more;
    }
  }
  if (of_settled.empty() && of_open.empty()) return "";
  if (more > 0) of_open += fmt::format("\n  … and {} slower ones", more);
  std::string text = fmt::format("after round {} of {}, ", rounds, result.rounds);
  const std::string time = what_is_compared(result);
  if (!of_settled.empty()) text += fmt::format("settled (change of the {}, and measured no more):", time) + of_settled;
  if (!of_settled.empty() && !of_open.empty()) text += "\nand ";
  if (!of_open.empty()) {
    text += fmt::format("no verdict yet: {} against the baseline, and what it could still be", time) + of_open;
  }
  return text;
}

}  // namespace harness::sweep
