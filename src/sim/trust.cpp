#include "sim/trust.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "sim/known.h"

namespace harness::sim {
namespace {

void warn_outside(const config::CalibratedRange& range, std::int64_t value, const char* what, Trust& trust) {
  if (range.most == 0 || range.has(value)) return;
  trust.warnings.push_back(
      fmt::format("{} {} lies outside of what was measured, {} to {}", what, value, range.least, range.most));
}

}  // namespace

Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration) {
  const config::Validation::Errors& change = calibration.validation.change;
  const config::Validation::Errors& step = calibration.step_errors(hardware);
  Trust trust{step.mean, step.nine_of_ten, change.mean, change.nine_of_ten, {}};
  if (calibration.gpus.empty()) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: calibration {} rests on published tables alone{}", calibration.file,
                    calibration.validated_as.empty()
                        ? ""
                        : fmt::format("; its errors are those of {} and may be larger", calibration.validated_as)));
  } else if (calibration.is_new(hardware)) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: no measured step ran on {}, of which published tables alone are known; "
                    "measured were {}",
                    hardware.name, join(calibration.gpus, ", ")));
  }
  warn_outside(calibration.ranks, ranks, "the number of ranks", trust);
  if (settings.workload == config::training_workload) {
    warn_outside(calibration.hidden, model.hidden, "hidden size", trust);
    warn_outside(calibration.sequence, model.sequence, "sequence length", trust);
  }
  if (const auto& range = calibration.message_bytes;
      range.most > 0 && prediction.largest_message_bytes > static_cast<double>(range.most)) {
    trust.warnings.push_back(fmt::format("the largest collective, {}, lies outside of what was measured, up to {}",
                                         show_bytes(prediction.largest_message_bytes),
                                         show_bytes(static_cast<double>(range.most))));
  }
  if (const std::vector<std::string> names = disregarded(settings); !names.empty())
    trust.warnings.push_back(fmt::format("it takes no account of {}", join(names, ", ")));
  return trust;
}

}  // namespace harness::sim
