#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string>

#include "analysis/estimator.h"
#include "analysis/questions.h"
#include "backend/backend.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/best.h"
#include "cli/best_text.h"
#include "cli/plan_json.h"
#include "cli/plan_text.h"
#include "cli/plan_time.h"
#include "cli/plan_upgrade.h"
#include "cli/predicted.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "config/experiment.h"
#include "config/model.h"
#include "job/mpi/launcher.h"
#include "machine/topology.h"
#include "plan/budget.h"
#include "plan/fit.h"
#include "plan/prepare.h"
#include "program/placement.h"
#include "report/sections.h"
#include "report/table.h"
#include "sweep/planned_result.h"

namespace harness::cli {
namespace {

constexpr double min_shown_s = 1e-6;  // a single number filled or copied

std::string operation_text(const plan::BudgetLine& line) {
  const std::string name = line.what.empty() ? line.kind : fmt::format("{} {}", line.kind, line.what);
  return fmt::format("{}, {}{}", name, program::name_of(line.phase), line.recomputed ? ", recomputed" : "");
}

std::string budget_text(const plan::Budget& budget, const std::string& hardware) {
  std::string text = fmt::format("budget of one step of one rank{}, computation only, on {} ({}, {:.3g} TB/s)\n",
                                 budget.roles > 1 ? fmt::format(" of pipeline stage {}", budget.role) : "", hardware,
                                 show_flops(budget.rates.flops), budget.rates.memory_bytes_per_s / 1e12);
  report::Table table;
  table.columns = {{"operation", true}, {"number"}, {"TFLOP"}, {"GB"}, {"limit", true}, {"least time"}};
  for (const plan::BudgetLine& line : budget.lines) {
    if (line.least_s < min_shown_s) continue;
    table.rows.push_back({operation_text(line), std::to_string(line.operations),
                          line.flop > 0 ? fmt::format("{:.1f}", line.flop / 1e12) : "",
                          fmt::format("{:.2f}", line.bytes / 1e9), program::name_of(line.bound),
                          show_seconds(line.least_s)});
  }
  return text + table.text() +
         fmt::format("least time: {}, which is an MFU of {} at most\n", show_seconds(budget.least_s),
                     percent(budget.mfu(budget.least_s)));
}

std::int64_t ranks_named(const config::Settings& s) {
  return std::max<std::int64_t>(s.replica_ranks(), s.ranks);
}

// For a plan that neither --ranks nor a launcher gives a number of ranks. Throws Error where the baseline needs more
// than one.
std::string planned_for_one(const config::Experiment& e) {
  constexpr std::string_view text = "planned for 1 rank{}; give --ranks N, as many as the sweep will have";
  if (const int ranks = ranks_named(e.baseline); ranks > 1)
    fail(text, fmt::format(", but the baseline needs {}", ranks));
  int most = 1;
  std::string which;
  for (const config::Change& change : e.changes) {
    if (ranks_named(change.settings) <= most) continue;
    most = ranks_named(change.settings);
    which = config::case_name(change);
  }
  return fmt::format(text, most == 1 ? "" : fmt::format(", but {} needs {}", which, most));
}

// How many ranks to plan for (0: nothing says), and of how many on a node.
struct PlannedRanks {
  int ranks = 0, per_node = 0;
};

// As given, or as many as the sweep would have that is started in the same way.
PlannedRanks planned_ranks(const PlanOptions& options) {
  PlannedRanks planned{options.ranks, options.ranks_per_node};
  if (planned.ranks > 0) return planned;
  const auto claim = mpi::launcher_claim(mpi::own_environment);
  if (!claim) return planned;
  planned.ranks = claim->size;
  if (planned.per_node == 0) planned.per_node = claim->ranks_per_node;
  return planned;
}

std::string budget_of(const plan::Plan& p, const PlanOptions& options) {
  const auto found = std::ranges::find(p.cases, options.budget, &plan::PlannedCase::name);
  if (found == p.cases.end())
    fail("--budget: there is no case {}; `plan` without --budget lists the cases", options.budget);
  const plan::PlannedCase& the_case = *found;
  if (!p.experiment.hardware)
    fail("--budget needs the rates of the hardware; add `hardware: FILE` to the configuration");
  const config::Hardware& hardware = *p.experiment.hardware;
  return "\n" + the_case.name + ": " +
         budget_text(plan::budget(p.experiment.model, p.experiment.backend, the_case, hardware), hardware.name);
}

int name_best(const plan::Plan& p, const PlanOptions& options, std::ostream& out, std::ostream* progress) {
  const auto say = [progress](const std::string& text) {
    if (progress != nullptr) *progress << "\r" << text << std::flush;
  };
  const Best best = find_best(p, static_cast<std::size_t>(options.best), most_predicted, say);
  if (progress != nullptr) *progress << "\r\033[K" << std::flush;
  if (options.format == "json") {
    out << best_json(p, best);
    return 0;
  }
  out << head_text(p) << best_text(p, best);
  for (const std::string& w : plan::warnings_of(p)) out << "warning: " << w << "\n";
  return 0;
}

// How long it takes by what sim expects of a step; "" where a prediction is not possible.
std::string time_by_prediction(const plan::Plan& p, const PlanOptions& options, int per_node) {
  std::vector<std::string> overrides = options.overrides;
  overrides.emplace_back("backend=sim");
  StepTimes steps;
  try {
    config::Experiment experiment = config::load_experiment(options.config, overrides);
    // The steps of this program: no other software's.
    if (!experiment.names_calibration) experiment.calibration = config::calibration_named("harness");
    const plan::Plan simulated = plan::prepare(experiment, p.ranks, options.only, plan::Processes::as_needed,
                                               planned_topology(experiment, p.ranks, per_node));
    const std::vector<PredictedCase> predicted = predict_cases(simulated);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      if (predicted[i].step) steps[simulated.cases[i].name] = predicted[i].step->step_s;
    }
  } catch (const Error&) {  // it says what a prediction lacks, which nobody has asked for
    return "";
  }
  return expected_time(p, steps);
}

}  // namespace

int plan(const PlanOptions& options, std::ostream& out, std::ostream* progress) {
  if (plans_a_result(options)) return plan_upgrade(options, out);
  config::Experiment experiment = config::load_experiment(options.config, options.overrides);
  const auto [ranks, per_node] = planned_ranks(options);
  const std::string hint = ranks > 0 ? "" : planned_for_one(experiment);
  if (options.gpu_hours > 0) {
    if (options.like.empty() && options.assume_mfu.empty())
      fail("--gpu-hours needs the time of a block: give --like RESULT.h5 or --assume-mfu 40%");
    experiment.measure.time_budget_s = options.gpu_hours * 3600 / std::max(ranks, 1);
  }
  // Before anything is printed, so that an error stands alone.
  const int planned_for = std::max(ranks, 1);
  const plan::Plan p = plan::prepare(experiment, planned_for, options.only, plan::Processes::as_needed,
                                     planned_topology(experiment, planned_for, per_node));
  if (options.best > 0) return name_best(p, options, out, progress);
  const std::vector<PredictedCase> predicted = predict_cases(p);
  if (options.format == "json") {
    out << plan_json(p, predicted);
    return 0;
  }
  const std::string budget = options.budget.empty() ? "" : budget_of(p, options);
  const std::int64_t result_bytes = sweep::needed_space(p);
  PlannedTime time = planned_time(p, {options.like, options.assume_mfu, options.assume_setup});
  if (predicted.empty() && options.like.empty() && options.assume_mfu.empty()) {
    if (std::string expected = time_by_prediction(p, options, per_node); !expected.empty())
      time.text = std::move(expected);
  }
  if (!hint.empty()) out << hint << "\n\n";
  out << view(plan_document(p), options.view, out);
  if (!predicted.empty()) {  // there is nothing to measure
    out << predictions_text(p, predicted);
  } else {
    out << view(schedule_document(p, time.rounds, result_bytes), options.view, out) << time.text;
    if (options.gpu_hours > 0)
      out << fmt::format("to spend no more: mpirun -np {} {} sweep {} --time-budget {:.0f}s\n", planned_for, called(),
                         shell_word(options.config), experiment.measure.time_budget_s);
  }
  out << budget;
  return 0;
}

}  // namespace harness::cli
