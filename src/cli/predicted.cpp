#include "cli/plan.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>

#include "analysis/verdict.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "explain/explain.h"
#include "report/sections.h"
#include "report/words.h"
#include "store/result_file.h"
#include "workloads/workload.h"

namespace harness::cli {
namespace {

// Whether the cases do equal work: another size of an operation takes longer without being slower.
bool do_as_much(const plan::PlannedCase& a, const plan::PlannedCase& b) {
  const workloads::Rate &x = a.survey.rate, &y = b.survey.rate;
  if (x.repetitions == 0) return true;
  return x.repetitions == y.repetitions && x.bytes * x.bus_factor == y.bytes * y.bus_factor &&
         a.survey.flop.model / a.layout.ranks() == b.survey.flop.model / b.layout.ranks();
}

// Builds the whole step if it cannot be folded.
sim::Prediction simulate(const config::Experiment& e, const sim::Network& network, const plan::PlannedCase& planned,
                         plan::BuiltStep built) {
  const config::Settings& settings = planned.settings;
  if (!built.whole && !built.folded)
    built.folded = workloads::workload_of(settings).folded(e.model, settings, planned.layout);
  if (built.folded && sim::can_fold(*built.folded, settings, e, network))
    return sim::Simulation(std::move(*built.folded), settings, e, network).prediction();
  if (!built.whole) built.whole = workloads::build_programs(e.model, settings, planned.layout);
  return sim::Simulation(std::move(*built.whole), settings, e, network).prediction();
}

using report::List;
using report::Table;

// The change as plain text: a coloured tone would overstate its certainty.
std::string change_text(const PredictedCase& predicted) {
  return signed_percent(*predicted.change) + (predicted.too_close_to_call ? ", too close to call" : "");
}

// A row for each case that can run; "?": it has no prediction. For one operation if the step repeats one.
Table predictions_table(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  struct Row {
    const plan::PlannedCase& planned;
    const PredictedCase& predicted;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < p.cases.size(); ++i) {
    if (p.cases[i].is_possible()) rows.push_back({p.cases[i], predicted[i]});
  }
  Table table;
  table.add(report::case_column, rows, [](const Row& row) { return report::case_cell(row.planned.name); });
  const auto add = [&](Table::Column column, const auto& text) {
    const std::string unknown = table.columns.size() == 1 ? "?" : "";
    table.add(std::move(column), rows, [&](const Row& row) { return row.predicted.step ? text(row) : unknown; });
  };
  const auto change = [](const Row& row) { return row.predicted.change ? change_text(row.predicted) : ""; };
  const auto mfu = [](const Row& row) { return report::share_words(row.predicted.mfu); };
  if (const workloads::Rate& rate = p.baseline().survey.rate; rate.repetitions > 0) {
    const bool collective = rate.bus_factor > 0;
    const auto seconds = [](const Row& row) {
      return row.predicted.step->step_s / static_cast<double>(row.planned.survey.rate.repetitions);
    };
    const auto gigabytes = [&](const Row& row, double factor) {
      return fmt::format("{:.4g}", row.planned.survey.rate.bytes * factor / seconds(row) / 1e9);
    };
    add({"time us"}, [&](const Row& row) { return fmt::format("{:.4g}", 1e6 * seconds(row)); });
    add({.heading = collective ? "algbw GB/s" : "GB/s", .worth = 26},
        [&](const Row& row) { return gigabytes(row, 1); });
    add({collective ? "busbw GB/s" : "of peak"}, [&](const Row& row) {
      const double factor = row.planned.survey.rate.bus_factor;
      return factor > 0 ? gigabytes(row, factor) : mfu(row);
    });
    add({"change"}, change);
    table.columns.back().legend = fmt::format(
        "time: of one operation, a step / {} repetitions{}. change: against the baseline at the same size, of cases "
        "that do as much.",
        rate.repetitions, collective ? "; algbw and busbw as in nccl-tests" : "");
    return table;
  }
  const auto add_share = [&](Table::Column column, double program::StepSplit::*part) {
    add(std::move(column), [part](const Row& row) {
      const sim::Prediction& step = *row.predicted.step;
      return percent(step.split.*part / step.step_s);
    });
  };
  add({"predicted step"}, [](const Row& row) { return show_seconds(row.predicted.step->step_s); });
  add({"change"}, change);
  add({"MFU"}, mfu);
  add_share({.heading = "computing", .worth = 30}, &program::StepSplit::compute_s);
  add_share({.heading = "exposed", .worth = 40}, &program::StepSplit::exposed_s);
  add_share({.heading = "idle", .worth = 20}, &program::StepSplit::idle_s);
  table.columns.back().legend =
      "computing, exposed, idle: shares of the step, mean over the ranks. exposed: communication and no computation.";
  return table;
}

// Each text once, with the number of its cases unless all have it.
std::vector<std::string> counted(const std::vector<std::string>& texts, std::ptrdiff_t cases) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    if (!seen.insert(text).second) continue;
    const auto number = std::ranges::count(texts, text);
    lines.push_back(number == cases ? text : fmt::format("{} of {} cases: {}", number, cases, text));
  }
  return lines;
}

using explain::CaseMoved;
using explain::Upgrade;

constexpr std::string_view hardware_key = "hardware=";

// Throws Error for options that a result cannot answer.
std::string hardware_of(const PlanOptions& options) {
  constexpr const char* usage = "use plan FILE.h5 --hardware NAME, where NAME is a file of configs/hardware such as p5";
  std::string hardware;
  for (const std::string& text : options.overrides) {
    if (!text.starts_with(hardware_key)) fail("{} cannot change what was measured; {}", quote(text), usage);
    hardware = text.substr(hardware_key.size());
  }
  if (hardware.empty()) fail("{} is a result: it says what ran, not what would; {}", quote(options.config), usage);
  const bool of_a_plan = options.ranks > 0 || options.ranks_per_node > 0 || options.best > 0 || options.gpu_hours ||
                         !options.assume_mfu.empty() || !options.budget.empty();
  if (of_a_plan) fail("of a result, `plan` answers what its steps take elsewhere and nothing else; {}", usage);
  return hardware;
}

const char* subject_of(const Upgrade& upgrade) {
  return upgrade.of_prediction ? "predicted" : "measured";
}

// Cases with the same remark share its note.
report::Table cases_table(const Upgrade& upgrade, const store::Result& result) {
  report::Table table;
  table.columns = {report::case_column,
                   {subject_of(upgrade)},
                   {"MFU"},
                   {"forecast"},
                   {"MFU"},
                   {"speed-up"},
                   {.heading = "as predicted", .worth = 10}};
  const auto mark = [&](const std::string& note) { return " " + table.note(note); };
  for (const CaseMoved& c : upgrade.cases) {
    const std::string name = report::short_name(result.at(c).name);
    if (!c.why_none.empty()) {
      table.rows.push_back({name + mark(c.why_none), "", "", "?", "", "", ""});
      continue;
    }
    std::string marks = c.too_large.empty() ? "" : mark(c.too_large);
    if (c.network < 1)
      marks += mark(
          fmt::format("The network between nodes is taken to have {} of its rate, there as here", percent(c.network)));
    table.rows.push_back({name + marks, show_seconds(c.measured_s), report::share_words(c.measured_mfu),
                          show_seconds(c.forecast_s), report::share_words(c.forecast_mfu),
                          fmt::format("{:.2f}", c.measured_s / c.forecast_s), show_seconds(c.healthy_s)});
  }
  return table;
}

report::Document document_of(const Upgrade& upgrade, const store::Result& result) {
  report::Document document;
  document.headline = fmt::format("{}: {} on {}; predicted, not measured: the same steps on {} (calibration {})",
                                  result.name, subject_of(upgrade), upgrade.from, upgrade.to, upgrade.calibration);
  report::Section section{"upgrade", "", {}};
  section.add(report::Numbers{"", cases_table(upgrade, result)});
  section.add(report::List{
      {fmt::format("forecast: the prediction for {}, with each kind of operation as much slower than predicted as it "
                   "was.",
                   upgrade.to),
       fmt::format("as predicted: what {} is predicted to take, all being well.", upgrade.to),
       "What host and disk take stays; waiting for slower ranks grows and shrinks with computation."},
      report::List::Mark::none});
  std::vector<const sim::Trust*> trusts;
  for (const CaseMoved& c : upgrade.cases)
    if (c.why_none.empty()) trusts.push_back(&c.trust);
  add_trust(trusts, 0, section);
  document.sections.push_back(std::move(section));
  return document;
}

using Json = report::Json;

Json json_of(const CaseMoved& c, const store::Result& result) {
  Json out{{"name", result.at(c).name}};
  if (!c.why_none.empty()) {
    out["no_forecast"] = c.why_none;
    return out;
  }
  out.update({{"step_seconds", c.measured_s},
              {"predicted_step_seconds", c.forecast_s},
              {"speed_up", c.measured_s / c.forecast_s},
              {"as_predicted_step_seconds", c.healthy_s}});
  if (c.measured_mfu) out["mfu"] = *c.measured_mfu;
  if (c.forecast_mfu) out["predicted_mfu"] = *c.forecast_mfu;
  if (c.network < 1) out["network_share"] = c.network;
  if (!c.too_large.empty()) out["too_large"] = c.too_large;
  put_trust(c.trust, true, out);
  return out;
}

std::string json_text(const Upgrade& upgrade, const store::Result& result) {
  return report::json_text(
      {{"schema", "harness-plan-upgrade"},
       {"schema_version", 2},
       {"name", result.name},
       {"backend", result.backend},
       {"ranks", result.ranks},
       {"calibration", upgrade.calibration},
       {"from", upgrade.from},
       {"hardware", upgrade.to},
       {"cases", report::json_list(upgrade.cases, [&](const CaseMoved& c) { return json_of(c, result); })}});
}

}  // namespace

machine::Topology planned_topology(const config::Experiment& e, int ranks, int ranks_per_node) {
  constexpr int usual = 8;
  const int gpus = e.hardware ? e.hardware->gpus_of_node : 0;
  if (config::traits_of(e.backend).predicts() && gpus > 0 && ranks_per_node > gpus) {
    fail("{} ranks cannot share a node: one of {} has {}; give --ranks-per-node {} or fewer", ranks_per_node,
         e.hardware->name, plural(gpus, config::traits_of(config::stands_for(e)).ranks_are_gpus ? "GPU" : "rank"),
         gpus);
  }
  if (ranks_per_node == 0 && config::traits_of(e.backend).predicts()) ranks_per_node = gpus > 0 ? gpus : usual;
  return ranks_per_node > 0 ? machine::Topology::node_by_node(ranks, ranks_per_node) : machine::Topology();
}

double seconds_per_work(const plan::PlannedCase& planned, const PredictedCase& predicted) {
  const double tokens = planned.survey.tokens_per_step;
  return predicted.step->step_s / (tokens > 0 ? tokens : 1);
}

bool too_close_to_call(double change, const config::Experiment& e) {
  const analysis::ConfidenceInterval log_ratio{.center = std::log1p(change)};
  return analysis::decide(log_ratio, sim::smallest_effect(e), {.predicted = true}).reason ==
         analysis::Reason::too_close_to_call;
}

sim::Network network_of(const plan::Plan& plan) {
  return sim::network_of(plan.experiment, plan.topology.node_of);
}

PredictedCase predict_case(const plan::Plan& plan, const sim::Network& network, const plan::PlannedCase& planned,
                           plan::BuiltStep built) {
  const config::Experiment& e = plan.experiment;
  PredictedCase predicted;
  if (const auto names = sim::ignored_between(plan.baseline().settings, planned.settings); !names.empty()) {
    predicted.unknown = predicted.cause = fmt::format("the prediction does not know {}", names.front());
    return predicted;
  }
  try {
    predicted.step = simulate(e, network, planned, std::move(built));
  } catch (const sim::NotPredicted& why) {
    predicted.unknown = why.what();
    predicted.cause = why.cause;
    return predicted;
  }
  predicted.trust =
      sim::trust_in(*predicted.step, e.model, planned.settings, planned.layout.ranks(), *e.hardware, *e.calibration);
  const double peak = plan::configured_peak(e, planned.settings.precision).flops, flop = planned.survey.flop.model;
  if (peak > 0 && flop > 0) predicted.mfu = flop / (predicted.step->step_s * planned.layout.ranks() * peak);
  return predicted;
}

std::vector<PredictedCase> predict_cases(const plan::Plan& plan) {
  if (!config::traits_of(plan.experiment.backend).predicts()) return {};
  const sim::Network network = network_of(plan);
  std::vector<PredictedCase> cases(plan.cases.size());
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    PredictedCase& of_case = cases[i];
    if (!plan.cases[i].is_possible()) continue;
    of_case = predict_case(plan, network, plan.cases[i]);
    const std::size_t reference = plan.cases[i].reference;
    const plan::PlannedCase& before = plan.cases[reference];
    if (i == reference || !of_case.step || !cases[reference].step || !do_as_much(plan.cases[i], before)) continue;
    of_case.change = seconds_per_work(plan.cases[i], of_case) / seconds_per_work(before, cases[reference]) - 1;
    of_case.too_close_to_call = too_close_to_call(*of_case.change, plan.experiment);
  }
  return cases;
}

void leave_out_unpredicted(plan::Plan& plan) {
  const std::vector<PredictedCase> predicted = predict_cases(plan);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (!predicted[i].unknown.empty()) plan.cases[i].impossible = predicted[i].unknown;
  }
  plan::require_baseline(plan);
  plan::schedule_blocks(plan);
}

report::List prediction_lines(const plan::Plan& p) {
  const config::Calibration& calibration = *p.experiment.calibration;
  const config::UsualCalibration usual = config::usual_calibration(p.experiment.baseline);
  List lines{{}, List::Mark::none};
  lines.items.push_back(fmt::format("predicted, not measured: {} ({}), {} on {}", calibration.name, calibration.source,
                                    plural(p.ranks, "rank"), plural(p.topology.nodes(), "node")));
  if (!p.experiment.names_calibration) {
    lines.items.push_back(
        fmt::format("calibration {} is chosen for {}; `calibration` in the configuration names another",
                    calibration.file, usual.why));
  } else if (calibration.file != usual.file) {
    lines.items.push_back(
        fmt::format("calibration {} is named; {} is the one for {}", calibration.file, usual.file, usual.why));
  }
  return lines;
}

void add_trust(std::span<const sim::Trust* const> cases, double smallest_effect, report::Section& section) {
  std::vector<std::string> errors, warnings;
  for (const sim::Trust* trust : cases) {
    errors.push_back(fmt::format("expected error: {}.", trust->error_words));
    warnings.insert(warnings.end(), trust->warnings.begin(), trust->warnings.end());
  }
  section.add(List{counted(warnings, std::ssize(cases)), List::Mark::warning});
  section.add(List{counted(errors, std::ssize(cases)), List::Mark::none});
  if (smallest_effect > 0 && !cases.empty()) {
    section.add(
        List{{fmt::format("A change {} is too close to call.", analysis::within_threshold_words(smallest_effect))},
             List::Mark::none});
  }
}

std::string predicted_words(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  if (p.baseline().survey.rate.repetitions > 0 || !predicted.front().step) return "";
  const auto takes = [&](const PredictedCase& of_case) {
    const std::string step = show_seconds(of_case.step->step_s);
    return of_case.mfu ? fmt::format("{} at an MFU of {}", step, percent(*of_case.mfu)) : step;
  };
  const auto fastest = std::ranges::min_element(predicted, {}, [](const PredictedCase& of_case) {
    return of_case.change && !of_case.too_close_to_call ? *of_case.change : 0;
  });
  std::string words = fmt::format("Predicted, not measured: a step of the baseline takes {}", takes(predicted.front()));
  if (fastest->change && *fastest->change < 0 && !fastest->too_close_to_call) {
    const plan::PlannedCase& planned = p.cases[static_cast<std::size_t>(fastest - predicted.begin())];
    words += fmt::format("; {} is fastest, with {} ({})", report::short_name(planned.name), takes(*fastest),
                         change_text(*fastest));
  }
  return words + ". ";
}

report::Section predictions_section(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  std::set<std::string> unknown;
  std::vector<const sim::Trust*> trusts;
  for (std::size_t i = 0; i < p.cases.size(); ++i) {
    if (!p.cases[i].is_possible()) continue;
    if (predicted[i].step) {
      trusts.push_back(&predicted[i].trust);
    } else {
      unknown.insert("?: " + predicted[i].unknown);
    }
  }
  report::Section section{"predictions", "", {}};
  section.add(report::Numbers{"", predictions_table(p, predicted)});
  add_trust(trusts, sim::smallest_effect(p.experiment), section);
  section.add(List{{unknown.begin(), unknown.end()}, List::Mark::none});
  List lines = prediction_lines(p);
  if (p.baseline().survey.rate.repetitions == 0 && predicted[0].step) {
    lines.items.push_back(fmt::format("critical path of the baseline: {}", in_words(predicted[0].step->critical_path)));
  }
  section.add(std::move(lines));
  return section;
}

int plan_upgrade(const PlanOptions& options, std::ostream& out) {
  const store::Result result = store::read_result(options.config);  // first: the file may not be there, or no result
  const std::string hardware = hardware_of(options);
  Upgrade upgrade;
  try {
    const auto name_of = [](const store::ResultCase& of) { return of.name; };
    upgrade = explain::move_to(result, hardware, full_names(options.only, result.cases, name_of));
  } catch (const Error& why) {
    fail("{}: {}", options.config, why.what());
  }
  if (upgrade.cases.empty()) fail("--only {}: no case of this name has a profiled step", join(options.only, ", "));
  if (options.format == "json") {
    out << json_text(upgrade, result);
  } else {
    print(document_of(upgrade, result), options.format, options.view, out);
  }
  return 0;
}

}  // namespace harness::cli
