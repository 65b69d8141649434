#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/blocks.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/words.h"
#include "store/result.h"

namespace harness::report {
namespace {

// "4 MiB"; what it is in the model's step, where that is known.
std::string size_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  if (point != nullptr && !point->uses.empty()) return point->uses;
  if (row.role == store::CaseRole::point) return result.at(row).value;
  const auto of_size = [](const store::ResultCase& other) {
    return config::purpose_of(other.variable) == config::Purpose::size;
  };
  const auto sized = std::ranges::find_if(result.cases, of_size);
  const std::string_view size = sized == result.cases.end() ? "" : result.setting(result.at(row), sized->variable);
  return size.empty() ? "the baseline's size" : std::string(size);
}

double reached_rate(const analysis::CaseSummary* row) {
  return operation_rate(*row).value_or(0);
}

std::string rate_words(const analysis::CaseSummary& row) {
  const double rate = reached_rate(&row);
  if (row.rates->bus_bytes_per_s || !(row.flops_per_rank > 0)) return fmt::format("{:.3g} GB/s", rate / 1e9);
  const Scale scale = scale_of_flops(std::array{rate});
  return fmt::format("{} {}", scale.print(rate), scale.unit);
}

// Between the best and the quickest: the average over all sizes where these are all that was swept, else what the
// baseline reached.
std::string in_the_middle(const store::Result& result, const analysis::Summary& summary,
                          const analysis::CaseSummary& first, const analysis::CaseSummary& most) {
  const auto average = analysis::average_bus_bandwidth(result, summary);
  if (is_listed_by_size(result) && average) return fmt::format("; average {:.3g} GB/s", *average / 1e9);
  if (first.role != store::CaseRole::baseline || most.role == store::CaseRole::baseline || analysis::is_grid(result))
    return "";
  return fmt::format("; {} at {}, the baseline", rate_words(first), size_of(result, first));
}

// The best that a sweep of one operation reached at its sizes: "Highest busbw: 0.284 GB/s at 16 MiB; average 0.031
// GB/s. Shortest time: 15.2 ms at 4 KiB." "" for training, and where nothing was measured.
std::string what_was_reached(const store::Result& result, const analysis::Summary& summary) {
  const Measured measured = measured_by(result);
  if (measured == Measured::training) return "";
  std::vector<const analysis::CaseSummary*> points;  // the baseline and its other sizes
  for (const analysis::CaseSummary& row : summary.cases) {
    if (store::is_reference(row.role) && row.rates && !row.rates->impossible) points.push_back(&row);
  }
  if (points.empty()) return "";
  const auto seconds_of = [](const analysis::CaseSummary* row) { return row->rates->operation_seconds; };
  const analysis::CaseSummary& most = **std::ranges::max_element(points, {}, reached_rate);
  const analysis::CaseSummary& least = **std::ranges::min_element(points, {}, seconds_of);
  const std::string what = measured == Measured::collective ? "busbw" : "rate";
  const std::string best = fmt::format("{} at {}", rate_words(most), size_of(result, most));
  const std::string shortest = show_seconds(seconds_of(&least));
  if (points.size() == 1) return fmt::format("{} {}, in {}.", what, best, shortest);
  return fmt::format("Highest {}{}: {}{}. Shortest time: {} at {}.", what,
                     analysis::is_grid(result) ? " of the baseline" : "", best,
                     in_the_middle(result, summary, *points.front(), most), shortest, size_of(result, least));
}

// "nccl_algo=tree: faster at 12 of 20 sizes, slower at 3, same at 5. …": how each setting of a grid came out, the
// settings in the order of the file; "" where none has a verdict.
std::string grid_words(const store::Result& result, const analysis::Summary& summary) {
  constexpr std::size_t max_shown = 4;
  using enum analysis::Verdict;
  std::vector<std::string> parts;
  for (const auto& [name, cases] : changes_by_setting(result, summary)) {
    std::string words;
    for (const analysis::Verdict verdict : {faster, slower, same, unresolved}) {
      const auto sizes = std::ranges::count_if(
          cases, [&](const analysis::CaseSummary* row) { return row->judgement.verdict == verdict; });
      if (sizes == 0) continue;
      words += words.empty()
                   ? fmt::format("{} at {} of {}", analysis::name_of(verdict), sizes, plural(std::ssize(cases), "size"))
                   : fmt::format(", {} at {}", analysis::name_of(verdict), sizes);
    }
    if (!words.empty()) parts.push_back(fmt::format("{}: {}", name, words));
  }
  const std::size_t shown = std::min(parts.size(), max_shown);
  if (parts.empty()) return "";
  const std::string more = parts.size() > shown ? fmt::format(" The table has {} more.", parts.size() - shown) : "";
  return join({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(shown)}, "; ") + "." + more;
}

struct SortedChanges {
  std::vector<KnownChange> known;                             // those that have an effect
  std::vector<const analysis::CaseSummary*> other_trainings;  // the same, of another training
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
    ++sorted.changes;
    if (!row.effect) continue;
    if (config::purpose_of(result.at(row).variable) != config::Purpose::scale) {
      if (row.another_training) {
        sorted.other_trainings.push_back(&row);
      } else {
        sorted.known.push_back(known_change(row.name, *row.effect));
      }
    } else if (result.case_at(result.at(row).reference).role() == store::CaseRole::baseline) {
      sorted.scaling.push_back(&row);
    }
  }
  return sorted;
}

constexpr std::size_t max_named = 3;

// " Scaling: 8 ranks 1.74 times as fast as 4, efficiency 87.0 %; 2 ranks …"
std::string scaling_words(const store::Result& result, const SortedChanges& found) {
  std::vector<std::string> parts;
  const store::ResultCase* baseline = result.baseline();
  for (const analysis::CaseSummary* row : found.scaling) {
    const int ranks = result.at(*row).ranks;
    if (baseline == nullptr || ranks <= 0 || baseline->ranks <= 0 || !(row->effect->ratio > 0)) continue;
    if (ranks == baseline->ranks) continue;  // the baseline under another name
    const double speedup = 1 / row->effect->ratio;
    parts.push_back(fmt::format("{} {:.2f} times as fast as {}, efficiency {}", plural(ranks, "rank"), speedup,
                                baseline->ranks, percent(speedup * baseline->ranks / ranks)));
  }
  return parts.empty() ? "" : " Scaling: " + join(parts, "; ") + ".";
}

// " Another training, per token: global_batch_size=64 12.3 % less time [10.1 %, 14.4 %], 1 unresolved.": the faster
// ones by name, the others counted.
std::string other_trainings_words(const SortedChanges& found) {
  std::vector<KnownChange> faster;
  std::map<std::string, std::size_t> others;  // by what is said of them
  for (const analysis::CaseSummary* row : found.other_trainings) {
    if (analysis::has_too_few_rounds(*row)) continue;  // that is said of all cases together
    const KnownChange change = known_change(row->name, *row->effect);
    if (change.verdict == analysis::Verdict::faster) {
      faster.push_back(change);
    } else if (row->judgement.reason == analysis::Reason::predicted) {
      ++others[change.ratio < 1 ? "faster" : "slower"];
    } else {
      ++others[analysis::name_of(row->judgement)];
    }
  }
  std::ranges::stable_sort(faster, {}, &KnownChange::ratio);
  std::vector<std::string> parts;
  for (const KnownChange& change : faster) parts.push_back(change.name + " " + how_much(change, ""));
  if (!parts.empty()) parts = {join_first(parts, max_named)};
  for (const auto& [words, number] : others) parts.push_back(fmt::format("{} {}", number, words));
  return parts.empty() ? "" : " Another training, per token: " + join(parts, ", ") + ".";
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

constexpr const char* no_verdict = "Too few rounds for any verdict.";

std::string what_was_found(const store::Result& result, const analysis::Summary& summary, const SortedChanges& found) {
  const auto asked =
      found.changes - static_cast<int>(found.scaling.size()) - static_cast<int>(found.other_trainings.size());
  const std::string reached = what_was_reached(result, summary);
  std::string moved = analysis::is_grid(result)
                          ? grid_words(result, summary)
                          : what_moved(found.known, {result.smallest_effect, asked, per_what(result)});
  if (!reached.empty()) return reached + (moved.empty() ? "" : " " + moved);
  if (!moved.empty()) return moved;
  if (asked == 0 && !found.other_trainings.empty()) return "Only other trainings were compared.";
  if (asked == 0 && !found.scaling.empty()) return "Only numbers of ranks were compared.";
  if (found.changes == 0) return "Only the baseline was asked for: nothing to compare.";
  if (found.measured == 0) return nothing_measured(summary);
  return no_verdict;
}

// " Too few rounds for a verdict on a=1.", which the others have.
std::string too_few_words(const analysis::Summary& summary) {
  std::vector<std::string> names;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (analysis::has_too_few_rounds(row)) names.push_back(row.name);
  }
  return names.empty() ? "" : " Too few rounds for a verdict on " + join_first(names, max_named) + ".";
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
  return parts.empty() ? "" : " Lost: " + join_first(parts, max_named) + ".";
}

// "Predicted, not measured: micro_batch_size=4 is the fastest, 24.5 % less time than the baseline, …"
std::string what_was_predicted(const store::Result& result, const analysis::Summary& summary,
                               const SortedChanges& found) {
  using analysis::Reason;
  const auto is_scale = [&](const analysis::CaseSummary& row) {
    return config::purpose_of(result.at(row).variable) == config::Purpose::scale;
  };
  std::vector<const analysis::CaseSummary*> faster = summary.predicted_changes();
  std::erase_if(faster, [&](const analysis::CaseSummary* row) { return is_scale(*row); });
  std::size_t close = 0, slower = 0;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.another_training || is_scale(row)) continue;
    if (row.judgement.reason == Reason::too_close_to_call) ++close;
    if (row.judgement.reason == Reason::predicted && row.effect->ratio > 1) ++slower;
  }
  const std::string start = "Predicted, not measured: ";
  if (faster.empty() && close + slower == 0) {
    if (!found.other_trainings.empty()) return start + "only other trainings are compared.";
    return start +
           (found.scaling.empty() ? "nothing is compared with the baseline." : "only numbers of ranks are compared.");
  }
  const std::size_t others = faster.empty() ? 0 : faster.size() - 1;
  const std::string rest = the_rest(others, {{slower, "slower"}, {close, "too close to call"}});
  if (faster.empty()) return start + "no change is faster than the baseline" + rest;
  const analysis::CaseSummary& best = *faster.front();
  return start + fmt::format("{} is the fastest, {} less time{} than the baseline{}{}", best.name,
                             percent(1 - best.effect->ratio), per_what(result),
                             throughput_words(best.effect->ratio, per_what(result)), rest);
}

// " Doctor found 2 failures: pcie.width on node11, same.driver on node3." of the nodes; "" where there was none.
std::string doctor_words(const store::Result& result) {
  std::vector<std::string> parts;
  for (const store::ResultFinding& row : result.doctor.findings) {
    if (row.is_failure() && row.is_of_nodes()) parts.push_back(fmt::format("{} on {}", row.check, row.where));
  }
  if (parts.empty()) return "";
  return fmt::format(" Doctor found {}: {}.", plural(std::ssize(parts), "failure"), join_first(parts, max_named));
}

// Leaves the steps of other cases out of the findings. Returns what was left out, by short names.
std::vector<std::string> leave_out_steps(const store::Result& result, const ShownSteps& shown,
                                         analysis::Findings& findings) {
  std::set<std::int32_t> chosen;
  for (const std::string& name : shown.cases) chosen.insert(find_case(result, name));
  if (shown.detail == Detail::full && shown.cases.empty()) return {};
  if (shown.cases.empty() && findings.best_case) chosen.insert(*findings.best_case);
  const auto is_other = [&](const auto& of_case) {
    return result.at(of_case).role() != store::CaseRole::baseline && !chosen.contains(of_case.case_index);
  };
  std::vector<std::string> others;
  for (const analysis::StepFindings& step : findings.steps) {
    if (is_other(step)) others.push_back(short_name(result.at(step).name));
  }
  std::erase_if(findings.steps, is_other);
  if (findings.explanation) std::erase_if(findings.explanation->cases, is_other);
  return others;
}

}  // namespace

std::string headline(const store::Result& result, const analysis::Summary& summary) {
  std::string text;
  if (summary.partial) {
    const analysis::HowFar far = analysis::how_far(result);
    const std::string standing = result.standing.empty() ? "" : ", " + result.standing;
    text = fmt::format("Partial ({} of {} blocks{}). ", far.blocks_done, far.blocks, standing);
  }
  const SortedChanges changes = sort_out(result, summary);
  if (summary.predicted)
    return text + what_was_predicted(result, summary, changes) + other_trainings_words(changes) +
           scaling_words(result, changes);
  if (summary.unreliable) {
    text += fmt::format(
        "Unreliable: the control baseline_again took {} than the baseline, which it repeats; no verdict below counts.",
        how_much(known_change("baseline_again", *summary.control), per_what(result)));
  } else {
    const std::string found = what_was_found(result, summary, changes);
    text += found + other_trainings_words(changes) + scaling_words(result, changes);
    if (found != no_verdict) text += too_few_words(summary);
  }
  return text + lost_words(summary) + doctor_words(result);
}

Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost, Detail detail) {
  Document document;
  document.headline = headline(result, summary);
  document.sections.push_back(overview_section(result, summary, detail));
  if (cost) document.sections.push_back(cost_section(*cost));
  return document;
}

Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown) {
  const std::vector<std::string> others = leave_out_steps(result, shown, findings);
  Document document = show_document(result, findings.summary, findings.cost, shown.detail);
  if (findings.explanation) {
    if (std::string words = diagnosis_words(*findings.explanation); !words.empty())
      document.notices.push_back({std::move(words), explanation_id});
  }
  document.sections.push_back(breakdown_section(result, findings));
  if (!others.empty()) {
    document.sections.back().add(
        Paragraph{fmt::format("Also profiled: {}. --case NAME shows one, -v all.", join(others, ", "))});
  }
  document.sections.push_back(explanation_section(result, findings));
  document.sections.push_back(stragglers_section(result, findings));
  return document;
}

}  // namespace harness::report
