#include "plan/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "plan/schedule.h"
#include "plan/why_impossible.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

PlannedCase make_case(const config::Experiment& experiment, int ranks, std::string name, const config::Change* change) {
  PlannedCase c;
  c.name = std::move(name);
  c.settings = change != nullptr ? change->settings : experiment.baseline;
  if (change != nullptr) {
    c.variable = change->variable;
    c.value = change->value;
  }
  Division division = divide_ranks(experiment.model, c.settings, ranks);
  c.layout = division.layout;
  c.impossible = std::move(division.why_impossible);
  if (c.impossible.empty()) c.impossible = why_impossible(c.settings, experiment.hardware);
  if (!c.impossible.empty()) return c;
  c.needs_process = std::ranges::any_of(config::registry(), [&](const config::Variable& variable) {
    return variable.anew != config::Anew::program && variable.print(c.settings) != variable.print(experiment.baseline);
  });
  c.micro_batches = workloads::workload_of(c.settings).micro_batches(c.settings, c.layout);
  if (change == nullptr) return c;

  config::Settings known = c.settings;  // with the number of ranks that it stands for
  known.ranks = c.layout.ranks();
  for (const config::Variable& variable : config::registry()) {
    if (!config::changes(*change, variable, experiment.baseline)) continue;
    const std::string why = variable.without_effect(known);
    if (!why.empty()) c.notes.push_back(fmt::format("{} has no effect: {}", variable.name, why));
  }
  return c;
}

// A list may hold the baseline's value, which is measured as the baseline. Reading a configuration leaves these out,
// but not a number of ranks: what the baseline runs on is known here.
bool is_the_baseline(const config::Experiment& experiment, const config::Change& change, int ranks) {
  const auto of = [&](const config::Settings& settings) { return settings.ranks == 0 ? ranks : settings.ranks; };
  return config::purpose_of(change.variable) == config::Purpose::scale &&
         of(change.settings) == of(experiment.baseline);
}

// Throws if a word of `only` names nothing.
std::set<std::string> checked_selection(const config::Experiment& experiment, const std::vector<std::string>& only) {
  std::vector<std::string> cases{"baseline", "baseline_again"}, variables;
  for (const config::Change& change : experiment.changes) {
    if (!change.from_model.empty()) continue;
    cases.push_back(config::case_name(change));
    if (std::find(variables.begin(), variables.end(), change.variable) == variables.end()) {
      variables.push_back(change.variable);
    }
  }
  std::vector<std::string> known = variables;
  known.insert(known.end(), cases.begin(), cases.end());
  for (const std::string& word : only) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      fail("--only {}: there is no variable and no case of this name; variables: {}; cases: {}{}", word,
           variables.empty() ? "none" : join(variables, ", "), join(cases, ", "), did_you_mean(nearest(word, known)));
    }
  }
  return {only.begin(), only.end()};
}

// Throws if a weight is of a variable that no case changes.
std::vector<Entrant> entrants_of(const Plan& plan) {
  const auto& weights = plan.experiment.measure.weights;
  for (const auto& weight : weights) {
    const std::string& variable = weight.first;
    const bool swept = std::ranges::any_of(plan.experiment.changes,
                                           [&](const config::Change& change) { return change.variable == variable; });
    if (!swept) fail("measure.weight.{}: the sweep does not change this variable; remove the weight", variable);
  }
  std::vector<Entrant> entrants;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& planned = plan.cases[i];
    if (!planned.is_possible()) continue;
    Entrant entrant{i};
    for (const auto& [variable, share] : weights) {
      if (variable == planned.variable) entrant.share = share;
    }
    entrants.push_back(entrant);
  }
  return entrants;
}

// Whether blocks that need no process of their own may follow each other in one: of an operation, whose step is short
// beside the start of a process, yes; of a training step, no.
bool shares_processes(const Plan& plan) {
  const bool operation = plan.experiment.baseline.workload != config::training_workload;
  return operation && std::ranges::none_of(plan.cases, [](const PlannedCase& planned) {
           return planned.is_possible() && planned.needs_process;
         });
}

}  // namespace

void require_baseline(const Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (plan.baseline().is_possible()) return;
  fail("{}: the baseline cannot run on {} ranks: {}", e.baseline_place.empty() ? e.path : e.baseline_place, plan.ranks,
       plan.baseline().impossible);
}

void schedule_blocks(Plan& plan) {
  const config::Measure& measure = plan.experiment.measure;
  plan.schedule = make_schedule(entrants_of(plan), measure.rounds, measure.seed);
  const bool shares = shares_processes(plan);
  for (std::size_t i = 0; i < plan.schedule.size(); ++i) {
    const bool joins = shares && i > 0 && plan.schedule[i].round == plan.schedule[i - 1].round;
    plan.schedule[i].process = joins ? plan.schedule[i - 1].process : static_cast<int>(i);
  }
}

Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only) {
  if (ranks < 1) fail("cannot plan for {} ranks; use 1 rank or more", ranks);
  const std::set<std::string> selection = checked_selection(experiment, only);
  Plan plan;
  plan.experiment = experiment;
  plan.ranks = ranks;
  plan.only = only;
  for (const char* name : {"baseline", "baseline_again"}) {
    plan.cases.push_back(make_case(experiment, ranks, name, nullptr));
    plan.cases.back().is_control = plan.cases.size() > 1;
  }
  require_baseline(plan);
  for (const config::Change& change : experiment.changes) {
    if (!change.from_model.empty() || is_the_baseline(experiment, change, ranks)) continue;
    const std::string name = config::case_name(change);
    if (!only.empty() && !selection.contains(name) && !selection.contains(change.variable)) continue;
    plan.cases.push_back(make_case(experiment, ranks, name, &change));
  }
  schedule_blocks(plan);
  return plan;
}

}  // namespace harness::plan
