#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/environment.h"
#include "config/experiment.h"
#include "plan/schedule.h"
#include "plan/why_impossible.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

PlannedCase make_case(const Plan& plan, std::string name, const config::Change* change) {
  const config::Experiment& experiment = plan.experiment;
  PlannedCase c;
  c.name = std::move(name);
  c.settings = change != nullptr ? change->settings : experiment.baseline;
  if (change != nullptr) {
    c.variable = change->variable;
    c.value = change->value;
  }
  c.needs_process = std::ranges::any_of(config::registry(), [&](const config::Variable& variable) {
    return variable.rebuild != config::Rebuild::program &&
           variable.print(c.settings) != variable.print(experiment.baseline);
  });
  Division division =
      divide_ranks(experiment.model, c.settings, plan.ranks, under_faults(experiment, c.settings, plan.topology));
  c.layout = division.layout;
  c.impossible = std::move(division.why_impossible);
  if (c.impossible.empty()) c.impossible = why_impossible(c.settings, experiment.hardware);
  if (!c.impossible.empty()) return c;
  c.micro_batches = workloads::workload_of(c.settings).micro_batches(c.settings, c.layout);
  if (change == nullptr) return c;

  config::Settings known = c.settings;  // with the number of ranks that it stands for, and where they stand
  known.ranks = c.layout.ranks();
  known.layout.replicas_of_node = c.layout.replicas_of_node;
  for (const config::Variable& variable : config::registry()) {
    if (!config::changes(*change, variable, experiment.baseline)) continue;
    const std::string why = variable.without_effect(known);
    if (why.empty()) continue;
    // The baseline's value may do something that this one then takes away.
    const bool was_idle = !variable.without_effect(experiment.baseline).empty();
    c.is_alike = c.is_alike || was_idle;
    c.notes.push_back(was_idle ? fmt::format("{} has no effect: {}", variable.name, why)
                               : fmt::format("{}={} does nothing here, unlike {}: {}", variable.name,
                                             variable.print(c.settings), variable.print(experiment.baseline), why));
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
  known.emplace_back("baseline_alone");  // it depends on the selection whether there is one
  for (const std::string& word : only) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      fail("--only {}: there is no variable and no case of this name; variables: {}; cases: {}{}", word,
           variables.empty() ? "none" : join(variables, ", "), join(cases, ", "), did_you_mean(nearest(word, known)));
    }
  }
  return {only.begin(), only.end()};
}

bool runs_alone(const PlannedCase& planned) {
  return planned.is_possible() && planned.needs_process;
}
bool may_have_company(const PlannedCase& planned) {
  return planned.is_possible() && !planned.needs_process;
}

// Only blocks of an operation, whose step is short beside the start of a process, run after each other in one.
bool may_share(const Plan& plan) {
  const bool operation = plan.experiment.baseline.workload != config::training_workload;
  return operation && plan.processes == Processes::as_needed;
}

// Where some cases share processes and others need their own, the latter have a baseline of their kind.
void add_baseline_alone(Plan& plan) {
  constexpr std::size_t place = 2;  // after the baseline and its copy
  const auto changes = std::span(plan.cases).subspan(place);
  const bool mixed = std::ranges::any_of(changes, runs_alone) && std::ranges::any_of(changes, may_have_company);
  if (!mixed || !may_share(plan) || !plan.experiment.ladder.empty()) return;
  for (PlannedCase& planned : changes) planned.reference = planned.needs_process ? place : 0;
  PlannedCase alone = plan.baseline();
  alone.name = "baseline_alone";
  alone.is_copy = true;
  alone.needs_process = true;
  alone.reference = place;
  plan.cases.insert(plan.cases.begin() + place, std::move(alone));
}

// It stays in the plan without anything to compare where the cases that it is for turn out not to fit.
void refuse_lone_baseline(Plan& plan) {
  for (std::size_t i = 1; i < plan.cases.size(); ++i) {
    if (plan.cases[i].reference != i) continue;
    const auto compared = std::ranges::count_if(
        plan.cases, [&](const PlannedCase& planned) { return planned.is_possible() && planned.reference == i; });
    if (compared == 1) plan.cases[i].impossible = "no case that it would be compared with can run here";
  }
}

// The cases that are to run, by the process that they share. Throws if a weight is of a variable that no case changes.
std::vector<EntrantSet> sets_of(const Plan& plan) {
  const auto& weights = plan.experiment.measure.weights;
  for (const auto& weight : weights) {
    const std::string& variable = weight.first;
    const bool swept = std::ranges::any_of(plan.experiment.changes,
                                           [&](const config::Change& change) { return change.variable == variable; });
    if (!swept) fail("measure.weight.{}: the sweep does not change this variable; remove the weight", variable);
  }
  const bool mixed = std::ranges::any_of(plan.cases, [](const PlannedCase& planned) { return planned.reference > 0; });
  const bool shares = may_share(plan) && (mixed || std::ranges::none_of(plan.cases, runs_alone));
  std::vector<EntrantSet> sets;
  std::optional<std::size_t> shared;  // of `sets`
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const PlannedCase& planned = plan.cases[i];
    if (!planned.is_possible()) continue;
    Entrant entrant{i};
    for (const auto& [variable, share] : weights) {
      if (variable == planned.variable) entrant.share = share;
    }
    const bool joins = shares && !planned.needs_process;
    if (joins && shared) {
      sets[*shared].push_back(entrant);
      continue;
    }
    if (joins) shared = sets.size();
    sets.push_back({entrant});
  }
  return sets;
}

// Virtual time has no noise: one step says all.
config::Measure once(config::Measure measure) {
  measure.rounds = measure.steps = 1;
  measure.warmup_steps = 0;
  measure.auto_steps = false;
  measure.looks.clear();
  measure.weights.clear();
  measure.time_budget_s = 0;
  return measure;
}

}  // namespace

PlannedCase case_of(const Plan& plan, const config::Change& change) {
  return make_case(plan, config::case_name(change), &change);
}

void require_baseline(const Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (plan.baseline().is_possible()) return;
  fail("{}: the baseline cannot run on {} ranks: {}", e.baseline_place.empty() ? e.path : e.baseline_place, plan.ranks,
       plan.baseline().impossible);
}

machine::Topology under_faults(const config::Experiment& experiment, const config::Settings& settings,
                               machine::Topology topology) {
  topology.node_of = config::places(experiment.faults.without(settings.mended), std::move(topology.node_of));
  return topology;
}

void schedule_blocks(Plan& plan) {
  refuse_lone_baseline(plan);
  const config::Measure& measure = plan.experiment.measure;
  plan.schedule = make_schedule(sets_of(plan), measure.rounds, measure.seed);
}

Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only,
               Processes processes, const machine::Topology& topology) {
  if (ranks < 1) fail("cannot plan for {} ranks; use 1 rank or more", ranks);
  const std::set<std::string> selection = checked_selection(experiment, only);
  Plan plan;
  plan.experiment = experiment;
  plan.ranks = ranks;
  plan.topology = topology;
  plan.only = only;
  plan.processes = processes;
  const bool predicts = config::traits_of(experiment.backend).predicts();
  if (predicts) plan.experiment.measure = once(experiment.measure);
  plan.cases.push_back(make_case(plan, "baseline", nullptr));
  if (!predicts) {
    plan.cases.push_back(make_case(plan, "baseline_again", nullptr));
    plan.cases.back().is_copy = true;
  }
  require_baseline(plan);
  for (const config::Change& change : experiment.changes) {
    if (!change.from_model.empty() || is_the_baseline(experiment, change, ranks)) continue;
    const std::string name = config::case_name(change);
    if (!only.empty() && !selection.contains(name) && !selection.contains(change.variable)) continue;
    plan.cases.push_back(make_case(plan, name, &change));
  }
  if (!predicts) add_baseline_alone(plan);
  schedule_blocks(plan);
  return plan;
}

std::vector<std::string> warnings_of(const Plan& plan) {
  constexpr int least_rounds = 6;
  const config::Experiment& e = plan.experiment;
  std::vector<std::string> warnings = e.warnings;
  // Of sizes none is better; beside other changes their rounds are enough where those of the others are.
  const auto is_compared = [](const PlannedCase& planned) {
    return planned.is_possible() && planned.is_change() &&
           config::purpose_of(planned.variable) != config::Purpose::size;
  };
  const bool compares = !config::traits_of(e.backend).predicts() && std::ranges::any_of(plan.cases, is_compared);
  if (compares && e.measure.rounds < least_rounds) {
    warnings.push_back(fmt::format("measure.rounds is {}: below {} rounds most effects stay unresolved; use 12",
                                   e.measure.rounds, least_rounds));
  }
  std::map<std::string, std::string> of_env;  // by name: several cases may set it
  for (const PlannedCase& planned : plan.cases) {
    for (const auto& [name, value] : planned.settings.env) of_env.try_emplace(name, config::env_warning(name));
  }
  for (const auto& [name, warning] : of_env) {
    if (!warning.empty()) warnings.push_back(warning);
  }
  return warnings;
}

}  // namespace harness::plan
