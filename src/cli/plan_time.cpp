#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/estimator.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "plan/plan.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"

namespace harness::cli {
namespace {

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

// "1-02:30:00", as sbatch reads it: a tenth more, and five minutes, in whole minutes.
std::string slurm_time(double seconds) {
  const auto minutes = static_cast<std::int64_t>(std::ceil((1.1 * seconds + 300) / 60));
  const std::string hours = fmt::format("{:02}:{:02}:00", minutes / 60 % 24, minutes % 60);
  return minutes < 24 * 60 ? hours : fmt::format("{}-{}", minutes / (24 * 60), hours);
}

class Estimate {
 public:
  Estimate(const plan::Plan& plan, const KnownSteps& known)
      : plan_(plan), measure_(plan.experiment.measure), known_(known), steps_(steps_of_block()) {
    double end_s = 0;
    for (const plan::PlannedCase& planned : plan.cases) {
      const auto step = known.seconds.find(planned.name);
      if (!planned.is_possible() || step == known.seconds.end()) continue;
      blocks_.push_back({planned.name, block_s(step->second, measure_.warmup_steps + steps_)});
      end_s += preparation_of(planned, step->second);
    }
    round_ends_s_.assign(measure_.rounds, end_s);
    for (const plan::Slot& slot : plan.schedule) {
      const auto block = std::ranges::find(blocks_, plan.cases[slot.case_index].name, &CaseBlock::name);
      if (block != blocks_.end()) end_s += block->seconds;
      round_ends_s_[slot.round] = end_s;
    }
  }

  // Throws Error where the stated steps leave no round with a verdict.
  PlannedTime result() const {
    const auto fit = static_cast<int>(std::ranges::count_if(
        round_ends_s_, [&](double s) { return measure_.time_budget_s <= 0 || s <= measure_.time_budget_s; }));
    const int least = measure_.looks.empty() ? analysis::least_pairs : measure_.looks.front();
    const bool has_verdicts = analysis::declared_comparisons(sweep::planned_result(plan_)) > 0;
    if (known_.is_stated && fit < std::min(least, measure_.rounds) && has_verdicts) {
      fail(
          "{} is enough for {} of {} rounds, and no verdict is possible before {}: all cases take {} for {} rounds. "
          "Take fewer of them (--only), or a larger budget",
          budget_text(plan_), fit, measure_.rounds, least,
          show_seconds(round_ends_s_[std::min(least, measure_.rounds) - 1]), std::min(least, measure_.rounds));
    }
    return {fit, lines(fit)};
  }

 private:
  struct CaseBlock {
    std::string name;
    double seconds = 0;
  };
  double block_s(double step_s, int steps) const { return known_.set_up_s + step_s * steps; }

  int steps_of_block() const {
    const auto baseline = known_.seconds.find(plan_.baseline().name);
    if (!measure_.auto_steps || baseline == known_.seconds.end()) return measure_.steps;
    return sweep::auto_steps(known_.set_up_s, baseline->second, measure_.warmup_steps);
  }

  // Untimed workers before round 1: one records the timeline; on GPUs one tunes, and one reads NCCL's log.
  double preparation_of(const plan::PlannedCase& planned, double step_s) const {
    if (planned.is_copy) return 0;
    double seconds = block_s(step_s, measure_.warmup_steps + sweep::profiled_steps);
    if (!has_gpus(plan_)) return seconds;
    if (!measure_.share_gpus) seconds += known_.set_up_s;
    if (planned.layout.ranks() > 1) seconds += block_s(step_s, 1);
    return seconds;
  }

  // `fit`: the rounds that the time budget is enough for.
  std::vector<std::string> lines(int fit) const {
    const int rounds = std::max(fit, 1);
    const double total_s = round_ends_s_[rounds - 1];
    const auto& cost = plan_.experiment.cost;
    const std::string price =
        cost && cost->per_gpu_hour > 0
            ? fmt::format(", {:.0f} {}", total_s * plan_.ranks / 3600 * cost->per_gpu_hour, cost->currency)
            : "";
    std::vector<std::string> lines{
        fmt::format("time: {}{}, a block of the baseline {}, {}", show_seconds(total_s),
                    rounds < measure_.rounds ? fmt::format(" for {} of {} rounds", rounds, measure_.rounds) : "",
                    show_seconds(blocks_.front().seconds), known_.source),
        fmt::format("{}{}; under Slurm, ask for --time={}", hours_text(plan_, total_s), price, slurm_time(total_s))};
    if (measure_.auto_steps) lines.push_back(fmt::format("steps: auto gives {} timed steps per block", steps_));
    // Reasons to end the sweep before its last round.
    if (measure_.time_budget_s > 0)
      lines.push_back(fmt::format("{} is enough for {} of {} rounds", budget_text(plan_), fit, measure_.rounds));
    if (!measure_.looks.empty()) {
      lines.push_back(fmt::format("{} if everything is settled by the first look",
                                  show_seconds(round_ends_s_[measure_.looks.front() - 1])));
    }
    return lines;
  }

  const plan::Plan& plan_;
  const config::Measure& measure_;
  const KnownSteps& known_;
  const int steps_;  // timed, of a block
  std::vector<CaseBlock> blocks_;
  std::vector<double> round_ends_s_;  // from the start of the sweep
};

}  // namespace

std::string source_of_time(const plan::Plan& plan) {
  const bool has_peaks = std::ranges::all_of(plan.cases, [&](const plan::PlannedCase& c) {
    return !c.is_possible() || plan::configured_peak(plan.experiment, c.settings.precision).flops > 0;
  });
  return has_peaks ? "an MFU (--assume-mfu 40%)"
                   : "an MFU (--assume-mfu 40%, with `hardware: FILE` or `peak_flops` in the configuration)";
}

KnownSteps assumed_steps(const plan::Plan& plan, const std::string& assume_mfu, const std::string& assume_setup) {
  KnownSteps known;
  known.is_stated = true;
  const double mfu = option_value("--assume-mfu", assume_mfu, parse_share);
  if (!(mfu > 0 && mfu <= 1)) fail("--assume-mfu: found {}; allowed: above 0 % and up to 100 %", assume_mfu);
  if (!assume_setup.empty()) known.set_up_s = option_value("--assume-setup", assume_setup, parse_seconds);
  if (known.set_up_s < 0) fail("--assume-setup: found {}; allowed: 0 s or more", assume_setup);
  if (!has_flop(plan)) {
    fail("--assume-mfu: the steps of workload {} have no FLOP, so an MFU says nothing about their time",
         quote(plan.experiment.baseline.workload));
  }
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    const double peak = plan::configured_peak(plan.experiment, planned.settings.precision).flops;
    if (!(peak > 0))
      fail("--assume-mfu needs the peak of a rank: add `hardware: FILE` or `peak_flops` to the configuration");
    if (planned.survey.flop.model > 0)
      known.seconds[planned.name] = planned.survey.flop.model / (planned.layout.ranks() * peak * mfu);
  }
  known.source = fmt::format("if every case has an MFU of {:.3g} % and a block takes {} to set up", 100 * mfu,
                             show_seconds(known.set_up_s));
  return known;
}

PlannedTime planned_time(const plan::Plan& plan, const KnownSteps& known) {
  return known.seconds.contains(plan.baseline().name) ? Estimate(plan, known).result() : unknown_time(plan);
}

}  // namespace harness::cli
