#include "cli/plan_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analysis/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/prepare.h"
#include "store/result_file.h"

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
  std::string workload = planned_workload;  // files that do not say are older than the choice, or hold no case
  if (const store::ResultCase* baseline = earlier.baseline()) workload = earlier.setting(*baseline, "workload");
  if (workload.empty()) workload = "gpt";
  compare("workload", workload, planned_workload, differences);
  if (workload == planned_workload && workload == "gpt") {
    compare<std::int64_t>("layers", earlier.layers, e.model.layers, differences);
    compare<std::int64_t>("hidden", earlier.hidden, e.model.hidden, differences);
    compare<std::int64_t>("heads", earlier.heads, e.model.heads, differences);
    compare<std::int64_t>("vocab", earlier.vocab, e.model.vocab, differences);
    compare<std::int64_t>("sequence", earlier.sequence, e.model.sequence, differences);
  }
  if (differences.empty()) return;
  fail(
      "--like {}: its times say nothing about this plan ({}); give a result with the same backend, workload, model and "
      "number of ranks, or leave --like out",
      quote(like), join(differences, "; "));
}

// What a case's block costs.
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

Costs assumed_costs(const plan::Plan& plan, double mfu, double set_up_s) {
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

/// What the blocks of a plan take, by what is known of each case.
class Estimate {
 public:
  Estimate(const plan::Plan& plan, const Costs& costs) : plan_(plan), measure_(plan.experiment.measure) {
    for (const plan::PlannedCase& planned : plan.cases) {
      const auto known = costs.find(planned.name);
      if (!planned.is_possible() || planned.is_control || known == costs.end()) continue;
      preparation_s_ += known->second.block_s(measure_.warmup_steps + 1);
    }
    round_ends_s_.assign(measure_.rounds, preparation_s_);
    for (const plan::Slot& slot : plan.schedule) {
      const plan::PlannedCase& planned = plan.cases[slot.case_index];
      const auto known = costs.find(planned.name);
      if (known == costs.end()) {
        ++unknown_;
        continue;
      }
      const double seconds = known->second.block_s(measure_.warmup_steps + measure_.steps);
      by_case_[planned.name] += seconds;
      for (int round = slot.round; round < measure_.rounds; ++round) round_ends_s_[round] += seconds;
    }
  }

  std::string text(const std::string& source) const {
    const double total_s = round_ends_s_.back();
    const bool gpus = plan_.experiment.backend == config::BackendKind::cuda;
    const double hours = total_s * plan_.ranks / 3600;
    std::string text =
        fmt::format("\ntime: {}, {}{}\n", show_seconds(total_s), source,
                    unknown_ > 0 ? fmt::format("; without {} blocks of cases that are not known", unknown_) : "");
    text += fmt::format("  {:.3g} {} hours", hours, gpus ? "GPU" : "rank");
    if (plan_.experiment.cost && plan_.experiment.cost->per_gpu_hour > 0) {
      text += fmt::format(", {:.0f} {}", hours * plan_.experiment.cost->per_gpu_hour, plan_.experiment.cost->currency);
    }
    text += fmt::format("; under Slurm, ask for --time={}\n", slurm_time(total_s));
    text += fmt::format("  preparation {} (a profiled step of each case{}), a round {}\n", show_seconds(preparation_s_),
                        gpus ? "; without the tuning of products" : "",
                        show_seconds((total_s - preparation_s_) / measure_.rounds));
    return text + longest_cases() + limits();
  }

 private:
  std::string longest_cases() const {
    std::vector<std::pair<double, std::string>> cases;
    for (const auto& [name, seconds] : by_case_) cases.emplace_back(seconds, name);
    std::ranges::sort(cases, std::greater<>());
    constexpr std::size_t max_shown = 4;
    std::string text = "  longest:";
    for (std::size_t i = 0; i < std::min(cases.size(), max_shown); ++i)
      text += fmt::format("{} {} {}", i > 0 ? ";" : "", cases[i].second, show_seconds(cases[i].first));
    return cases.empty() ? "" : text + " (all its blocks)\n";
  }

  // What may end the sweep before its last round.
  std::string limits() const {
    std::string text;
    if (measure_.time_budget_s > 0) {
      const auto fit = std::ranges::count_if(round_ends_s_, [&](double s) { return s <= measure_.time_budget_s; });
      text += fmt::format("  the time budget of {} is enough for {} of {} rounds\n",
                          show_seconds(measure_.time_budget_s), fit, measure_.rounds);
    }
    if (!measure_.looks.empty()) {
      text += fmt::format("  {} if everything is settled by the first look\n",
                          show_seconds(round_ends_s_[measure_.looks.front() - 1]));
    }
    return text;
  }

  const plan::Plan& plan_;
  const config::Measure& measure_;
  double preparation_s_ = 0;
  std::vector<double> round_ends_s_;  // from the start of the sweep
  std::map<std::string, double> by_case_;
  int unknown_ = 0;
};

constexpr double usual_set_up_s = 30;

}  // namespace

std::string time_text(const plan::Plan& plan, const TimeOptions& options) {
  if (!options.like.empty()) {
    if (!options.assume_mfu.empty() || !options.assume_setup.empty())
      fail("--like takes times from a result, --assume-mfu and --assume-setup do without; give one of the two");
    const store::Result earlier = store::read_result(options.like, {.rank_seconds = false, .timeline = false});
    require_alike(plan, earlier, options.like);
    return Estimate(plan, measured_costs(earlier)).text("estimated from " + options.like);
  }
  if (options.assume_mfu.empty()) {
    return "\ntime: unknown before the first sweep; --like RESULT.h5 estimates it from an earlier result, --assume-mfu "
           "40% "
           "from an MFU\n";
  }
  const double mfu = parse_share(options.assume_mfu);
  if (!(mfu > 0 && mfu <= 1)) fail("--assume-mfu: found {}; allowed: above 0 % and up to 100 %", options.assume_mfu);
  const double set_up_s = options.assume_setup.empty() ? usual_set_up_s : parse_seconds(options.assume_setup);
  return Estimate(plan, assumed_costs(plan, mfu, set_up_s))
      .text(fmt::format("if every case has an MFU of {:.3g} % and a block takes {} to set up", 100 * mfu,
                        show_seconds(set_up_s)));
}

}  // namespace harness::cli
