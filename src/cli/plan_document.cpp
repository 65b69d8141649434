#include "cli/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/estimator.h"
#include "backend/backend.h"
#include "base/text.h"
#include "base/units.h"
#include "config/experiment.h"
#include "config/model.h"
#include "plan/budget.h"
#include "plan/plan.h"
#include "report/sections.h"
#include "sweep/recorder.h"

namespace harness::cli {
namespace {

using report::List;
using report::Table;

double sent_by_largest(const plan::Survey& survey) {
  double bytes = 0;
  for (const auto& [key, traffic] : survey.counts[survey.peak_role].traffic)
    if (key.second != "receive") bytes += traffic.sent_bytes;
  return bytes;
}

// A row per case; what its last column points to goes to `notes`.
Table cases_table(const plan::Plan& p, std::vector<std::string>& notes) {
  Table table;
  table.columns = {
      report::case_column(),
      {.heading = "layout", .words = true},
      {.heading = "micro-batches", .worth = 40},
      {.heading = "memory/rank",
       .legend = "memory/rank: the largest rank's planned peak; the other columns are of that rank in one step."},
      {.heading = "sent/rank",
       .worth = 50,
       .legend = "sent/rank: over n ranks, 2 (n - 1) / n of an all-reduce, (n - 1) / n of a reduce-scatter or an "
                 "all-gather."},
      {.heading = report::uses_heading, .words = true, .worth = 10},
      {.heading = "notes", .words = true}};
  for (const plan::PlannedCase& planned : p.cases) {
    std::vector<report::Cell> row{report::case_cell(planned.name)};
    std::string marks;
    const auto note = [&](const std::string& text) {
      notes.push_back(text);
      marks += fmt::format("{}[{}]", marks.empty() ? "" : " ", notes.size());
    };
    if (planned.is_possible()) {
      row.insert(row.end(),
                 {program::text_of(planned.layout), std::to_string(planned.micro_batches),
                  show_bytes(plan::planned_memory_bytes(p.experiment, planned)),
                  show_bytes(sent_by_largest(planned.survey)), planned.is_copy ? "" : join(planned.uses, "; ")});
      for (const std::string& text : planned.notes) note(text);
    } else {
      row.resize(table.columns.size() - 1);
      marks = "skipped";
      note(planned.impossible);
    }
    row.emplace_back(marks);
    table.rows.push_back(std::move(row));
  }
  table.remove_empty_columns();
  return table;
}

std::string headline(const plan::Plan& p) {
  const config::Experiment& e = p.experiment;
  const auto total = std::ssize(p.cases), possible = std::ranges::count_if(p.cases, &plan::PlannedCase::is_possible);
  double largest = 0;
  for (const plan::PlannedCase& planned : p.cases) {
    if (planned.is_possible()) largest = std::max(largest, plan::planned_memory_bytes(e, planned));
  }
  const double memory = e.hardware ? e.hardware->memory_bytes : 0;
  return fmt::format("{}: {} on {}; {} can run, with at most {}{} per rank.", e.name, plural(total, "case"),
                     plural(p.ranks, "rank"), possible == total ? "all" : std::to_string(possible), show_bytes(largest),
                     memory > 0 ? fmt::format(" of {}", show_bytes(memory)) : "");
}

std::string blocks_text(const plan::Plan& p) {
  const config::Measure& m = p.experiment.measure;
  const std::string steps =
      m.auto_steps ? "as many timed steps as take about three quarters of the set-up" : plural(m.steps, "timed step");
  const bool shares = std::ranges::adjacent_find(p.schedule, {}, &plan::Slot::process) != p.schedule.end();
  std::string text =
      fmt::format("{} in {}, each {} warm-up and {} in {}, in balanced random order (seed {}).",
                  plural(std::ssize(p.schedule), "block"), plural(m.rounds, "round"), m.warmup_steps, steps,
                  shares ? "a process that runs all sizes of a setting" : "fresh processes", m.seed);
  if (m.looks.empty()) return text;
  const auto first = std::ranges::count_if(p.schedule, [&](const plan::Slot& s) { return s.round < m.looks[0]; });
  return text +
         fmt::format(
             " Looks after {} {}: settled cases leave, so it takes {} blocks (all settled by the first look) to {}.",
             m.looks.size() == 1 ? "round" : "rounds", fmt::join(m.looks, ", "), first, p.schedule.size());
}

// The effect that `rounds` rounds, those that fit, can detect; "" where nothing is compared.
std::string power_text(const plan::Plan& p, int rounds) {
  const config::Measure& m = p.experiment.measure;
  const int comparisons = analysis::declared_comparisons(sweep::planned_result(p));
  if (comparisons == 0) return "";
  if (rounds < analysis::least_pairs) {
    return fmt::format("{} no verdict: it takes {} or more, and about 12 to see small effects.",
                       rounds == 1 ? "1 round gives" : fmt::format("{} rounds give", rounds), analysis::least_pairs);
  }
  std::vector<std::string> effects;
  for (const double noise : {0.002, 0.005, 0.01, 0.02}) {
    const double effect = analysis::resolvable_effect(rounds, comparisons, noise, m.smallest_effect, m.confidence);
    if (!std::isfinite(effect)) break;
    effects.push_back(fmt::format("{:.2f} % ({}{:.1f} %)", effect * 100,
                                  effects.empty() ? "where blocks scatter around the machine's level by " : "",
                                  noise * 100));
  }
  const std::string what = fmt::format("With {} over {}, a change beyond {:.3g} %", plural(comparisons, "comparison"),
                                       plural(rounds, "round"), m.smallest_effect * 100);
  if (effects.empty()) return what + " is not detected: more rounds are needed.";
  return fmt::format("{} is detected 4 times in 5 if it is at least {}.", what, join(effects, ", "));
}

}  // namespace

std::vector<std::string> head_lines(const plan::Plan& p) {
  const config::Experiment& e = p.experiment;
  const plan::Survey& s = p.baseline().survey;
  if (const workloads::Rate& rate = s.rate; rate.repetitions > 0) {
    return {fmt::format("{}: backend {}, {}, workload {}", e.name, config::name_of(e.backend), plural(p.ranks, "rank"),
                        e.baseline.workload),
            fmt::format("one step: {} times {} of {}{}", rate.repetitions, rate.operation, show_bytes(rate.bytes),
                        s.flop.model > 0 ? fmt::format(", {:.4g} TFLOP", s.flop.model / 1e12) : "")};
  }
  std::vector<std::string> lines{
      fmt::format("{}: backend {}, {}, {}: {}", e.name, config::name_of(e.backend), plural(p.ranks, "rank"),
                  e.model.name, config::in_words(e.model)),
      fmt::format("one step: {} tokens, {:.3f} GFLOP per token ({:.3f} non-causal), {:.4g} PFLOP",
                  static_cast<std::int64_t>(s.tokens_per_step), s.flop.model / s.tokens_per_step / 1e9,
                  s.flop.noncausal / s.tokens_per_step / 1e9, s.flop.model / 1e15)};
  if (s.goodput < 1) lines.push_back(fmt::format("goodput: {} of the positions are tokens", percent(s.goodput)));
  const plan::Peak peak = plan::configured_peak(e, e.baseline.precision);
  if (peak.flops > 0) {
    lines.push_back(fmt::format("peak: {} per rank ({})", show_flops(peak.flops), peak.source));
  } else if (e.hardware) {
    lines.push_back(fmt::format("peak: not in the hardware file {} for precision {}; there will be no MFU",
                                e.hardware->name, config::name_of(e.baseline.precision)));
  } else if (e.without_hardware) {
    lines.emplace_back("peak: none (hardware: none); there will be no MFU");
  } else if (config::traits_of(e.backend).ranks_are_gpus) {
    lines.emplace_back("peak: from the hardware file of the GPU that the sweep finds");
  } else {
    lines.emplace_back("peak: measured before the first block (a matrix product on all ranks at once)");
  }
  const double memory = e.hardware ? e.hardware->memory_bytes : 0;
  if (memory > 0) lines.push_back(fmt::format("memory: {} per rank ({})", show_bytes(memory), e.hardware->name));
  return lines;
}

report::Document plan_document(const plan::Plan& p) {
  std::vector<std::string> notes;
  report::Document document;
  document.headline = headline(p);
  report::Section& section = document.sections.emplace_back();
  section.add(report::Numbers{"", cases_table(p, notes)});
  section.add(List{std::move(notes), List::Mark::number});
  section.add(List{plan::warnings_of(p), List::Mark::warning});
  section.add(List{head_lines(p), List::Mark::none});
  return document;
}

report::Section schedule_section(const plan::Plan& p, int rounds) {
  List lines{{blocks_text(p)}, List::Mark::none};
  if (std::string power = power_text(p, rounds); !power.empty()) lines.items.push_back(std::move(power));
  const auto bytes = static_cast<double>(sweep::needed_space(p));
  lines.items.push_back(fmt::format("The result file takes at most {}.", show_bytes(bytes)));
  report::Section section{"schedule", "", {}};
  section.add(std::move(lines));
  return section;
}

report::Section budget_section(const plan::Plan& p, const plan::PlannedCase& planned) {
  constexpr double min_shown_s = 1e-6;  // a single number filled or copied
  const config::Hardware& hardware = *p.experiment.hardware;
  const plan::Budget budget = plan::budget(p.experiment.model, p.experiment.backend, planned, hardware);
  Table table;
  table.columns = {{"operation", true}, {"number"}, {"TFLOP"}, {"GB"}, {"limit", true}, {"least time"}};
  for (const plan::BudgetLine& line : budget.lines) {
    if (line.least_s < min_shown_s) continue;
    table.rows.push_back({fmt::format("{}{}, {}{}", line.kind, line.what.empty() ? "" : " " + line.what,
                                      program::name_of(line.phase), line.recomputed ? ", recomputed" : ""),
                          std::to_string(line.operations), line.flop > 0 ? fmt::format("{:.1f}", line.flop / 1e12) : "",
                          fmt::format("{:.2f}", line.bytes / 1e9), program::name_of(line.bound),
                          show_seconds(line.least_s)});
  }
  table.columns.back().legend = fmt::format("least time: {}, which is an MFU of {} at most",
                                            show_seconds(budget.least_s), percent(budget.mfu(budget.least_s)));
  report::Section section{"budget", "", {}};
  section.add(report::Numbers{
      fmt::format("{}: budget of one step of one rank{}, computation only, on {} ({}, {:.3g} TB/s)", planned.name,
                  budget.roles > 1 ? fmt::format(" of pipeline stage {}", budget.role) : "", hardware.name,
                  show_flops(budget.rates.flops), budget.rates.memory_bytes_per_s / 1e12),
      std::move(table)});
  return section;
}

}  // namespace harness::cli
