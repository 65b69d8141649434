#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/plan_document.h"
#include "config/model.h"
#include "plan/prepare.h"
#include "report/words.h"
#include "store/result_file.h"
#include "sweep/planned_result.h"
#include "sweep/untimed.h"

namespace harness::cli {
namespace {

template <class Value>
void compare(const char* what, const Value& measured, const Value& planned, std::vector<std::string>& differences) {
  if (measured != planned) differences.push_back(fmt::format("{} {}, here {}", what, measured, planned));
}

void require_alike(const plan::Plan& plan, const store::Result& earlier, const std::string& like) {
  const config::Experiment& e = plan.experiment;
  std::vector<std::string> differences;
  compare<std::string>("backend", earlier.backend, config::name_of(e.backend), differences);
  compare("ranks", earlier.ranks, plan.ranks, differences);
  const std::string planned_workload(e.baseline.workload);
  const std::string workload = earlier.baseline() == nullptr ? planned_workload : analysis::workload_of(earlier);
  compare("workload", workload, planned_workload, differences);
  if (workload == planned_workload && workload == "gpt") {
    const NameValues measured = config::texts_of(earlier.model), planned = config::texts_of(e.model);
    for (std::size_t i = 0; i < planned.size(); ++i)
      compare(planned[i].first.c_str(), measured[i].second, planned[i].second, differences);
  }
  if (differences.empty()) return;
  fail(
      "--like {}: its times say nothing about this plan ({}); give a result with the same backend, workload, model and "
      "number of ranks, or leave --like out",
      quote(like), join(differences, "; "));
}

bool has_gpus(const plan::Plan& plan) {
  return config::traits_of(plan.experiment.backend).ranks_are_gpus;
}
std::string hours_name(const plan::Plan& plan) {
  return has_gpus(plan) ? "GPU hours" : "rank hours";
}

std::string budget_text(const plan::Plan& plan) {
  const double budget_s = plan.experiment.measure.time_budget_s;
  return fmt::format("the time budget of {} ({:.3g} {} on {})", show_seconds(budget_s), budget_s * plan.ranks / 3600,
                     hours_name(plan), plural(plan.ranks, "rank"));
}

bool has_flop(const plan::Plan& plan) {
  return std::ranges::any_of(plan.cases, [](const plan::PlannedCase& c) { return c.survey.flop.model > 0; });
}

std::vector<std::string> unknown_time(const plan::Plan& plan) {
  const bool bounded = plan.experiment.measure.time_budget_s > 0;
  return {fmt::format("time: {} before the first sweep",
                      bounded ? fmt::format("at most {}; nothing closer is known", budget_text(plan)) : "unknown"),
          sources_of_time(plan) + " says more"};
}

// The cost of a case's block.
struct BlockCost {
  double set_up_s = 0, step_s = 0;

  double block_s(int steps) const { return set_up_s + step_s * steps; }
};
using Costs = std::map<std::string, BlockCost>;  // by case

Costs measured_costs(const store::Result& earlier) {
  Costs costs;
  for (const analysis::CaseSummary& c : analysis::summarise(earlier).cases) {
    double set_up_s = 0;
    int n = 0;
    for (const store::ResultBlock& b : earlier.blocks) {
      if (b.case_index != c.case_index || b.status != store::BlockStatus::ok) continue;
      set_up_s += b.setup_s;
      ++n;
    }
    if (n > 0) costs[c.name] = {set_up_s / n, c.step_seconds};
  }
  return costs;
}

// Throws Error where no case has model FLOP, which an MFU is a share of.
Costs assumed_costs(const plan::Plan& plan, double mfu, double set_up_s) {
  if (!has_flop(plan)) {
    fail(
        "--assume-mfu: the steps of workload {} have no FLOP, so an MFU says nothing about their time; --like "
        "RESULT.h5 takes it from an earlier result",
        quote(plan.experiment.baseline.workload));
  }
  Costs costs;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    const double peak = plan::configured_peak(plan.experiment, planned.settings.precision).flops;
    if (!(peak > 0))
      fail("--assume-mfu needs the peak of a rank: add `hardware: FILE` or `peak_flops` to the configuration");
    if (!(planned.survey.flop.model > 0)) continue;
    costs[planned.name] = {set_up_s, planned.survey.flop.model / (planned.layout.ranks() * peak * mfu)};
  }
  return costs;
}

// "1-02:30:00", as sbatch reads it: a tenth more, and five minutes, in whole minutes.
std::string slurm_time(double seconds) {
  const auto minutes = static_cast<std::int64_t>(std::ceil((1.1 * seconds + 300) / 60));
  const std::string hours = fmt::format("{:02}:{:02}:00", minutes / 60 % 24, minutes % 60);
  return minutes < 24 * 60 ? hours : fmt::format("{}-{}", minutes / (24 * 60), hours);
}

// The time that the blocks of a plan take, from what is known of each case.
class Estimate {
 public:
  Estimate(const plan::Plan& plan, const Costs& costs, std::string source)
      : plan_(plan), measure_(plan.experiment.measure), source_(std::move(source)), steps_(steps_of(plan, costs)) {
    for (const plan::PlannedCase& planned : plan.cases) {
      const auto known = costs.find(planned.name);
      if (!planned.is_possible() || known == costs.end()) continue;
      const double block_s = known->second.block_s(measure_.warmup_steps + steps_);
      blocks_.push_back({planned.name, block_s});
      preparation_s_ += preparation_of(planned, known->second);
      step_s_[planned.name] = known->second.step_s;
    }
    if (blocks_.empty()) fail("the time of no case of this plan is known: {}", source_);
    double end_s = preparation_s_;
    round_ends_s_.assign(measure_.rounds, end_s);
    timed_s_.assign(measure_.rounds, 0);
    for (const plan::Slot& slot : plan.schedule) {
      round_ends_s_[slot.round] = end_s;  // also of a round of which no block is known
      timed_s_[slot.round] = timed_total_s_;
      const auto known = std::ranges::find(blocks_, plan.cases[slot.case_index].name, &CaseBlock::name);
      if (known == blocks_.end()) {
        ++unknown_;
        continue;
      }
      end_s += known->seconds;
      timed_total_s_ += steps_ * step_s_[known->name];
      round_ends_s_[slot.round] = end_s;
      timed_s_[slot.round] = timed_total_s_;
    }
  }

  PlannedTime result() const {
    const int fit = rounds_that_fit();
    const int least = measure_.looks.empty() ? analysis::least_pairs : measure_.looks.front();
    const bool has_verdicts = analysis::declared_comparisons(sweep::planned_result(plan_)) > 0;
    if (fit < std::min(least, measure_.rounds) && has_verdicts) {
      fail(
          "{} is enough for {} of {} rounds, and no verdict is possible before {}: all cases take {} for {} rounds. "
          "Take fewer of them (--only), or a larger budget",
          budget_text(plan_), fit, measure_.rounds, least,
          show_seconds(round_ends_s_[std::min(least, measure_.rounds) - 1]), std::min(least, measure_.rounds));
    }
    return {fit, lines(std::max(fit, 1))};
  }

  std::vector<std::string> in_brief() const {
    const CaseBlock& first = blocks_.front();
    const double total_s = round_ends_s_.back();
    const int fit = rounds_that_fit();
    const std::string limit = fit < measure_.rounds ? fmt::format("; {} is enough for {} of {} rounds",
                                                                  budget_text(plan_), fit, measure_.rounds)
                                                    : "";
    return {fmt::format("time: a block {}, the sweep {} ({:.3g} {}), {} ({} {}){}", show_seconds(first.seconds),
                        show_seconds(total_s), total_s * plan_.ranks / 3600, hours_name(plan_), source_, first.name,
                        show_seconds(step_s_.at(first.name)), limit),
            sources_of_time(plan_) + " says more"};
  }

 private:
  struct CaseBlock {
    std::string name;
    double seconds = 0;
  };
  static int steps_of(const plan::Plan& plan, const Costs& costs) {
    const config::Measure& measure = plan.experiment.measure;
    const auto baseline = costs.find(plan.baseline().name);
    if (!measure.auto_steps || baseline == costs.end() || !(baseline->second.step_s > 0)) return measure.steps;
    return sweep::auto_steps(baseline->second.set_up_s, baseline->second.step_s, measure.warmup_steps);
  }

  // Untimed workers before round 1: one records the timeline; on GPUs one tunes, and one reads NCCL's log.
  double preparation_of(const plan::PlannedCase& planned, const BlockCost& cost) const {
    if (planned.is_copy) return 0;
    const bool predicts = config::traits_of(plan_.experiment.backend).predicts();
    double seconds = cost.block_s(measure_.warmup_steps + (predicts ? 1 : sweep::profiled_steps));
    if (!has_gpus(plan_)) return seconds;
    if (!measure_.share_gpus) seconds += cost.set_up_s;
    if (planned.layout.ranks() > 1) seconds += cost.block_s(1);
    return seconds;
  }

  int rounds_that_fit() const {
    if (measure_.time_budget_s <= 0) return measure_.rounds;
    return static_cast<int>(
        std::ranges::count_if(round_ends_s_, [&](double s) { return s <= measure_.time_budget_s; }));
  }

  std::vector<std::string> lines(int rounds) const {
    const double total_s = round_ends_s_[rounds - 1];
    const double hours = total_s * plan_.ranks / 3600;
    const auto& cost = plan_.experiment.cost;
    const std::string price =
        cost && cost->per_gpu_hour > 0 ? fmt::format(", {:.0f} {}", hours * cost->per_gpu_hour, cost->currency) : "";
    std::vector<std::string> lines{
        fmt::format("time: {}{}, {}{}", show_seconds(total_s),
                    rounds < measure_.rounds ? fmt::format(" for {} of {} rounds", rounds, measure_.rounds) : "",
                    source_,
                    unknown_ > 0 ? fmt::format("; without {} blocks of cases that are not known", unknown_) : ""),
        fmt::format("{:.3g} {}{}; under Slurm, ask for --time={}", hours, hours_name(plan_), price,
                    slurm_time(total_s))};
    if (measure_.auto_steps) lines.push_back(fmt::format("steps: auto gives {} timed steps per block", steps_));
    const double share = total_s > 0 ? timed_s_[rounds - 1] / total_s : 0;
    lines.push_back(
        fmt::format("{:.0f} % of them are timed steps, {:.0f} % preparation, {:.0f} % set-up and warm-up of blocks",
                    100 * share, 100 * preparation_s_ / total_s, 100 * (1 - share - preparation_s_ / total_s)));
    lines.push_back(
        fmt::format("preparation {} (for each case profiled steps{}), a round {}", show_seconds(preparation_s_),
                    has_gpus(plan_) ? ", what NCCL does, and tuning, which takes longer the first time" : "",
                    show_seconds((total_s - preparation_s_) / rounds)));
    lines.push_back(longest_cases(rounds));
    // Reasons to end the sweep before its last round.
    if (measure_.time_budget_s > 0) {
      lines.push_back(
          fmt::format("{} is enough for {} of {} rounds", budget_text(plan_), rounds_that_fit(), measure_.rounds));
    }
    if (!measure_.looks.empty()) {
      lines.push_back(fmt::format("{} if everything is settled by the first look",
                                  show_seconds(round_ends_s_[measure_.looks.front() - 1])));
    }
    return lines;
  }

  std::string longest_cases(int rounds) const {
    std::vector<std::pair<double, std::string>> cases;
    for (const CaseBlock& block : blocks_) cases.emplace_back(rounds * block.seconds, block.name);
    std::ranges::sort(cases, std::greater<>());
    constexpr std::size_t max_shown = 4;
    cases.resize(std::min(cases.size(), max_shown));
    std::vector<std::string> words;
    for (const auto& [seconds, name] : cases)
      words.push_back(fmt::format("{} {}", report::short_name(name), show_seconds(seconds)));
    return fmt::format("longest: {} (all its blocks)", join(words, "; "));
  }

  const plan::Plan& plan_;
  const config::Measure& measure_;
  const std::string source_;
  const int steps_;  // timed, of a block
  std::vector<CaseBlock> blocks_;
  std::map<std::string, double> step_s_;  // by case
  double preparation_s_ = 0, timed_total_s_ = 0;
  std::vector<double> round_ends_s_;  // from the start of the sweep
  std::vector<double> timed_s_;       // of the timed steps, up to the end of each round
  int unknown_ = 0;
};

constexpr double usual_set_up_s = 30;

}  // namespace

std::string sources_of_time(const plan::Plan& plan) {
  std::string like = "an earlier result (--like RESULT.h5)";
  if (!has_flop(plan)) return like;
  const bool has_peaks = std::ranges::all_of(plan.cases, [&](const plan::PlannedCase& c) {
    return !c.is_possible() || plan::configured_peak(plan.experiment, c.settings.precision).flops > 0;
  });
  return fmt::format("{} or an MFU (--assume-mfu 40%{})", like,
                     has_peaks ? "" : ", with `hardware: FILE` or `peak_flops` in the configuration");
}

std::vector<std::string> expected_time(const plan::Plan& plan, const StepTimes& predicted) {
  Costs costs;
  for (const plan::PlannedCase& planned : plan.cases) {
    const auto known = predicted.find(planned.name);
    if (known != predicted.end()) costs[planned.name] = {usual_set_up_s, known->second};
  }
  if (!costs.contains(plan.baseline().name)) return {};
  return Estimate(plan, costs, "if a step takes what sim expects").in_brief();
}

PlannedTime planned_time(const plan::Plan& plan, const TimeOptions& options) {
  if (!options.like.empty()) {
    if (!options.assume_mfu.empty() || !options.assume_setup.empty())
      fail("--like takes times from a result, --assume-mfu and --assume-setup do without; give one of the two");
    const store::Result earlier = store::read_result(options.like, {.rank_seconds = false, .timeline = false});
    require_alike(plan, earlier, options.like);
    return Estimate(plan, measured_costs(earlier), "estimated from " + options.like).result();
  }
  if (options.assume_mfu.empty()) {
    return {plan.experiment.measure.rounds, unknown_time(plan)};
  }
  const double mfu = option_value("--assume-mfu", options.assume_mfu, parse_share);
  if (!(mfu > 0 && mfu <= 1)) fail("--assume-mfu: found {}; allowed: above 0 % and up to 100 %", options.assume_mfu);
  const double set_up_s = options.assume_setup.empty()
                              ? usual_set_up_s
                              : option_value("--assume-setup", options.assume_setup, parse_seconds);
  if (set_up_s < 0) fail("--assume-setup: found {}; allowed: 0 s or more", options.assume_setup);
  return Estimate(plan, assumed_costs(plan, mfu, set_up_s),
                  fmt::format("if every case has an MFU of {:.3g} % and a block takes {} to set up", 100 * mfu,
                              show_seconds(set_up_s)))
      .result();
}

}  // namespace harness::cli
