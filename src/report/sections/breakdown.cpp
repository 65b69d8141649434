#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "analysis/breakdown.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "report/sections.h"

namespace harness::report {
namespace {

std::string cell(const std::optional<double>& seconds, const Scale& scale) {
  return seconds ? fmt::format("{:.2f}", *seconds / scale.factor + 0.0) : "";
}

std::string difference(const std::optional<double>& now, const std::optional<double>& before, const Scale& scale) {
  if (!now && !before) return "";
  return signed_number((now.value_or(0) - before.value_or(0)) / scale.factor, 2);
}

const analysis::WaterfallBar* bar_of(const analysis::StepFindings& step, std::optional<Part> part) {
  if (!step.waterfall) return nullptr;
  const auto found = std::ranges::find(step.waterfall->bars, part, &analysis::WaterfallBar::part);
  return found == step.waterfall->bars.end() ? nullptr : &*found;
}

std::string points_of(const analysis::WaterfallBar* bar) {
  return bar == nullptr ? "" : signed_number(-100 * bar->points, 1);
}

// The parts of the step, then the profiled step and, if steps were also timed, the timed one.
Table step_table(const store::Result& result, const analysis::StepFindings& step,
                 const analysis::StepFindings* baseline) {
  using Seconds = std::optional<double>;  // means over ranks
  const analysis::Breakdown& mean = step.breakdown.mean;
  const analysis::Breakdown* before = baseline == nullptr ? nullptr : &baseline->breakdown.mean;
  const std::optional<analysis::Waterfall>& waterfall = step.waterfall;
  const bool predicts = config::traits_of(result.backend).predicts();
  const Scale scale = scale_of_seconds(std::array{mean.step_s / 10});  // four digits at least
  Table table;
  table.columns = {{fmt::format("part of the {}", analysis::step_in_parts(result)), true},
                   {"baseline " + scale.unit},
                   {scale.unit},
                   {"change"},
                   {.heading = "share", .worth = 10},
                   {"MFU"},
                   {"roof " + scale.unit}};
  const auto add = [&](const std::string& name, Seconds was, Seconds is, const std::string& share,
                       const std::string& points, Seconds roof) {
    table.rows.push_back({name, cell(was, scale), cell(is, scale),
                          baseline == nullptr ? "" : difference(is, was, scale), share, points, cell(roof, scale)});
  };
  if (waterfall) add("(peak)", {}, {}, "", percent(1), {});
  for (const Part part : all_parts) {
    const Seconds was = before == nullptr ? std::nullopt : (*before)[part], is = mean[part];
    if (!is && !was) continue;
    const analysis::WaterfallBar* bar = bar_of(step, part);
    add(name_of(part), was, is, is ? percent(mean.share(part)) : "", points_of(bar),
        bar == nullptr ? std::nullopt : bar->roof_s);
  }
  const bool timed = waterfall && waterfall->timed && !predicts;
  const analysis::WaterfallBar* rest = bar_of(step, std::nullopt);
  const Seconds ideal = waterfall ? Seconds(waterfall->ideal_s) : std::nullopt;
  add(predicts ? "step" : "step, profiled", before == nullptr ? std::nullopt : Seconds(before->step_s), mean.step_s,
      percent(1), waterfall ? percent(waterfall->mfu + (rest != nullptr ? rest->points : 0)) : "",
      timed ? std::nullopt : ideal);
  if (timed) {
    Seconds was, differed;
    if (baseline != nullptr && baseline->waterfall && baseline->waterfall->timed) {
      was = baseline->waterfall->step_s;
      differed = *was - before->step_s;
    }
    add("timed steps differ by", differed, waterfall->step_s - mean.step_s, "", points_of(rest), {});
    add("step, timed", was, waterfall->step_s, "", percent(waterfall->mfu), ideal);
  }
  table.remove_empty_columns();
  return table;
}

template <class Key>
std::string listed(const std::vector<std::pair<Key, double>>& list, std::size_t max_listed, auto name_of_key) {
  std::vector<std::string> words;
  for (const auto& [key, s] : list)
    words.push_back(fmt::format("{} {}", std::invoke(name_of_key, key), show_seconds(s)));
  return join_first(words, max_listed);
}

// The sweep's results for a variable alone: "4 MiB slower, 2 MiB unresolved". The step may already use one of the
// values.
std::string tried(const store::Result& result, const analysis::Summary& summary, const std::string& variable) {
  constexpr std::size_t max_listed = 3;
  std::vector<std::string> words;
  bool with_others = false;
  for (const analysis::CaseSummary& row : summary.cases) {
    const store::ResultCase &of = result.at(row), &reference = result.case_at(of.reference);
    const auto changes = [&](const std::string& name) {
      return result.setting(of, name) != result.setting(reference, name);
    };
    const bool is_its_own = of.variable == variable;
    if (row.role != store::CaseRole::change || !(is_its_own || changes(variable))) continue;
    if (!is_its_own && std::ranges::count_if(result.variables, changes) > 1) {
      with_others = true;
      continue;
    }
    const std::string brief = short_name(row.name);
    const bool predicted = row.judgement.reason == analysis::Reason::predicted;
    words.push_back(fmt::format("{} {}", brief == row.name ? of.value : brief,
                                predicted ? change_of(row.effect) : analysis::name_of(row.judgement)));
  }
  if (words.empty()) return with_others ? "only with others" : "not tried";
  return join_first(words, max_listed);
}

void add_bottleneck(const store::Result& result, const analysis::Summary& summary, const analysis::Bottleneck& found,
                    Section& section) {
  if (found.kind == analysis::BottleneckKind::none) return;
  section.add(Paragraph{
      fmt::format("Bottleneck: {}, {} of the step.", analysis::name_of(found.kind), percent(found.share)), true});
  if (!found.evidence.empty()) section.add(Paragraph{found.evidence});
  if (found.kind == analysis::BottleneckKind::stragglers) {
    section.add(Paragraph{
        "No variable makes a late rank fast. Compare its host and device with the others' (clock, temperature, other "
        "jobs, binding), or leave it out. Where another rank is late in each step, fewer or larger messages help: "
        "ranks then wait for each other less often."});
  }
  using analysis::Lever;
  Table levers;
  levers.add({"variable", true}, found.levers, [](const Lever& x) { return x.variable; });
  levers.add({.heading = "share of the step", .worth = 10}, found.levers,
             [](const Lever& x) { return percent(x.share); });
  levers.add({"lost there"}, found.levers, [](const Lever& x) { return percent(x.lost); });
  levers.add({"acts on", true}, found.levers, [](const Lever& x) { return x.acts_on; });
  levers.add({"in this sweep", true}, found.levers, [&](const Lever& x) { return tried(result, summary, x.variable); });
  section.add(
      Numbers{"Worth trying, by what each may save of the parts of the step on which it acts:", std::move(levers)});
}

std::vector<std::string> remarks_on_mfu(const analysis::StepFindings& step) {
  if (!step.waterfall) return {"There is no MFU: the peak is unknown."};
  std::vector<std::string> remarks;
  if (!step.waterfall->timed)
    remarks.emplace_back("No block of this case finished: its MFU is that of the profiled step.");
  const auto above = [](const analysis::WaterfallBar& bar) { return bar.part && bar.points < 0; };
  if (std::ranges::any_of(step.waterfall->bars, above)) {
    remarks.emplace_back(
        "Some operations ran above the peak, so their points are gains: either the peak was measured while all ranks "
        "shared the machine, or the configured peak is too low.");
  }
  if (step.waterfall->gpu_utilisation) {
    remarks.push_back(fmt::format("NVML reports GPU utilisation of {}; MFU is {}.",
                                  percent(*step.waterfall->gpu_utilisation), percent(step.waterfall->mfu)));
  }
  return remarks;
}

std::vector<std::string> remarks_on(const store::Result& result, const analysis::StepFindings& step) {
  const analysis::Breakdown& mean = step.breakdown.mean;
  std::vector<std::string> remarks;
  if (measured_by(result) != Measured::collective) remarks = remarks_on_mfu(step);
  if (const double goodput = result.at(step).goodput; goodput < 1) {
    remarks.push_back(
        fmt::format("Padding: {} of the positions hold no token; matrix products and other computation take as long "
                    "for them as for tokens.",
                    percent(1 - goodput)));
  }
  if (!mean.other_compute.empty()) {
    remarks.push_back(fmt::format("Other computation: {}.", listed(mean.other_compute, 5, std::identity())));
  }
  if (mean[Part::idle].value_or(0) > 0)
    remarks.push_back(fmt::format("Idle: {}.", listed(mean.idle, 5, &analysis::IdlePlace::name)));
  if (!mean.overlapped.empty()) {
    remarks.push_back(fmt::format("Hidden behind computation (not part of the sum, and not free): {}.",
                                  listed(mean.overlapped, 6, [](Part part) { return name_of(part); })));
  }
  if (const std::string spans = step.spans.text(); !spans.empty()) {
    remarks.push_back(fmt::format("Nodes that one group spans, at most: {}.", spans));
  }
  double worst = 0;
  for (const analysis::Breakdown& rank : step.breakdown.ranks) worst = std::max(worst, analysis::unexplained(rank));
  if (worst > analysis::max_unexplained) {
    remarks.push_back(fmt::format("The parts leave {} of the step unexplained: please report it.", percent(worst)));
  }
  return remarks;
}

Table straggler_table(const analysis::Stragglers& found) {
  using Row = analysis::Straggler;
  constexpr std::size_t max_shown = 4;
  const auto shown = std::span(found.ranks).first(std::min(max_shown, found.ranks.size()));
  const auto ms = [](double s) { return fmt::format("{:+.2f}", 1e3 * s); };
  Table table;
  table.add({"rank", true}, shown, [](const Row& row) { return std::to_string(row.rank) + (row.named ? " *" : ""); });
  table.add({"host", true}, shown, [](const Row& row) { return row.host; });
  table.add({"device", true}, shown, [](const Row& row) { return row.device; });
  table.add({"late ms"}, shown, [&](const Row& row) { return ms(row.late_s); });
  table.add({"of the step"}, shown, [](const Row& row) { return percent(row.late_share); });
  table.add({.heading = "compute ms", .worth = 20}, shown, [&](const Row& row) { return ms(row.compute_s); });
  table.add({.heading = "idle ms", .worth = 20}, shown, [&](const Row& row) { return ms(row.idle_s); });
  table.add({"late in"}, shown, [&](const Row& row) { return fmt::format("{} of {}", row.late_cases, found.cases); });
  table.remove_empty_columns();
  return table;
}

}  // namespace

void add_step(const store::Result& result, const analysis::Findings& findings, const analysis::StepFindings& step,
              const analysis::StepFindings* baseline, Section& section) {
  section.add(Subheading{short_name(result.at(step).name)});
  section.add(Numbers{"", step_table(result, step, baseline)});
  // The bound of a training step and what to try do not apply to a single operation.
  if (measured_by(result) == Measured::training) add_bottleneck(result, findings.summary, step.bottleneck, section);
  section.add(List{remarks_on(result, step)});
}

Section breakdown_section(const store::Result& result, const analysis::Findings& findings) {
  Section section{"breakdown", "Where the step goes", {}};
  if (findings.steps.empty()) {
    section.add(
        Paragraph{"There is no breakdown: the file holds no profiled step. The sweep was stopped before it profiled "
                  "one."});
    return section;
  }
  section.add(Paragraph{fmt::format(
      "One {} of each case{}; means over ranks, divided as on those with a timeline. Each moment belongs to "
      "one part: computation where any runs, else communication, else idle. MFU: points of the peak that a "
      "part costs. Roof: what it would take at the limit of the hardware (peak FLOP/s, memory bandwidth or "
      "stated links; 0 for what needs no time); empty where the limit is not known.",
      analysis::step_in_parts(result),
      config::traits_of(result.backend).predicts() ? "" : ", outside the timed blocks")});
  for (const analysis::StepFindings& step : findings.steps) {
    const std::int32_t reference = result.at(step).reference;  // of an operation, the baseline at its size
    const bool compares = reference != step.case_index;
    add_step(result, findings, step, compares ? findings.step_of_case(reference) : nullptr, section);
  }
  return section;
}

Section stragglers_section(const store::Result& result, const analysis::Findings& findings) {
  Section section{"stragglers", "Stragglers", {}};
  const analysis::Stragglers& found = findings.stragglers;
  if (found.ranks.empty()) {
    section.add(Paragraph{result.ranks < 2 ? "A single rank waits for no other."
                                           : "The file does not show which ranks were late."});
    return section;
  }
  const analysis::Straggler& worst = found.ranks.front();
  section.add(Paragraph{found.found() ? fmt::format("Rank {} on {} ({}) is late: the others wait for it.", worst.rank,
                                                    worst.host, worst.device)
                                      : "No rank is consistently late.",
                        true});
  section.add(Paragraph{found.evidence});
  if (config::traits_of(result.backend).predicts() && !found.found()) return section;  // all rows would be zero
  section.add(Numbers{fmt::format("Late in: of the {}s.", analysis::step_in_parts(result)), straggler_table(found)});
  return section;
}

}  // namespace harness::report
