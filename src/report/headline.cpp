#include "report/headline.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/climb.h"
#include "analysis/comparable.h"
#include "base/text.h"
#include "config/registry.h"
#include "report/context.h"
#include "report/reached.h"
#include "report/scale.h"
#include "report/what_moved.h"

namespace harness::report {
namespace {

struct SortedChanges {
  std::vector<KnownChange> known;                     // those that have an effect
  std::vector<const analysis::CaseSummary*> scaling;  // how much hardware there is: no setting that could be better
  int changes = 0, measured = 0;
};

KnownChange known_change(const std::string& name, const analysis::Effect& effect) {
  return {name, effect.verdict, effect.ratio, effect.low, effect.high};
}

SortedChanges sort_out(const store::Result& result, const analysis::Summary& summary) {
  SortedChanges sorted;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change) continue;
    if (row.blocks > 0) ++sorted.measured;
    const config::Purpose purpose = config::purpose_of(result.at(row).variable);
    if (purpose == config::Purpose::size) continue;  // what_was_reached() is about these
    ++sorted.changes;
    if (!row.effect) continue;
    if (purpose == config::Purpose::scale) {
      sorted.scaling.push_back(&row);
    } else {
      sorted.known.push_back(known_change(row.name, *row.effect));
    }
  }
  return sorted;
}

// " Scaling: 8 ranks 1.74 times as fast as 4, efficiency 87.0 %; 2 ranks …"
std::string scaling_words(const store::Result& result, const SortedChanges& found) {
  std::vector<std::string> parts;
  const store::ResultCase* baseline = result.baseline();
  for (const analysis::CaseSummary* row : found.scaling) {
    const int ranks = result.at(*row).ranks;
    if (baseline == nullptr || ranks <= 0 || baseline->ranks <= 0 || !(row->effect->ratio > 0)) continue;
    if (ranks == baseline->ranks) continue;  // in older files: the baseline under another name
    const double speedup = 1 / row->effect->ratio;
    parts.push_back(fmt::format("{} {:.2f} times as fast as {}, efficiency {}", plural(ranks, "rank"), speedup,
                                baseline->ranks, percent(speedup * baseline->ranks / ranks)));
  }
  return parts.empty() ? "" : " Scaling: " + join(parts, "; ") + ".";
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

std::string what_was_found(const store::Result& result, const analysis::Summary& summary, const SortedChanges& found) {
  const int asked = found.changes - static_cast<int>(found.scaling.size());
  const std::string reached = what_was_reached(result, summary);
  std::string moved = what_moved(found.known, {result.smallest_effect, asked, per_what(result)});
  if (!reached.empty()) return reached + (moved.empty() ? "" : " " + moved);
  if (!moved.empty()) return moved;
  if (!found.scaling.empty()) return "Only numbers of ranks were compared.";
  if (found.changes == 0) return "Only the baseline was asked for: nothing to compare.";
  if (found.measured == 0) return nothing_measured(summary);
  return "Too few rounds for any verdict.";
}

// "Stage 4 of a climb: 3 proven changes made the step 6.26 times as fast. "
std::string climbed(const store::Result& result, const analysis::Summary& summary) {
  if (result.climb.empty()) return "";
  const std::size_t changes = result.climb.size();
  std::string text =
      fmt::format("Stage {} of a climb, after {}", changes + 1, plural(std::ssize(result.climb), "proven change"));
  const analysis::CaseSummary* start = analysis::start_of_climb(result, summary);
  if (start != nullptr && start->effect && start->effect->verdict == analysis::Verdict::slower)
    text += fmt::format(": {:.3g} times as fast as at the start", start->effect->ratio);
  return text + ". ";
}

// " Lost: 2 blocks of a=1, rank 1 on vm: worker killed by signal 9 (kill) …", by case with the reason of its first.
std::string lost_words(const analysis::Summary& summary) {
  std::vector<std::string> parts;
  for (const analysis::LostBlock& lost : summary.lost) {
    const auto first = std::ranges::find(summary.lost, lost.case_index, &analysis::LostBlock::case_index);
    if (&*first != &lost) continue;  // counted with it
    const auto blocks = std::ranges::count(summary.lost, lost.case_index, &analysis::LostBlock::case_index);
    const std::string why = lost.reason.substr(0, lost.reason.find_first_of(";\n"));
    parts.push_back(
        fmt::format("{} of {}{}", plural(blocks, "block"), summary.at(lost).name, why.empty() ? "" : " (" + why + ")"));
  }
  constexpr std::size_t max_shown = 3;
  return parts.empty() ? "" : " Lost: " + join_first(parts, max_shown) + ".";
}

}  // namespace

std::string headline(const store::Result& result, const analysis::Summary& summary) {
  std::string text;
  if (summary.partial) {
    const auto done = std::count_if(result.blocks.begin(), result.blocks.end(), [](const store::ResultBlock& block) {
      return block.status != store::BlockStatus::pending;
    });
    const std::string standing = result.standing.empty() ? "" : ", " + result.standing;
    text = fmt::format("Partial ({} of {} blocks{}). ", done, result.blocks.size(), standing);
  }
  text += climbed(result, summary);
  if (!summary.unreliable) {
    const SortedChanges found = sort_out(result, summary);
    return text + what_was_found(result, summary, found) + scaling_words(result, found) + lost_words(summary);
  }
  return text +
         fmt::format(
             "Unreliable: the control baseline_again came out {} than the baseline, which it repeats; no verdict below "
             "counts.",
             how_much(known_change("baseline_again", *summary.control), per_what(result))) +
         lost_words(summary);
}

}  // namespace harness::report
