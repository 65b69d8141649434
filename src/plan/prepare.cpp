#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "base/units.h"

namespace harness::plan {
namespace {

// A training step of the configured model with the baseline's settings.
struct TrainingStep {
  std::string why_impossible;
  program::ProgramSet programs;  // of a possible one
};

TrainingStep training_step(const config::Experiment& e, int ranks, const machine::Topology& topology) {
  config::Settings training = e.baseline;
  training.workload = config::training_workload;
  const Division division = divide_ranks(e.model, training, ranks, under_faults(e, training, topology));
  if (!division.why_impossible.empty()) return {division.why_impossible, {}};
  return {"", workloads::build_programs(e.model, training, division.layout)};
}

}  // namespace

Combinations::Combinations(const Plan& plan) : plan_(plan) {
  std::vector<Values> of_environment;
  for (const config::Variable& variable : config::registry()) {
    Values found{&variable, {variable.print(plan.baseline().settings)}};
    for (const PlannedCase& planned : plan.cases) {
      std::string value = variable.print(planned.settings);
      if (std::ranges::find(found.values, value) == found.values.end()) found.values.push_back(std::move(value));
    }
    if (found.values.size() == 1) continue;
    if (variable.purpose != config::Purpose::setting || variable.mathematics == config::Mathematics::another) {
      left_out_.push_back(variable.name);
    } else {
      (variable.environment_name.empty() ? variables_ : of_environment).push_back(std::move(found));
    }
  }
  std::ranges::move(of_environment, std::back_inserter(variables_));
}

double Combinations::count() const {
  double count = 1;
  for (const Values& v : variables_) count *= static_cast<double>(v.values.size());
  return count;
}

bool Combinations::next(Choice& choice) const {
  for (std::size_t i = choice.size(); i-- > 0;) {
    if (++choice[i] < variables_[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

PlannedCase Combinations::planned(const Choice& choice) const {
  config::Change change{std::string(config::combination), "", plan_.baseline().settings, ""};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] == 0) continue;
    const config::Variable& variable = *variables_[i].variable;
    const std::string& value = variables_[i].values[choice[i]];
    variable.parse(change.settings, value);
    parts.push_back(fmt::format("{}={}", variable.name, value));
  }
  change.value = parts.empty() ? plan_.baseline().name : join(parts, " + ");
  return case_of(plan_, change);
}

Plan prepare(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only, Processes processes,
             const machine::Topology& topology) {
  Plan plan = make_plan(with_model_values(experiment, ranks, topology), ranks, only, processes, topology);
  Surveyor surveyor(experiment.model, experiment.backend);
  for (PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) planned.survey = surveyor.survey(planned);
  }
  name_uses(plan);
  refuse_what_does_not_fit(plan, [&](const PlannedCase&) { return configured_memory(plan.experiment); });
  return plan;
}

Peak configured_peak(const config::Experiment& experiment, config::Precision precision) {
  if (experiment.peak_flops > 0 && precision == experiment.baseline.precision)
    return {experiment.peak_flops, "given in the configuration (peak_flops)"};
  if (!experiment.hardware) return {};
  const config::Hardware& h = *experiment.hardware;
  const double flops = h.peak_flops(precision);
  if (flops == 0) return {};
  return {flops, fmt::format("hardware file {}: {}", h.name, h.source)};
}

std::optional<config::Hardware> hardware_for(const config::Experiment& experiment, const std::string& device) {
  if (experiment.hardware) {
    const config::Hardware& h = *experiment.hardware;
    if (h.devices.empty() || h.is(device)) return std::nullopt;
    fail(
        "the configuration uses the peak of {} (devices: {}), but the ranks run on {}, so MFU would be wrong. "
        "Remove `hardware` (the file is then found by the device's name) or name the right file. If this file does "
        "describe the GPU, add the device's name to its `devices`",
        h.name, fmt::join(h.devices, ", "), device);
  }
  if (experiment.without_hardware || experiment.peak_flops > 0) return std::nullopt;
  auto found = config::find_hardware_for_device(device, experiment.path);
  if (!found) throw Error(config::unknown_device_message(device, experiment.path));
  return found;
}

Plan plan_for_device(Plan plan, const std::string& device) {
  const auto matching = hardware_for(plan.experiment, device);
  if (!matching) return plan;
  plan.experiment.hardware = *matching;
  const bool as_planned = std::ranges::all_of(plan.cases, [&](const PlannedCase& planned) {
    return !planned.is_possible() || why_impossible(planned.settings, plan.experiment.hardware).empty();
  });
  if (!as_planned) return prepare(plan.experiment, plan.ranks, plan.only, plan.processes, plan.topology);
  refuse_what_does_not_fit(plan, [&](const PlannedCase&) { return configured_memory(plan.experiment); });
  return plan;
}

config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology) {
  config::Experiment e = experiment;
  e.changes.clear();
  for (const config::Change& change : experiment.changes) {
    if (change.from_model.empty()) {
      e.changes.push_back(change);
      continue;
    }
    const config::Variable& variable = *config::find_variable(change.variable);
    try {
      const TrainingStep step = training_step(experiment, ranks, topology);
      if (!step.why_impossible.empty())
        fail("the model's training step cannot run on {}: {}", plural(ranks, "rank"), step.why_impossible);
      const workloads::Workload& workload = workloads::workload_of(experiment.baseline);
      for (const std::string& value : workload.values_from_model(step.programs, experiment.baseline)) {
        if (value == variable.print(experiment.baseline)) continue;
        config::Settings settings = experiment.baseline;
        variable.parse(settings, value);
        e.changes.push_back({variable.name, value, std::move(settings), ""});
      }
    } catch (const Error& error) {
      fail("{}: from_model: {}", change.from_model, error.what());
    }
  }
  return e;
}

void name_uses(Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (e.model.layers == 0 || e.baseline.workload == config::training_workload) return;
  const TrainingStep step = training_step(e, plan.ranks, plan.topology);
  if (!step.why_impossible.empty()) return;
  const workloads::Workload& workload = workloads::workload_of(e.baseline);
  for (PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) planned.uses = workload.uses_in_model(step.programs, planned.settings);
  }
}

double planned_memory_bytes(const config::Experiment& experiment, const PlannedCase& planned) {
  if (planned.survey.roles == 0) return 0;
  return static_cast<double>(planned.survey.peak_bytes) +
         config::traits_of(config::stands_for(experiment)).worker_bytes;
}

DeviceMemory configured_memory(const config::Experiment& experiment) {
  if (config::traits_of(experiment.backend).ranks_are_gpus) {
    if (!experiment.hardware) return {};
    return {experiment.hardware->memory_bytes, "hardware file " + experiment.hardware->name};
  }
  return {experiment.measure.memory_limit_bytes, "measure.memory_limit"};
}

std::string why_too_large(const PlannedCase& planned, double bytes, const DeviceMemory& device, const char* used) {
  const double share = planned.settings.memory_cap;
  if (!(device.bytes > 0) || bytes <= share * device.bytes) return "";
  const std::string cap = share != 1 ? fmt::format("{:.4g} % (memory_cap) of ", 100 * share) : "";
  return fmt::format("{} {} of memory per rank, more than {}{} ({})", used, show_bytes(bytes), cap,
                     show_bytes(device.bytes), device.source);
}

void refuse_what_does_not_fit(Plan& plan, const std::function<DeviceMemory(const PlannedCase&)>& memory_of) {
  bool refused = false;
  for (PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    const double bytes = planned_memory_bytes(plan.experiment, planned);
    const DeviceMemory device = memory_of(planned);
    planned.impossible = why_too_large(planned, bytes, device, "needs");
    if (!planned.is_possible() && config::traits_of(plan.experiment.backend).predicts()) {
      constexpr double step = 5;  // percent
      const double cap = step * std::ceil(100 * bytes / device.bytes / step);
      planned.impossible += fmt::format("; to predict it nevertheless: memory_cap: {:.0f} %", cap);
    }
    refused = refused || !planned.is_possible();
    if (!planned.is_possible() || !(device.bytes > 0) || bytes <= device.bytes) continue;
    std::string note = fmt::format("hypothetical: it needs {} of memory per rank, and there are {} ({})",
                                   show_bytes(bytes), show_bytes(device.bytes), device.source);
    if (std::ranges::find(planned.notes, note) == planned.notes.end()) planned.notes.push_back(std::move(note));
  }
  if (!refused) return;
  require_baseline(plan);
  schedule_blocks(plan);
}

}  // namespace harness::plan
