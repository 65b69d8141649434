#include "cli/predicted.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/prepare.h"
#include "report/table.h"
#include "sim/known.h"
#include "sim/link_time.h"
#include "workloads/workload.h"

namespace harness::cli {
namespace {

// Of a change, for a person: a tone would say more than it knows.
std::string change_text(double change, const sim::Trust& trust) {
  return sim::too_close_to_call(change, trust) ? fmt::format("{:+.1f} %, too close to call", 100 * change)
                                               : fmt::format("{:+.1f} %", 100 * change);
}

// Of all cases, each once: "2 of 9 cases: …" where it is not all of them.
std::string errors_text(const std::vector<PredictedCase>& predicted) {
  std::vector<std::pair<std::string, int>> warnings;
  int cases = 0;
  const sim::Trust* trust = nullptr;
  for (const PredictedCase& p : predicted) {
    if (!p.step) continue;
    ++cases;
    trust = &p.trust;
    for (const std::string& w : p.trust.warnings) {
      const auto known = std::ranges::find(warnings, w, &std::pair<std::string, int>::first);
      if (known == warnings.end()) {
        warnings.emplace_back(w, 1);
      } else {
        ++known->second;
      }
    }
  }
  if (trust == nullptr) return "";
  std::string text = trust->expected_error > 0
                         ? fmt::format(
                               "expected error: {} of a step (9 of 10 within {}), {} of a change (9 of 10 within "
                               "{}); a smaller change is too close to call.\n",
                               percent(trust->expected_error), percent(trust->expected_error_90),
                               percent(trust->expected_change_error), percent(trust->expected_change_error_90))
                         : "expected error: not known; nothing was compared with this calibration.\n";
  for (const auto& [warning, count] : warnings)
    text += count == cases ? fmt::format("warning: {}\n", warning)
                           : fmt::format("warning, {} of {} cases: {}\n", count, cases, warning);
  return text;
}

}  // namespace

machine::Topology planned_topology(const config::Experiment& e, int ranks, int ranks_per_node) {
  constexpr int usual = 8;
  const int gpus = e.hardware ? e.hardware->gpus_of_node : 0;
  if (config::traits_of(e.backend).predicts() && gpus > 0 && ranks_per_node > gpus) {
    fail("{} ranks cannot share a node: one of {} has {}; give --ranks-per-node {} or fewer", ranks_per_node,
         e.hardware->name, plural(gpus, "GPU"), gpus);
  }
  if (ranks_per_node == 0 && config::traits_of(e.backend).predicts()) ranks_per_node = gpus > 0 ? gpus : usual;
  return ranks_per_node > 0 ? machine::Topology::node_by_node(ranks, ranks_per_node) : machine::Topology();
}

namespace {

// The shares by which steps are longer than the baseline's, per token where they hold different numbers of them.
void compare_with_baseline(const plan::Plan& plan, std::vector<PredictedCase>& predicted) {
  const auto seconds_of = [&](std::size_t i) {
    const double tokens = plan.cases[i].survey.tokens_per_step;
    return predicted[i].step->step_s / (tokens > 0 ? tokens : 1);
  };
  for (std::size_t i = 1; i < predicted.size(); ++i) {
    if (predicted[0].step && predicted[i].step) predicted[i].change = seconds_of(i) / seconds_of(0) - 1;
  }
}

}  // namespace

std::vector<PredictedCase> predict_cases(const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (!config::traits_of(e.backend).predicts()) return {};
  const sim::Network network = sim::network_of(e, plan.topology.node_of);
  std::vector<PredictedCase> predicted(plan.cases.size());
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    if (!planned.is_possible()) continue;
    if (const auto name = sim::unknown_change(plan.baseline().settings, planned.settings); !name.empty()) {
      predicted[i].unknown = fmt::format("the prediction does not know {}", name);
      continue;
    }
    const program::ProgramSet set = workloads::build_programs(e.model, planned.settings, planned.layout);
    try {
      const sim::Simulation simulation(set, planned.settings, e, network);
      predicted[i].step = sim::predict(simulation);
    } catch (const sim::NotPredicted& why) {
      predicted[i].unknown = why.what();
      continue;
    }
    predicted[i].trust = sim::trust_in(*predicted[i].step, e.model, planned.settings, planned.layout.ranks(),
                                       *e.hardware, *e.calibration);
  }
  compare_with_baseline(plan, predicted);
  return predicted;
}

namespace {

std::string in_words(const config::Jitter& jitter) {
  return fmt::format("{} steps in which what each operation of each rank takes varies by {} (jitter, seed {})",
                     sim::jitter_draws, percent(jitter.per_operation), jitter.seed);
}

// "1.262 s +/- 0.004 s, +1.1 %": mean, deviation, and against the step without jitter.
std::string jittered_text(const sim::Prediction& p) {
  return fmt::format("{} +/- {}, {:+.1f} %", show_seconds(p.jittered->mean_s()),
                     show_seconds(p.jittered->deviation_s()), 100 * (p.jittered->mean_s() / p.step_s - 1));
}

}  // namespace

void leave_out_unpredicted(plan::Plan& plan) {
  const std::vector<PredictedCase> predicted = predict_cases(plan);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (!predicted[i].unknown.empty()) plan.cases[i].impossible = predicted[i].unknown;
    if (predicted[i].step && predicted[i].step->jittered) {
      plan.cases[i].notes.push_back(fmt::format("with jitter a step takes {}: mean and deviation of {}",
                                                jittered_text(*predicted[i].step), in_words(plan.experiment.jitter)));
    }
  }
  plan::require_baseline(plan);
  plan::schedule_blocks(plan);
}

std::string predictions_text(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  const config::Experiment& e = p.experiment;
  std::set<std::string> unknown;
  report::Table table;
  table.columns = {{"case", true}, {"predicted step"}, {"change"}, {"MFU"}, {"computing"}, {"exposed"}, {"idle"}};
  if (e.jitter.on()) table.columns.push_back({"with jitter"});
  for (std::size_t i = 0; i < p.cases.size(); ++i) {
    if (!p.cases[i].is_possible()) continue;
    if (!predicted[i].step) {
      table.rows.push_back({p.cases[i].name, "?"});
      table.rows.back().resize(table.columns.size());
      unknown.insert(predicted[i].unknown);
      continue;
    }
    const sim::Prediction& x = *predicted[i].step;
    const double peak = plan::configured_peak(e, p.cases[i].settings.precision).flops;
    const double flop = p.cases[i].survey.flop.model;
    const auto share = [&](double seconds) { return percent(seconds / x.step_s); };
    table.rows.push_back({p.cases[i].name, show_seconds(x.step_s),
                          predicted[i].change ? change_text(*predicted[i].change, predicted[i].trust) : "",
                          peak > 0 && flop > 0 ? percent(flop / (x.step_s * p.cases[i].layout.ranks() * peak)) : "",
                          share(x.split.compute_s), share(x.split.exposed_s), share(x.split.idle_s)});
    if (x.jittered) table.rows.back().emplace_back(jittered_text(x));
  }
  std::string text =
      fmt::format("\npredicted, not measured: {} ({}), {} on {}\n{}", e.calibration->name, e.calibration->source,
                  plural(p.ranks, "rank"), plural(p.topology.nodes(), "node"), table.text());
  text +=
      "computing, exposed, idle: shares of the step, mean over the ranks. exposed: communication and no computation.\n";
  if (e.jitter.on()) {
    text += fmt::format("with jitter: mean, deviation and difference of {}. All other numbers are without it.\n",
                        in_words(e.jitter));
  }
  if (predicted[0].step)
    text += fmt::format("critical path of the baseline: {}\n", in_words(predicted[0].step->critical_path));
  text += errors_text(predicted);
  for (const std::string& reason : unknown) text += "?: " + reason + "\n";
  return text;
}

}  // namespace harness::cli
