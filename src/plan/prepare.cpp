#include "plan/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "plan/check_settings.h"
#include "plan/from_model.h"

namespace harness {
namespace {

// A worker without a model: the program, its libraries and their thread stacks. Measured on the cpu backend
// (docs/method.md); a GPU's context is on the GPU and in its own figures.
constexpr double worker_base_bytes = 30 << 20;

}  // namespace

Plan prepare(const Experiment& experiment, FusedSet declared, int ranks, const std::vector<std::string>& only) {
  Plan plan = make_plan(with_model_values(experiment, ranks), ranks, only);
  for (PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    planned.survey = survey(experiment.model, planned, declared);
  }
  return plan;
}

double planned_memory_bytes(const PlannedCase& planned) {
  if (planned.survey.roles == 0) return 0;
  return static_cast<double>(planned.survey.peak_bytes) + worker_base_bytes;
}

Peak configured_peak(const Experiment& experiment, Precision precision) {
  if (experiment.peak_flops > 0) return {experiment.peak_flops, "given in the configuration (peak_flops)"};
  if (!experiment.hardware) return {};
  const Hardware& h = *experiment.hardware;
  const double flops = h.peak_flops(precision);
  if (flops == 0) return {};
  return {flops, fmt::format("hardware file {}: {}", h.name, h.source)};
}

std::optional<Hardware> hardware_for(const Experiment& experiment, const std::string& device) {
  if (experiment.hardware) {
    const Hardware& h = *experiment.hardware;
    if (h.devices.empty() || h.is(device)) return std::nullopt;
    fail(
        "the configuration counts with the peak of {} (devices: {}), but the ranks' GPU is a {}: MFU would be wrong. "
        "Leave `hardware` out to have its file found, or name the right one; if it is this GPU under another name, add "
        "that to `devices` in the file",
        h.name, fmt::join(h.devices, ", "), device);
  }
  if (experiment.without_hardware || experiment.peak_flops > 0) return std::nullopt;
  auto found = find_hardware_for_device(device, experiment.path);
  if (!found) throw Error(unknown_device_message(device, experiment.path));
  return found;
}

Plan plan_for_device(Plan plan, FusedSet declared, const std::string& device) {
  const auto matching = hardware_for(plan.experiment, device);
  if (!matching) return plan;
  plan.experiment.hardware = *matching;
  const bool as_planned = std::ranges::all_of(plan.cases, [&](const PlannedCase& planned) {
    return !planned.is_possible() || check_settings(planned.settings, plan.experiment.hardware).empty();
  });
  return as_planned ? plan : prepare(plan.experiment, declared, plan.ranks, plan.only);
}

}  // namespace harness
