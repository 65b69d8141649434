#include "report/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/context.h"
#include "report/scale.h"

namespace harness::report {
namespace {

// "12.3 % faster [10.1 %, 14.4 %]"
std::string with_interval(const store::Result& result, const analysis::Effect& effect) {
  const bool faster = effect.ratio < 1;
  const double low = faster ? 1 - effect.high : effect.low - 1;
  const double high = faster ? 1 - effect.low : effect.high - 1;
  return fmt::format("{} {}{} [{}, {}]", percent(std::abs(effect.ratio - 1)), faster ? "faster" : "slower",
                     per_what(result), percent(low), percent(high));
}

struct Outcome {
  std::vector<const analysis::CaseSummary*> faster, slower, same, unresolved;
  int changes = 0, measured = 0;
};

Outcome sort_out(const analysis::Summary& summary) {
  Outcome outcome;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change) continue;
    ++outcome.changes;
    if (row.blocks > 0) ++outcome.measured;
    if (!row.effect) continue;
    switch (row.effect->verdict) {
      case analysis::Verdict::faster:
        outcome.faster.push_back(&row);
        break;
      case analysis::Verdict::slower:
        outcome.slower.push_back(&row);
        break;
      case analysis::Verdict::same:
        outcome.same.push_back(&row);
        break;
      case analysis::Verdict::unresolved:
        outcome.unresolved.push_back(&row);
        break;
      case analysis::Verdict::not_honoured:
      case analysis::Verdict::none:
        break;
    }
  }
  const auto by_ratio = [](const analysis::CaseSummary* a, const analysis::CaseSummary* b) {
    return a->effect->ratio < b->effect->ratio;
  };
  std::stable_sort(outcome.faster.begin(), outcome.faster.end(), by_ratio);
  std::stable_sort(outcome.slower.begin(), outcome.slower.end(), by_ratio);
  return outcome;
}

// "2 others are faster, 1 is slower, …"
std::string the_rest(std::size_t faster, std::size_t slower, std::size_t same, std::size_t unresolved) {
  std::vector<std::string> parts;
  const auto add = [&](std::size_t n, const char* what) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, what));
  };
  add(faster, faster == 1 ? "other faster" : "others faster");
  add(slower, "slower");
  add(same, "the same");
  add(unresolved, "unresolved");
  return parts.empty() ? "" : "; " + join(parts, ", ");
}

// The first failure, which the others usually share.
std::string nothing_measured(const analysis::Summary& summary) {
  const auto failed = [](const analysis::CaseSummary& row) {
    return row.status == store::CaseStatus::failed && !row.reason.empty();
  };
  const bool anything =
      std::ranges::any_of(summary.cases, [](const analysis::CaseSummary& row) { return row.blocks > 0; });
  const auto first = std::ranges::find_if(summary.cases, failed);
  if (first == summary.cases.end()) return "No change has been measured.";
  return fmt::format("{}: {} failed: {}", anything ? "No change could be measured" : "Nothing ran", first->name,
                     first->reason);
}

std::string what_moved(const store::Result& result, const analysis::Summary& summary) {
  const Outcome found = sort_out(summary);
  const std::string threshold = fmt::format("{:.3g} %", 100 * result.smallest_effect);
  const std::size_t same = found.same.size(), unresolved = found.unresolved.size(), slower = found.slower.size();
  if (!found.faster.empty()) {
    return fmt::format("Fastest proven change: {}, {}{}.", found.faster[0]->name,
                       with_interval(result, *found.faster[0]->effect),
                       the_rest(found.faster.size() - 1, slower, same, unresolved));
  }
  if (slower > 0) {
    return fmt::format("No change is proven faster than the baseline; the slowest: {}, {}{}.",
                       found.slower.back()->name, with_interval(result, *found.slower.back()->effect),
                       the_rest(0, slower - 1, same, unresolved));
  }
  if (same > 0 && unresolved == 0) {
    return fmt::format("Nothing moved beyond {}: {} came out the same as the baseline.", threshold,
                       same == 1 ? found.same[0]->name : fmt::format("all {} changes", same));
  }
  if (unresolved > 0) {
    return fmt::format("Nothing is proven to move beyond {}: of {} changes {} unresolved{}.", threshold, found.changes,
                       unresolved == 1 ? "1 is" : fmt::format("{} are", unresolved),
                       same > 0 ? fmt::format(", {} the same", same) : "");
  }
  if (found.changes == 0) return "Only the baseline was asked for: nothing to compare.";
  if (found.measured == 0) return nothing_measured(summary);
  return "Too few rounds for any verdict.";
}

}  // namespace

std::string headline(const store::Result& result, const analysis::Summary& summary) {
  std::string text;
  if (summary.partial) {
    const auto done = std::count_if(result.blocks.begin(), result.blocks.end(), [](const store::ResultBlock& block) {
      return block.status != store::BlockStatus::pending;
    });
    text = fmt::format("Partial ({} of {} blocks{}). ", done, result.blocks.size(),
                       result.state == store::RunState::running ? ", still running or killed" : "");
  }
  if (!summary.unreliable) return text + what_moved(result, summary);
  return text + fmt::format(
                    "Unreliable: the control baseline_again came out {} than the baseline, which it repeats; no "
                    "verdict below counts.",
                    with_interval(result, *summary.control));
}

}  // namespace harness::report
