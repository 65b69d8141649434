#include "plan/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "plan/fit.h"
#include "plan/from_model.h"
#include "plan/why_impossible.h"

namespace harness::plan {
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
  if (experiment.peak_flops > 0) return {experiment.peak_flops, "given in the configuration (peak_flops)"};
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

}  // namespace harness::plan
