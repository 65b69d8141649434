#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "analysis/cases.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// The size, "4 MiB", or the operation's part in the model's step if that is known.
std::string size_of(const store::Result& result, const analysis::CaseSummary& row) {
  if (std::string uses = uses_of(result, row); !uses.empty()) return uses;
  if (row.role == store::CaseRole::point) return result.at(row).value;
  const auto sized = std::ranges::find(result.cases, config::Purpose::size,
                                       [](const store::ResultCase& of) { return config::purpose_of(of.variable); });
  const std::string_view size = sized == result.cases.end() ? "" : result.setting(result.at(row), sized->variable);
  return size.empty() ? "the baseline's size" : std::string(size);
}

// The best results over the sizes of one operation: "Highest busbw: 0.284 GB/s at 16 MiB. Shortest time: 15.2 ms at
// 4 KiB. "; "" for training, or if nothing was measured.
std::string what_was_reached(const store::Result& result, const analysis::Summary& summary) {
  const Measured measured = measured_by(result);
  std::vector<const analysis::CaseSummary*> points;  // the baseline and its other sizes
  for (const analysis::CaseSummary& row : summary.cases) {
    if (store::is_reference(row.role) && row.rates && !row.rates->impossible) points.push_back(&row);
  }
  if (measured == Measured::training || points.empty()) return "";
  const auto rate_of = [](const analysis::CaseSummary* row) { return operation_rate(*row).value_or(0); };
  const auto seconds_of = [](const analysis::CaseSummary* row) { return row->rates->operation_seconds; };
  const analysis::CaseSummary& most = **std::ranges::max_element(points, {}, rate_of);
  const analysis::CaseSummary& least = **std::ranges::min_element(points, {}, seconds_of);
  const bool in_flops = !most.rates->bus_bytes_per_s && most.flops_per_rank > 0;
  const Scale scale = in_flops ? scale_of_flops(std::array{rate_of(&most)}) : gigabytes_per_s;
  return fmt::format("Highest {}{}: {:.4g} {} at {}. Shortest time: {} at {}. ",
                     measured == Measured::collective ? "busbw" : "rate",
                     analysis::is_grid(result) ? " of the baseline" : "", rate_of(&most) / scale.factor, scale.unit,
                     size_of(result, most), show_seconds(seconds_of(&least)), size_of(result, least));
}

// The outcome of each setting of a grid, in the order of the file: "nccl_algo=tree: faster at 12, slower at 3, same at
// 5 of 20 sizes; …"; "" if none has a verdict.
std::string grid_words(const store::Result& result, const analysis::Summary& summary) {
  using enum analysis::Verdict;
  std::vector<std::string> settings;
  for (const auto& [name, cases] : changes_by_setting(result, summary)) {
    std::vector<std::string> counts;
    for (const analysis::Verdict verdict : {faster, slower, same, unresolved}) {
      const auto sizes = std::ranges::count_if(cases, [&](const analysis::CaseSummary* row) {
        return store::may_run(row->status) && row->judgement.verdict == verdict;
      });
      if (sizes > 0) counts.push_back(fmt::format("{} at {}", analysis::name_of(verdict), sizes));
    }
    if (!counts.empty())
      settings.push_back(fmt::format("{}: {} of {}", name, join(counts, ", "), plural(std::ssize(cases), "size")));
  }
  return settings.empty() ? "" : join(settings, "; ") + ".";
}

struct SortedChanges {
  std::vector<KnownChange> known;            // with an effect
  std::vector<KnownChange> other_trainings;  // with an effect, but of another training
  std::vector<std::string> scaling;          // "8 ranks 1.74 times as fast as 4, efficiency 87.0 %"
  int changes = 0, measured = 0;
};

SortedChanges sort_out(const store::Result& result, const analysis::Summary& summary) {
  SortedChanges sorted;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change) continue;
    if (row.blocks > 0) ++sorted.measured;
    ++sorted.changes;
    if (!row.effect || !store::may_run(row.status)) continue;  // a case that failed later keeps its effect
    const analysis::Effect& effect = *row.effect;
    if (config::purpose_of(result.at(row).variable) != config::Purpose::scale) {
      const char* outcome = outcome_of({effect.verdict, row.judgement.reason}, effect.ratio);
      (row.another_training ? sorted.other_trainings : sorted.known)
          .push_back({row.name, outcome, effect.ratio, effect.low, effect.high});
    } else if (const auto useful = efficiency(result, row);
               useful && result.case_at(result.at(row).reference).role() == store::CaseRole::baseline) {
      sorted.scaling.push_back(fmt::format("{} {:.2f} times as fast as {}, efficiency {}",
                                           plural(result.at(row).ranks, "rank"), 1 / effect.ratio,
                                           result.baseline()->ranks, percent(*useful)));
    }
  }
  return sorted;
}

// Reports the first failure, because the others usually have the same cause.
std::string nothing_measured(const analysis::Summary& summary) {
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.status == store::CaseStatus::failed && !row.reason.empty())
      return fmt::format("Nothing could be compared: {} failed: {}", short_name(row.name), row.reason);
  }
  return "No change has been measured.";
}

std::string what_was_found(const store::Result& result, const analysis::Summary& summary, const SortedChanges& found) {
  const bool grid = analysis::is_grid(result) && !summary.predicted;
  const std::string moved = grid ? grid_words(result, summary)
                                 : what_moved(found.known, result.smallest_effect, per_what(result), summary.predicted);
  const std::string words = what_was_reached(result, summary) + moved;
  if (!words.empty()) return std::string(trim(words));
  if (found.changes == 0) return "Only the baseline was asked for: nothing to compare.";
  const analysis::CaseSummary* baseline = summary.baseline();
  if (found.measured == 0 || (baseline != nullptr && baseline->status == store::CaseStatus::failed))
    return nothing_measured(summary);
  return "";
}

// " Lost: 2 blocks, the first of a=1 (rank 1 on vm: worker killed by signal 9 (kill) …)."
std::string lost_words(const analysis::Summary& summary) {
  if (summary.lost.empty()) return "";
  const analysis::LostBlock& first = summary.lost.front();
  const std::string why = first.reason.substr(0, first.reason.find_first_of(";\n"));
  return fmt::format(" Lost: {}, the first of {}{}.", plural(std::ssize(summary.lost), "block"),
                     short_name(summary.at(first).name), why.empty() ? "" : " (" + why + ")");
}

// Removes the steps of other cases from the findings. Returns their short names.
std::vector<std::string> leave_out_steps(const store::Result& result, const ShownSteps& shown,
                                         analysis::Findings& findings) {
  std::set<std::int32_t> chosen;
  for (const std::string& name : shown.cases) chosen.insert(find_case(result, name));
  if (shown.detail == Detail::full && shown.cases.empty()) return {};
  if (shown.cases.empty() && findings.best_case) chosen.insert(*findings.best_case);
  for (const std::int32_t of_case : std::set(chosen)) chosen.insert(result.case_at(of_case).reference);
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

std::string range(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format(" [{:.1f}, {:.1f}]", low, high) : "";
}

std::vector<Cell> cells_of(const analysis::CaseCost& cost, const std::string& currency) {
  return {cost.name, std::to_string(cost.ranks), Scale{}.print(cost.tokens_per_second), show_duration(cost.duration_s),
          show_money(cost.price, currency)};
}

// The unit that has a price: GPU if ranks are GPUs, else rank.
std::string priced_in(const analysis::CostEstimate& estimate) {
  return estimate.ranks_are_gpus ? "GPU" : "rank";
}

Table table_of(const analysis::CostEstimate& estimate) {
  const std::string &currency = estimate.cost.currency, priced = priced_in(estimate);
  Table table{{{"case", true}, {priced + "s"}, {"tokens/s"}, {"duration"}, {"price of the run"}}, {}};
  if (!estimate.after.empty()) {
    table.columns.insert(
        table.columns.end(),
        {{"saved"}, {.heading = priced + "s recovered", .worth = 10}, {.heading = "saved in a year", .worth = 20}});
  }
  std::vector<Cell> before = cells_of(estimate.before, currency);
  before.resize(table.columns.size());
  table.rows.push_back(std::move(before));
  for (const analysis::CaseSaving& saving : estimate.after) {
    std::vector<Cell> cells = cells_of(saving.after, currency);
    cells.push_back(fmt::format("{:.1f} %{}", 100 * saving.saved_share,
                                range(100 * saving.saved_share_low, 100 * saving.saved_share_high)));
    cells.push_back(fmt::format("{:.1f}{}", saving.gpus_recovered, range(saving.gpus_low, saving.gpus_high)));
    cells.push_back(show_money(saving.saved_yearly, currency));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string headline(const store::Result& result, const analysis::Summary& summary) {
  std::string text;
  if (summary.partial) {
    const analysis::HowFar far = analysis::how_far(result);
    const std::string standing = result.standing.empty() ? "" : ", " + result.standing;
    text = fmt::format("Partial ({} of {} blocks{}). ", far.blocks_done, far.blocks, standing);
  }
  if (summary.unreliable) {
    const KnownChange control{"", "", summary.control->ratio, summary.control->low, summary.control->high};
    text += fmt::format(
        "Unreliable: the control baseline_again took {} than the baseline, which it repeats; no verdict below counts.",
        how_much(control, per_what(result)));
  } else {
    const SortedChanges changes = sort_out(result, summary);
    if (summary.predicted) text += "Predicted, not measured. ";
    std::string found = what_was_found(result, summary, changes) + other_trainings_words(changes.other_trainings);
    if (!changes.scaling.empty()) found += " Scaling: " + join(changes.scaling, "; ") + ".";
    const bool waits = std::ranges::any_of(summary.cases, analysis::has_too_few_rounds);
    const char* none =
        waits ? "Too few rounds for any verdict." : "No change has a verdict; the table of cases says why.";
    text += found.empty() ? none : std::string(trim(found));
  }
  return text + lost_words(summary);
}

Section cost_section(const analysis::CostEstimate& estimate) {
  Section section{"cost", "What it is worth", {}};
  section.add(
      Numbers{fmt::format("A training run of {} at {:.2f} {} per {} and hour:", show_tokens(estimate.cost.run_tokens),
                          estimate.cost.per_gpu_hour, estimate.cost.currency, priced_in(estimate)),
              table_of(estimate)});
  List notes;
  const std::string basis =
      estimate.predicted
          ? "Predicted, not measured: the tokens/s and the changes are those of the table of cases."
          : fmt::format(
                "Based on the measured tokens/s of {} of the baseline and on the effects of the proven changes, "
                "with their {:.6g} % intervals.",
                plural(estimate.steps, "step"), 100 * estimate.confidence);
  notes.items.push_back(basis + " Convergence, restarts, checkpoints and the loading of real data are not included.");
  notes.items.push_back(
      estimate.after.empty()
          ? fmt::format("Nothing is {} faster, so there is nothing to save yet.",
                        estimate.predicted ? "predicted" : "proven")
          : fmt::format(
                "The duration after a change is the baseline's times the change. What is recovered are the {0}s that "
                "the baseline would need beyond its own for the same rate. Saved in a year: the same work on the "
                "baseline's {0}s, in use all year. Savings of several cases need not add up.",
                priced_in(estimate)));
  if (!estimate.ranks_are_gpus) {
    notes.items.emplace_back(
        "Ranks are no GPUs here: the price is that of a rank, which is a share of a machine's cores. This says nothing "
        "about GPUs.");
  }
  section.add(std::move(notes));
  return section;
}

Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost, Detail detail) {
  Document document;
  document.headline = headline(result, summary);
  Section& section = document.sections.emplace_back(Section{"overview", "", {}});
  section.add(Numbers{"", case_table(result, summary)});
  section.add(List{summary.warnings, List::Mark::warning});
  section.add(
      List{detail == Detail::full ? context(result, summary) : short_context(result, summary), List::Mark::none});
  if (cost) document.sections.push_back(cost_section(*cost));
  return document;
}

Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown) {
  std::vector<std::string> lacking;
  for (const std::string& name : shown.cases) {
    if (findings.step_of_case(find_case(result, name)) == nullptr) lacking.push_back(name);
  }
  const std::vector<std::string> others = leave_out_steps(result, shown, findings);
  Document document = show_document(result, findings.summary, findings.cost, shown.detail);
  add_diagnosis(findings, document);
  document.sections.push_back(breakdown_section(result, findings));
  if (!lacking.empty()) {
    document.sections.back().add(
        Paragraph{fmt::format("The file has no {} of {}.", analysis::step_in_parts(result), join(lacking, ", "))});
  }
  if (!others.empty()) {
    document.sections.back().add(
        Paragraph{fmt::format("Also profiled: {}. --case NAME shows one, -v all.", join(others, ", "))});
  }
  document.sections.push_back(explanation_section(result, findings));
  document.sections.push_back(stragglers_section(result, findings));
  return document;
}

}  // namespace harness::report
