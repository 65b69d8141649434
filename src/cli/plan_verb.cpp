#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "config/backend.h"
#include "config/experiment.h"
#include "job/mpi/mpi_job.h"
#include "report/words.h"
#include "store/hdf5_file.h"

namespace harness::cli {
namespace {

void refuse_what_is_not_answered(const PlanOptions& options, const config::Experiment& experiment) {
  const bool of_time = !options.assume_mfu.empty() || options.gpu_hours;
  if (of_time && config::traits_of(experiment.backend).predicts())
    fail("--assume-mfu and --gpu-hours say how long measuring takes, and a prediction takes seconds: leave them out");
  if (options.best > 0 && !options.budget.empty())
    fail("--best ranks steps and --budget takes one apart: give only one of them");
  if (options.format == "json" && (of_time || !options.budget.empty()))
    fail("--assume-mfu, --gpu-hours and --budget print text or md, not json");
  const bool limited = std::ranges::any_of(
      options.overrides, [](const std::string& typed) { return typed.starts_with("measure.time_budget="); });
  if (options.gpu_hours && limited)
    fail("--gpu-hours and --time-budget both say how long to measure: give only one of them");
  constexpr double most_hours = 1e6;
  if (options.gpu_hours && !(*options.gpu_hours > 0 && *options.gpu_hours <= most_hours))
    fail("--gpu-hours: found {}; allowed: above 0 and up to {:g}, such as 300", *options.gpu_hours, most_hours);
}

const plan::PlannedCase& budgeted_case(const plan::Plan& p, const PlanOptions& options) {
  if (!p.experiment.hardware)
    fail("--budget needs the rates of the hardware; add `hardware: FILE` to the configuration");
  std::vector<std::string> names;
  for (const plan::PlannedCase& planned : p.cases) names.push_back(planned.name);
  return p.cases[report::find_name(names, options.budget)];
}

// Step times predicted by sim; empty if a prediction is not possible.
KnownSteps predicted_steps(const plan::Plan& p, const PlanOptions& options, int per_node) {
  std::vector<std::string> overrides = options.overrides;
  overrides.emplace_back(config::predict);
  KnownSteps known;
  try {
    config::Experiment experiment = config::load_experiment(options.config, overrides);
    // Predicts the steps of this program, not of other software.
    if (!experiment.names_calibration) experiment.calibration = config::calibration_named("harness");
    const plan::Plan simulated = plan::prepare(experiment, p.ranks, p.only, plan::Processes::as_needed,
                                               planned_topology(experiment, p.ranks, per_node));
    const std::vector<PredictedCase> predicted = predict_cases(simulated);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      if (predicted[i].step) known.seconds[simulated.cases[i].name] = predicted[i].step->step_s;
    }
    if (predicted.front().step) {
      known.source = fmt::format("if a step takes what sim expects (baseline {})",
                                 show_seconds(known.seconds[simulated.baseline().name]));
    }
  } catch (const Error&) {  // the message names inputs of a prediction that was not requested
    return {};
  }
  return known;
}

void add_schedule(const plan::Plan& p, const PlanOptions& options, int per_node, report::Document& document) {
  const KnownSteps known =
      options.assume_mfu.empty() ? predicted_steps(p, options, per_node) : assumed_steps(p, options.assume_mfu);
  PlannedTime time = planned_time(p, known);
  if (options.gpu_hours)
    time.lines.push_back(
        fmt::format("`sweep` with --time-budget {:.0f}s spends no more", p.experiment.measure.time_budget_s));
  document.sections.push_back(schedule_section(p, time.rounds));
  report::List more{{time.lines.begin() + 1, time.lines.end()}};
  document.sections.push_back({"", "", {report::Paragraph{time.lines.front()}, std::move(more)}});
}

// Keeps freed memory in the process. The Programs of a case are freed before those of the next are built; otherwise the
// kernel would clear the returned pages again, which takes a sixth of the time of a prediction.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

using Json = report::Json;

// Seconds by part; parts that are not on the path are omitted.
Json json_of(const sim::CriticalPath& path) {
  Json out = Json::object();
  for (const Part part : all_parts) {
    if (path[part] > 0) out[fmt::format("{}_seconds", key_of(part))] = sim::seconds_of(path[part]);
  }
  out["slowed_seconds"] = sim::seconds_of(path.slowed);
  out["host_seconds"] = sim::seconds_of(path.host);
  return out;
}

Json json_of(const PredictedCase& predicted) {
  const sim::Prediction& prediction = *predicted.step;
  const program::StepSplit& split = prediction.split;
  Json out{{"predicted_step_seconds", prediction.step_s},
           {"predicted_parts",
            {{"compute_seconds", split.compute_s},
             {"exposed_communication_seconds", split.exposed_s},
             {"idle_seconds", split.idle_s}}},
           {"predicted_overlapped_communication_seconds", split.overlapped_s},
           {"predicted_critical_path", json_of(prediction.critical_path)}};
  if (predicted.mfu) out["predicted_mfu"] = *predicted.mfu;
  if (predicted.change) {
    out["predicted_change"] = *predicted.change;
    out["too_close_to_call"] = predicted.too_close_to_call;
  }
  put_trust(predicted.trust, predicted.change.has_value(), out);
  return out;
}

Json head_of(const plan::Plan& plan, const char* schema) {
  const config::Experiment& e = plan.experiment;
  Json out{{"schema", schema},
           {"schema_version", 1},
           {"name", e.name},
           {"backend", config::name_of(e.backend)},
           {"ranks", plan.ranks}};
  if (config::traits_of(e.backend).predicts()) {
    out["calibration"] = {
        {"file", e.calibration->file}, {"name", e.calibration->name}, {"source", e.calibration->source}};
    if (!e.names_calibration) out["calibration"]["chosen_for"] = config::usual_calibration(e.baseline).why;
    out["hardware"] = e.hardware->name;
  }
  return out;
}

Json facts_of(const plan::PlannedCase& planned, const config::Experiment& experiment) {
  return {{"layout", planned.layout_text()},
          {"micro_batches", planned.micro_batches},
          {"memory_bytes", plan::planned_memory_bytes(experiment, planned)},
          {"tokens_per_step", planned.survey.tokens_per_step},
          {"model_flop", planned.survey.flop.model}};
}

Json json_of(const RankedCombination& combination, const config::Experiment& experiment) {
  Json settings = Json::object();
  for (const auto& [variable, value] : combination.settings) settings[variable] = value;
  Json out{
      {"settings", std::move(settings)}, {"distance", combination.distance}, {"told_apart", combination.is_told_apart}};
  out.update(facts_of(combination.planned, experiment));
  out.update(json_of(combination.predicted));
  return out;
}

std::string plan_json(const plan::Plan& plan, const std::vector<PredictedCase>& predicted) {
  Json out = head_of(plan, "harness-plan");
  Json& cases = out["cases"] = Json::array();
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    Json row{{"name", planned.name}, {"variable", planned.variable}, {"value", planned.value}};
    if (!planned.is_possible()) {
      row["impossible"] = planned.impossible;
      cases.push_back(std::move(row));
      continue;
    }
    row.update(facts_of(planned, plan.experiment));
    if (!planned.notes.empty()) row["notes"] = planned.notes;
    if (!predicted.empty() && predicted[i].step) {
      row.update(json_of(predicted[i]));
    } else if (!predicted.empty()) {
      row["not_predicted"] = predicted[i].unknown;
    }
    cases.push_back(std::move(row));
  }
  return report::json_text(out);
}

std::string best_json(const plan::Plan& plan, const Best& best) {
  Json out = head_of(plan, "harness-plan-best");
  Json& variables = out["variables"] = Json::object();
  for (const plan::Values& v : best.variables) variables[v.variable->name] = v.values;
  out["left_out"] = best.left_out;
  out["combinations"] = best.combinations;
  out["predicted"] = best.predicted;
  out["alike"] = best.alike;
  out["not_told_apart"] = best.close;
  out["refused"] = report::json_list(best.refused, [](const auto& row) -> Json {
    return {{"reason", row.first}, {"number", row.second}};
  });
  if (best.baseline) out["baseline"] = json_of(*best.baseline, plan.experiment);
  out["fastest"] = report::json_list(best.fastest, [&](const auto& c) { return json_of(c, plan.experiment); });
  return report::json_text(out);
}

int name_best(const plan::Plan& p, const PlanOptions& options, std::ostream& out, std::ostream* progress) {
  const auto say = [progress](const std::string& text) {
    if (progress != nullptr) *progress << "\r" << text << std::flush;
  };
  const Best best = find_best(p, static_cast<std::size_t>(options.best), most_combinations, say);
  if (progress != nullptr) *progress << "\r\033[K" << std::flush;
  if (options.format == "json") {
    out << best_json(p, best);
    return 0;
  }
  report::Document document;
  using report::List;
  document.sections.push_back(best_section(p, best));
  document.sections.push_back(
      {"", "", {List{plan::warnings_of(p), List::Mark::warning}, List{head_lines(p), List::Mark::none}}});
  print(std::move(document), options.format, options.view, out);
  return 0;
}

}  // namespace

int plan(const PlanOptions& options, std::ostream& out, std::ostream* progress) {
  keep_freed_memory();
  std::error_code none;
  const bool is_file = std::filesystem::is_regular_file(options.config, none);  // pipes can only be read once
  if (options.config.ends_with(".h5") || (is_file && store::hdf5::File::is_hdf5(options.config)))
    return plan_upgrade(options, out);
  config::Experiment experiment = config::load_experiment(options.config, options.overrides);
  refuse_what_is_not_answered(options, experiment);
  const std::vector<std::string> only = full_names(options.only, experiment.changes, config::case_name);
  int stated_ranks = options.ranks, per_node = options.ranks_per_node;
  if (const auto claim = mpi::launcher_claim(mpi::own_environment); claim && stated_ranks == 0) {
    stated_ranks = claim->size;  // the number of ranks of a sweep that is started in the same way
    if (per_node == 0) per_node = claim->ranks_per_node;
  }
  const int ranks = std::max(stated_ranks, 1);
  constexpr const char* how = "give --ranks N, as many as the sweep will have";
  const auto needed = std::max<std::int64_t>(experiment.baseline.replica_ranks(), experiment.baseline.ranks);
  if (stated_ranks == 0 && needed > 1) fail("planned for 1 rank, but the baseline needs {}; {}", needed, how);
  if (options.gpu_hours) experiment.measure.time_budget_s = *options.gpu_hours * 3600 / ranks;
  // Before anything is printed, so that an error message stands alone.
  const plan::Plan p =
      plan::prepare(experiment, ranks, only, plan::Processes::as_needed, planned_topology(experiment, ranks, per_node));
  if (options.gpu_hours && options.assume_mfu.empty())
    fail("--gpu-hours needs the time of a block: give {}", source_of_time(p));
  if (options.best > 0) return name_best(p, options, out, progress);
  const std::vector<PredictedCase> predicted = predict_cases(p);
  if (options.format == "json") {
    out << plan_json(p, predicted);
    return 0;
  }
  report::Document document = plan_document(p, predicted);
  if (stated_ranks == 0) document.notices.push_back({fmt::format("planned for 1 rank; {}", how)});
  if (predicted.empty()) add_schedule(p, options, per_node, document);  // else there is nothing to measure
  if (!options.budget.empty()) document.sections.push_back(budget_section(p, budgeted_case(p, options)));
  print(std::move(document), options.format, options.view, out);
  return 0;
}

void put_trust(const sim::Trust& trust, bool of_change, report::Json& out) {
  const auto put = [&](const std::string& key, const std::optional<config::Errors>& error) {
    if (!error) return;
    out[key] = error->median;
    out[key + "_90"] = error->nine_of_ten;
  };
  put("expected_error", trust.errors.step);
  if (of_change) put("expected_change_error", trust.errors.change);
  if (!trust.warnings.empty()) out["warnings"] = trust.warnings;
}

}  // namespace harness::cli
