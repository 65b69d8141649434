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
#include "cli/plan_time.h"
#include "cli/plan_upgrade.h"
#include "cli/predicted.h"
#include "cli/verbs.h"
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

void print_head(const plan::Plan& p, std::ostream& out) {
  const config::Experiment& e = p.experiment;
  const plan::Survey& s = p.baseline().survey;
  if (const workloads::Rate& rate = s.rate; rate.repetitions > 0) {
    out << fmt::format("{}: backend {}, {}, workload {}\none step: {} times {} of {}{}\n", e.name,
                       config::name_of(e.backend), plural(p.ranks, "rank"), e.baseline.workload, rate.repetitions,
                       rate.operation, show_bytes(rate.bytes),
                       s.flop.model > 0 ? fmt::format(", {:.4g} TFLOP", s.flop.model / 1e12) : "");
    return;
  }
  out << fmt::format("{}: backend {}, {}, {}: {}\n", e.name, config::name_of(e.backend), plural(p.ranks, "rank"),
                     e.model.name, config::in_words(e.model));
  out << fmt::format("one step: {} tokens, {:.3f} GFLOP per token ({:.3f} non-causal), {:.4g} PFLOP\n",
                     static_cast<std::int64_t>(s.tokens_per_step), s.flop.model / s.tokens_per_step / 1e9,
                     s.flop.noncausal / s.tokens_per_step / 1e9, s.flop.model / 1e15);
  const plan::Peak peak = plan::configured_peak(e, e.baseline.precision);
  if (peak.flops > 0) {
    out << fmt::format("peak: {} per rank ({})\n", show_flops(peak.flops), peak.source);
  } else if (e.without_hardware || e.hardware) {
    out << (e.hardware ? fmt::format("peak: not in the hardware file {} for precision {}; there will be no MFU\n",
                                     e.hardware->name, config::find_variable("precision")->print(e.baseline))
                       : std::string("peak: none (hardware: none); there will be no MFU\n"));
  } else if (config::traits_of(e.backend).ranks_are_gpus) {
    out << "peak: from the hardware file of the GPU that the sweep finds\n";
  } else {
    out << "peak: measured before the first block (a matrix product on all ranks at once)\n";
  }
  const double memory = e.hardware ? e.hardware->memory_bytes : 0;
  if (memory > 0) out << fmt::format("memory: {} per rank ({})\n", show_bytes(memory), e.hardware->name);
}

void print_cases(const plan::Plan& p, std::ostream& out) {
  const machine::Topology& topology = p.topology;
  std::size_t width = 4;
  for (const plan::PlannedCase& c : p.cases) width = std::max(width, c.name.size());
  const bool named = std::ranges::any_of(p.cases, [](const plan::PlannedCase& c) { return !c.uses.empty(); });
  const auto spans = [&](const plan::PlannedCase& c) {
    if (!topology.is_known()) return std::string();
    const auto& traffic = c.survey.counts.front().traffic;  // of the first pipeline stage
    return program::spans_of(c.layout, plan::under_faults(p.experiment, c.settings, topology).node_of,
                             traffic.contains({"embedding", "all_reduce"}))
        .text();
  };
  constexpr std::string_view spans_heading = "nodes spanned";
  std::size_t spans_width = topology.is_known() ? spans_heading.size() : 0;
  for (const plan::PlannedCase& c : p.cases) {
    if (c.is_possible()) spans_width = std::max(spans_width, spans(c).size());
  }
  // A column of its own where it is known.
  const auto spans_cell = [&](std::string_view text) {
    return spans_width == 0 ? "" : fmt::format("  {:{}}", text, spans_width);
  };
  const auto print = [&](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  out << "\n";
  print(fmt::format("{:{}}  {:14} {:>13} {:>11} {:>11} {:>13}{}{}", "case", width, "layout", "micro-batches",
                    "memory/rank", "messages", "sent/rank", spans_cell(spans_heading),
                    named ? fmt::format("  {}", report::uses_heading) : ""));
  std::vector<std::string> notes;
  for (const plan::PlannedCase& c : p.cases) {
    const plan::Survey& s = c.survey;
    std::string mark;
    const auto note = [&](const std::string& text) {
      notes.push_back(text);
      mark += fmt::format(" [{}]", notes.size());
    };
    if (!c.impossible.empty()) {
      note("skipped: " + c.impossible);
      out << fmt::format("{:{}}  {}{}\n", c.name, width, "skipped", mark);
      continue;
    }
    program::Traffic all;
    for (const auto& [key, t] : s.counts[s.peak_role].traffic) {
      if (key.second == "receive") continue;
      all.messages += t.messages;
      all.sent_bytes += t.sent_bytes;
    }
    const double need = plan::planned_memory_bytes(p.experiment.backend, c);
    for (const std::string& text : c.notes) note(text);
    const std::string uses = c.uses.empty() || c.is_copy ? "" : "  " + join(c.uses, "; ");
    print(fmt::format("{:{}}  {:14} {:>13} {:>11} {:>11} {:>13}{}{}{}", c.name, width, program::text_of(c.layout),
                      c.micro_batches, show_bytes(need), all.messages, show_bytes(all.sent_bytes), spans_cell(spans(c)),
                      uses, mark));
  }
  for (std::size_t i = 0; i < notes.size(); ++i) out << fmt::format("  [{}] {}\n", i + 1, notes[i]);
  out << "memory/rank: the largest rank's planned peak. messages, sent/rank: of that rank in one step; over n ranks it "
         "sends 2 (n - 1) / n of an all-reduce, (n - 1) / n of a reduce-scatter or an all-gather.\n";
  if (!topology.is_known()) return;
  out << fmt::format(
      "nodes spanned: by the ranks of one group along each axis, and by the ends of a pipeline that share an "
      "embedding, at most; ranks stand on {}, numbered one node after the other{}.\n",
      plural(topology.nodes(), "node"),
      p.experiment.faults.tensor_across_nodes ? ", or dealt out to them until tensor_across_nodes is mended" : "");
}

// The processes that the blocks run in.
std::string processes_of(const plan::Plan& p) {
  std::map<int, int> blocks;  // by process
  for (const plan::Slot& slot : p.schedule) ++blocks[slot.process];
  return std::ssize(blocks) == std::ssize(p.schedule) ? "fresh processes"
                                                      : "a process that runs all sizes of a setting";
}

void print_schedule(const plan::Plan& p, std::ostream& out) {
  const config::Experiment& e = p.experiment;
  const auto& schedule = p.schedule;
  const std::string steps = e.measure.auto_steps ? "as many timed steps as take about three quarters of the set-up"
                                                 : plural(e.measure.steps, "timed step");
  out << fmt::format("\n{} in {}, each {} warm-up and {} in {}; order by seed {}:\n",
                     plural(std::ssize(schedule), "block"), plural(e.measure.rounds, "round"), e.measure.warmup_steps,
                     steps, processes_of(p), e.measure.seed);
  constexpr int max_shown = 3;
  for (int round = 0; round < std::min(e.measure.rounds, max_shown); ++round) {
    std::string line = fmt::format("  round {}:", round + 1);
    for (const plan::Slot& slot : schedule) {
      if (slot.round == round) line += " " + p.cases[slot.case_index].name + ";";
    }
    line.pop_back();
    out << line << "\n";
  }
  if (e.measure.rounds > max_shown) out << fmt::format("  … and so on, balanced over {} rounds\n", e.measure.rounds);
  if (e.measure.looks.empty()) return;
  const auto first = std::ranges::count_if(schedule, [&](const plan::Slot& s) { return s.round < e.measure.looks[0]; });
  out << fmt::format(
      "looks after {} {}: settled cases leave, so it takes between {} blocks (all settled by the first look) and {}\n",
      e.measure.looks.size() == 1 ? "round" : "rounds", fmt::join(e.measure.looks, ", "), first, schedule.size());
}

// The effect that `rounds` rounds, those that fit, can detect.
void print_power(const plan::Plan& p, int rounds, std::ostream& out) {
  const config::Measure& m = p.experiment.measure;
  const int comparisons = analysis::declared_comparisons(sweep::planned_result(p));
  if (comparisons == 0) return;
  if (rounds < analysis::least_pairs) {
    out << fmt::format("\n{} no verdict: it takes {} or more, and about 12 to see small effects\n",
                       rounds == 1 ? "1 round gives" : fmt::format("{} rounds give", rounds), analysis::least_pairs);
    return;
  }
  out << fmt::format(
      "\nWith {} over {}, a change is detected 4 times in 5 (beyond the smallest effect of "
      "{:.3g} %) if it is at least\n",
      plural(comparisons, "comparison"), plural(rounds, "round"), m.smallest_effect * 100);
  for (const double noise : {0.002, 0.005, 0.01, 0.02}) {
    const double effect = analysis::resolvable_effect(rounds, comparisons, noise, m.smallest_effect, m.confidence);
    out << (std::isfinite(effect) ? fmt::format("  {:5.2f} %", effect * 100) : std::string("  (more rounds needed)"))
        << fmt::format(" when a block scatters around the machine's level by {:.1f} %\n", noise * 100);
  }
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
  print_head(p, out);
  out << best_text(p, best);
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
  print_head(p, out);
  print_cases(p, out);
  if (!predicted.empty()) out << predictions_text(p, predicted);
  if (predicted.empty()) {  // else there is nothing to measure
    print_schedule(p, out);
    out << "the result file takes at most " << show_bytes(static_cast<double>(result_bytes)) << "\n";
    print_power(p, time.rounds, out);
    out << time.text;
    if (options.gpu_hours > 0)
      out << fmt::format("to spend no more: mpirun -np {} {} sweep {} --time-budget {:.0f}s\n", planned_for, called(),
                         shell_word(options.config), experiment.measure.time_budget_s);
  }
  out << budget;
  for (const std::string& w : plan::warnings_of(p)) out << "warning: " << w << "\n";
  return 0;
}

}  // namespace harness::cli
