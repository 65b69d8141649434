#include "plan/fit.h"

#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace harness::plan {

double planned_memory_bytes(config::BackendKind backend, const PlannedCase& planned) {
  if (planned.survey.roles == 0) return 0;
  return static_cast<double>(planned.survey.peak_bytes) + config::traits_of(backend).worker_bytes;
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

namespace {

// In percent, in steps of five.
double cap_for(double bytes, const DeviceMemory& device) {
  constexpr double step = 5;
  return step * std::ceil(100 * bytes / device.bytes / step);
}

}  // namespace

void refuse_what_does_not_fit(Plan& plan, const std::function<DeviceMemory(const PlannedCase&)>& memory_of) {
  bool refused = false;
  for (PlannedCase& planned : plan.cases) {
    if (!planned.is_possible()) continue;
    const double bytes = planned_memory_bytes(plan.experiment.backend, planned);
    const DeviceMemory device = memory_of(planned);
    planned.impossible = why_too_large(planned, bytes, device, "needs");
    if (!planned.is_possible() && config::traits_of(plan.experiment.backend).predicts())
      planned.impossible += fmt::format("; to predict it nevertheless: memory_cap: {:.0f} %", cap_for(bytes, device));
    refused = refused || !planned.is_possible();
    if (planned.is_possible() && device.bytes > 0 && bytes > device.bytes) {
      planned.notes.push_back(fmt::format("hypothetical: it needs {} of memory per rank, and there are {} ({})",
                                          show_bytes(bytes), show_bytes(device.bytes), device.source));
    }
  }
  if (!refused) return;
  require_baseline(plan);
  schedule_blocks(plan);
}

}  // namespace harness::plan
