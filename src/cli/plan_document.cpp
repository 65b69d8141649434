#include "cli/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "analysis/estimator.h"
#include "analysis/published.h"
#include "backend/backend.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "config/experiment.h"
#include "config/model.h"
#include "report/sections.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"

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

Table cases_table(const plan::Plan& p) {
  using Case = plan::PlannedCase;
  Table table;
  const auto add = [&](Table::Column column, const auto& text) {
    table.add(std::move(column), p.cases, [&](const Case& c) { return c.is_possible() ? text(c) : ""; });
  };
  table.add(report::case_column, p.cases, [](const Case& c) { return report::case_cell(c.name); });
  add({.heading = "layout", .words = true}, [](const Case& c) { return c.layout_text(); });
  add({.heading = "micro-batches", .worth = 40}, [](const Case& c) { return std::to_string(c.micro_batches); });
  add({.heading = "memory/rank",
       .legend = "memory/rank: the largest rank's planned peak; the other columns are of that rank in one step."},
      [&](const Case& c) { return show_bytes(plan::planned_memory_bytes(p.experiment, c)); });
  add({.heading = "sent/rank",
       .worth = 50,
       .legend = "sent/rank: over n ranks, 2 (n - 1) / n of an all-reduce, (n - 1) / n of a reduce-scatter or an "
                 "all-gather."},
      [](const Case& c) { return show_bytes(sent_by_largest(c.survey)); });
  add({.heading = report::uses_heading, .words = true, .worth = 10},
      [](const Case& c) { return c.is_copy ? "" : join(c.uses, "; "); });
  table.add({.heading = "notes", .words = true}, p.cases, [&](const Case& c) {
    if (!c.is_possible()) return "skipped " + table.note(c.impossible);
    std::vector<std::string> marks;
    for (const std::string& text : c.notes) marks.push_back(table.note(text));
    return join(marks, " ");
  });
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

// The effect that one of the looks within `rounds` rounds detects with its share of the error (analysis::looks_of).
double detected_effect(const config::Measure& m, int rounds, int comparisons, double noise) {
  const std::vector<int> looks = m.looks.empty() ? std::vector{rounds} : m.looks;
  const double total = m.looks.empty() ? rounds : m.rounds;
  double least = std::numeric_limits<double>::infinity();
  for (int before = 0; const int look : looks) {
    const int at = std::min(look, rounds);
    if (at == before) break;
    const double confidence = 1 - (1 - m.confidence) * (at - before) / total;
    least = std::min(least, analysis::resolvable_effect(at, comparisons, noise, m.smallest_effect, confidence));
    before = at;
  }
  return least;
}

// The effect that `rounds` rounds can detect; "" if nothing is compared.
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
    const double effect = detected_effect(m, rounds, comparisons, noise);
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

bool has_gpus(const plan::Plan& plan) {
  return config::traits_of(plan.experiment.backend).ranks_are_gpus;
}

std::string hours_text(const plan::Plan& plan, double seconds) {
  return fmt::format("{:.3g} {}", seconds * plan.ranks / 3600, has_gpus(plan) ? "GPU hours" : "rank hours");
}

std::string budget_text(const plan::Plan& plan) {
  const double budget_s = plan.experiment.measure.time_budget_s;
  return fmt::format("the time budget of {} ({} on {})", show_seconds(budget_s), hours_text(plan, budget_s),
                     plural(plan.ranks, "rank"));
}

bool has_flop(const plan::Plan& plan) {
  return std::ranges::any_of(plan.cases, [](const plan::PlannedCase& c) { return c.survey.flop.model > 0; });
}

PlannedTime unknown_time(const plan::Plan& plan) {
  const bool bounded = plan.experiment.measure.time_budget_s > 0;
  PlannedTime time{
      plan.experiment.measure.rounds,
      {fmt::format("time: {} before the first sweep",
                   bounded ? fmt::format("at most {}; nothing closer is known", budget_text(plan)) : "unknown")}};
  if (has_flop(plan)) time.lines.push_back(source_of_time(plan) + " says more");
  return time;
}

// The time limit for sbatch, "1-02:30:00": 10 % and five minutes more, rounded up to minutes.
std::string slurm_time(double seconds) {
  const auto minutes = static_cast<std::int64_t>(std::ceil((1.1 * seconds + 300) / 60));
  const std::string hours = fmt::format("{:02}:{:02}:00", minutes / 60 % 24, minutes % 60);
  return minutes < 24 * 60 ? hours : fmt::format("{}-{}", minutes / (24 * 60), hours);
}

constexpr double set_up_s = 30;  // of a block

double block_s(double step_s, int steps) {
  return set_up_s + step_s * steps;
}

// A prediction has no copy of the baseline, and no step of a case that it does not know: they count as their reference.
// nullopt if the case has no block, or that step time is unknown too.
std::optional<double> known_step_s(const plan::Plan& plan, const KnownSteps& known, const plan::PlannedCase& planned) {
  auto step = known.seconds.find(planned.name);
  if (step == known.seconds.end()) step = known.seconds.find(plan.cases[planned.reference].name);
  return planned.is_possible() && step != known.seconds.end() ? std::optional(step->second) : std::nullopt;
}

// Untimed workers before round 1: one records the timeline; on GPUs, one tunes and one reads NCCL's log.
double preparation_s(const plan::Plan& plan, const plan::PlannedCase& planned, double step_s) {
  const config::Measure& m = plan.experiment.measure;
  if (planned.is_copy) return 0;
  double seconds = block_s(step_s, m.warmup_steps + sweep::profiled_steps(plan.experiment));
  if (!has_gpus(plan)) return seconds;
  if (!m.share_gpus) seconds += set_up_s;
  if (planned.layout.ranks() > 1) seconds += block_s(step_s, 1);
  return seconds;
}

// The end of each round, in seconds from the start of the sweep. `steps`: of a block, warm-up included.
std::vector<double> ends_of_rounds(const plan::Plan& plan, const KnownSteps& known, int steps) {
  double end_s = 0;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (const auto step_s = known_step_s(plan, known, planned)) end_s += preparation_s(plan, planned, *step_s);
  }
  std::vector<double> ends_s(plan.experiment.measure.rounds, end_s);
  for (const plan::Slot& slot : plan.schedule) {
    if (const auto step_s = known_step_s(plan, known, plan.cases[slot.case_index])) end_s += block_s(*step_s, steps);
    ends_s[slot.round] = end_s;
  }
  return ends_s;
}

std::string published_of_baseline(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  const plan::PlannedCase& baseline = p.baseline();
  const config::Experiment& e = p.experiment;
  if (!e.hardware || baseline.settings.workload != "gpt" || !baseline.is_possible()) return "";
  const int ranks = baseline.layout.ranks();
  double tflops = 0;
  if (!predicted.empty() && predicted.front().step)
    tflops = baseline.survey.flop.model / ranks / predicted.front().step->step_s / 1e12;
  return analysis::published_line(
      {e.model, e.hardware->gpu_file(), config::name_of(baseline.settings.precision), ranks, tflops, tflops > 0});
}

}  // namespace

std::vector<std::string> head_lines(const plan::Plan& p) {
  const config::Experiment& e = p.experiment;
  const plan::Survey& s = p.baseline().survey;
  if (const workloads::Rate& rate = s.rate; rate.repetitions > 0) {
    return {fmt::format("{}: backend {}, {}, workload {}", e.name, config::name_of(e.backend), plural(p.ranks, "rank"),
                        e.baseline.workload),
            fmt::format("one step: {} times {} of {}{}", rate.repetitions, rate.operation, show_bytes(rate.bytes),
                        s.flop.model > 0 ? ", " + show_flop(s.flop.model) : "")};
  }
  std::vector<std::string> lines{
      fmt::format("{}: backend {}, {}, {}: {}", e.name, config::name_of(e.backend), plural(p.ranks, "rank"),
                  e.model.name, config::in_words(e.model)),
      fmt::format("one step: {} tokens, {:.4g} GFLOP per token ({:.4g} non-causal), {}",
                  static_cast<std::int64_t>(s.tokens_per_step), s.flop.model / s.tokens_per_step / 1e9,
                  s.flop.noncausal / s.tokens_per_step / 1e9, show_flop(s.flop.model))};
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

report::Document plan_document(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  report::Document document;
  document.headline = headline(p);
  if (!predicted.empty()) {
    document.headline = predicted_words(p, predicted) + document.headline;
    document.sections.push_back(predictions_section(p, predicted));
  }
  report::Section& section = document.sections.emplace_back();
  section.add(report::Numbers{"", cases_table(p)});
  section.add(List{plan::warnings_of(p), List::Mark::warning});
  std::vector<std::string> lines = head_lines(p);
  if (std::string line = published_of_baseline(p, predicted); !line.empty()) lines.push_back(std::move(line));
  section.add(List{std::move(lines), List::Mark::none});
  return document;
}

report::Section schedule_section(const plan::Plan& p, int rounds) {
  List lines{{blocks_text(p)}, List::Mark::none};
  if (std::string power = power_text(p, rounds); !power.empty()) lines.items.push_back(std::move(power));
  const auto bytes = static_cast<double>(sweep::needed_space(p));
  lines.items.push_back(fmt::format("The result file takes at most {}.", show_bytes(bytes)));
  return {"schedule", "", {std::move(lines)}};
}

report::Section budget_section(const plan::Plan& p, const plan::PlannedCase& planned) {
  constexpr double min_shown_s = 1e-6;  // hides operations that fill or copy a single number
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
  const std::string caption =
      fmt::format("{}: budget of one step of one rank{}, computation only, on {} ({}, {:.3g} TB/s)", planned.name,
                  budget.roles > 1 ? fmt::format(" of pipeline stage {}", budget.role) : "", hardware.name,
                  show_flops(budget.rates.flops), budget.rates.memory_bytes_per_s / 1e12);
  return {"budget", "", {report::Numbers{caption, std::move(table)}}};
}

std::string source_of_time(const plan::Plan& plan) {
  const bool has_peaks = std::ranges::all_of(plan.cases, [&](const plan::PlannedCase& c) {
    return !c.is_possible() || plan::configured_peak(plan.experiment, c.settings.precision).flops > 0;
  });
  if (has_peaks) return "an MFU (--assume-mfu 40%)";
  const bool alike = std::ranges::all_of(plan.cases, [&](const plan::PlannedCase& c) {
    return !c.is_possible() || c.settings.precision == plan.experiment.baseline.precision;
  });
  return fmt::format("an MFU (--assume-mfu 40%, with `hardware: FILE`{} in the configuration)",
                     alike ? " or `peak_flops`" : "");
}

KnownSteps assumed_steps(const plan::Plan& plan, const std::string& assume_mfu) {
  KnownSteps known;
  known.is_stated = true;
  const double mfu = option_value("--assume-mfu", assume_mfu, parse_share);
  if (!(mfu > 0 && mfu <= 1)) fail("--assume-mfu: found {}; allowed: above 0 % and up to 100 %", assume_mfu);
  if (!has_flop(plan)) {
    fail("--assume-mfu: the steps of workload {} have no FLOP, so an MFU says nothing about their time",
         quote(plan.experiment.baseline.workload));
  }
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    const double peak = plan::configured_peak(plan.experiment, planned.settings.precision).flops;
    if (!(peak > 0))
      fail(
          "--assume-mfu needs the peak of a rank, and that of {} is not known: add `hardware: FILE` to the "
          "configuration, or `peak_flops` for the baseline's precision",
          quote(planned.name));
    if (planned.survey.flop.model > 0)
      known.seconds[planned.name] = planned.survey.flop.model / (planned.layout.ranks() * peak * mfu);
  }
  known.source = fmt::format("if every case has an MFU of {:.3g} % and a block takes {} to set up", 100 * mfu,
                             show_seconds(set_up_s));
  return known;
}

PlannedTime planned_time(const plan::Plan& plan, const KnownSteps& known) {
  const auto baseline_s = known.seconds.find(plan.baseline().name);
  if (baseline_s == known.seconds.end()) return unknown_time(plan);
  const config::Measure& m = plan.experiment.measure;
  const int timed_steps = m.auto_steps ? sweep::auto_steps(set_up_s, baseline_s->second, m.warmup_steps) : m.steps;
  const int steps = m.warmup_steps + timed_steps;
  const std::vector<double> ends_s = ends_of_rounds(plan, known, steps);
  const auto fit = static_cast<int>(
      std::ranges::count_if(ends_s, [&](double s) { return m.time_budget_s <= 0 || s <= m.time_budget_s; }));
  const int least = m.looks.empty() ? analysis::least_pairs : m.looks.front();
  const int said = std::min(least, m.rounds);
  const bool has_verdicts = analysis::declared_comparisons(sweep::planned_result(plan)) > 0;
  if (known.is_stated && fit < said && has_verdicts) {
    fail(
        "{} is enough for {} of {} rounds, and no verdict is possible before {}: all cases take {} for {} rounds. "
        "Take fewer of them (--only), or a larger budget",
        budget_text(plan), fit, m.rounds, least, show_seconds(ends_s[said - 1]), said);
  }
  const int rounds = std::max(fit, 1);
  const double total_s = ends_s[rounds - 1];
  const auto& cost = plan.experiment.cost;
  const std::string price =
      cost && cost->per_gpu_hour > 0
          ? fmt::format(", {:.0f} {}", total_s * plan.ranks / 3600 * cost->per_gpu_hour, cost->currency)
          : "";
  PlannedTime time{
      fit,
      {fmt::format("time: {}{}, a block of the baseline {}, {}", show_seconds(total_s),
                   rounds < m.rounds ? fmt::format(" for {} of {} rounds", rounds, m.rounds) : "",
                   show_seconds(block_s(baseline_s->second, steps)), known.source),
       fmt::format("{}{}; under Slurm, ask for --time={}", hours_text(plan, total_s), price, slurm_time(total_s))}};
  if (m.auto_steps) time.lines.push_back(fmt::format("steps: auto gives {} timed steps per block", timed_steps));
  // Reasons for the sweep to end before its last round.
  if (m.time_budget_s > 0)
    time.lines.push_back(fmt::format("{} is enough for {} of {} rounds", budget_text(plan), fit, m.rounds));
  if (!m.looks.empty()) {
    time.lines.push_back(
        fmt::format("{} if everything is settled by the first look", show_seconds(ends_s[m.looks.front() - 1])));
  }
  return time;
}

}  // namespace harness::cli
