#include "report/effect_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/statistics.h"
#include "base/text.h"
#include "report/scale.h"

namespace harness::report {
namespace {

constexpr double max_share = 10, min_share = -0.9;

// An end of an interval.
std::string bound(double ratio, double other) {
  const double share = ratio - 1, other_share = other - 1;
  if (share > max_share) return "over " + signed_percent(max_share, 0);
  if (share < min_share && !(other_share < min_share)) return "under " + signed_percent(min_share, 0);
  return signed_percent(share);
}

// Effects with a verdict, the smallest ratio first.
std::vector<KnownChange> those_that_are(const std::vector<KnownChange>& changes, analysis::Verdict verdict) {
  std::vector<KnownChange> found;
  std::ranges::copy_if(changes, std::back_inserter(found),
                       [&](const KnownChange& change) { return change.verdict == verdict; });
  std::ranges::stable_sort(found, {}, &KnownChange::ratio);
  return found;
}

// "; 2 others faster, 1 slower, …"
std::string the_rest(std::size_t faster, std::size_t slower, std::size_t same, std::size_t unresolved) {
  const std::string words = counted({{faster, faster == 1 ? "other faster" : "others faster"},
                                     {slower, "slower"},
                                     {same, "the same"},
                                     {unresolved, "unresolved"}});
  return words.empty() ? "" : "; " + words;
}

}  // namespace

std::string counted(const std::vector<std::pair<std::size_t, const char*>>& counts) {
  std::vector<std::string> parts;
  for (const auto& [n, what] : counts) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, what));
  }
  return join(parts, ", ");
}

std::string change_words(double ratio) {
  return std::isfinite(ratio) ? signed_percent(ratio - 1) : "";
}

std::string interval_words(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return "";
  if (low - 1 > max_share) return fmt::format("[{}]", bound(low, high));
  return fmt::format("[{}, {}]", bound(low, high), bound(high, low));
}

std::string change_of(const std::optional<analysis::Effect>& effect) {
  return effect ? change_words(effect->ratio) : "";
}

std::string interval_of(const std::optional<analysis::Effect>& effect) {
  return effect ? interval_words(effect->low, effect->high) : "";
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
    case analysis::Reason::trains_differently:
      return Tone::bad;
    case analysis::Reason::interval:
      return tone_of(judgement.verdict);
    case analysis::Reason::too_close_to_call:
      return Tone::open;
    default:
      return Tone::plain;
  }
}

std::string interval_heading(double confidence) {
  return fmt::format("{:.3g} % interval", 100 * confidence);
}

std::string how_much(const KnownChange& change, const std::string& per) {
  const bool faster = change.ratio < 1;
  const double low = faster ? 1 - change.high : change.low - 1;
  const double high = faster ? 1 - change.low : change.high - 1;
  return fmt::format("{} {} time{} [{}, {}]", percent(std::abs(change.ratio - 1)), faster ? "less" : "more", per,
                     percent(low), percent(high));
}

std::string throughput_words(double ratio, const std::string& per) {
  return per.empty() ? fmt::format(", {:.3g} x the throughput", 1 / ratio) : "";
}

std::string what_moved(const std::vector<KnownChange>& changes, const Asked& asked) {
  using enum analysis::Verdict;
  const std::vector<KnownChange> all_faster = those_that_are(changes, faster),
                                 all_slower = those_that_are(changes, slower), all_same = those_that_are(changes, same);
  const std::size_t open = those_that_are(changes, unresolved).size(), alike = all_same.size();
  const std::string threshold = analysis::threshold_words(asked.smallest_effect);
  if (!all_faster.empty()) {
    return fmt::format("Fastest proven change: {}, {}{}{}.", all_faster.front().name,
                       how_much(all_faster.front(), asked.per), throughput_words(all_faster.front().ratio, asked.per),
                       the_rest(all_faster.size() - 1, all_slower.size(), alike, open));
  }
  if (!all_slower.empty()) {
    const std::size_t n = all_slower.size();
    return fmt::format("No change is proven faster than the baseline; {}: {}, {}{}.",
                       n == 1 ? "the slowest" : fmt::format("the slowest of {}", n), all_slower.back().name,
                       how_much(all_slower.back(), asked.per), the_rest(0, 0, alike, open));
  }
  if (alike > 0 && open == 0) {
    return fmt::format("Nothing moved beyond {}: {} came out the same as the baseline.", threshold,
                       alike == 1 ? all_same.front().name : fmt::format("all {} changes", alike));
  }
  if (open == 0) return "";
  return fmt::format("Nothing is proven to move beyond {}: of {} changes {} unresolved{}.", threshold, asked.changes,
                     open == 1 ? "1 is" : fmt::format("{} are", open),
                     alike > 0 ? fmt::format(", {} the same", alike) : "");
}

}  // namespace harness::report
