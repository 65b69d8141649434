#include "sim/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"

namespace harness::sim {
namespace {

void warn_outside(const config::CalibratedRange& range, std::int64_t value, const char* what, Trust& trust) {
  if (range.most == 0 || range.has(value)) return;
  trust.warnings.push_back(
      fmt::format("{} {} lies outside of what was measured, {} to {}", what, value, range.least, range.most));
}

std::string words_of(const config::Validation::Errors& errors, const char* what) {
  return fmt::format("{} of a {} (9 of 10 within {})", percent(errors.mean), what, percent(errors.nine_of_ten));
}

// The largest error of changes that a calibration states, for 9 of 10 (docs/accuracy.md).
constexpr double largest_of_change = 0.24;

// Variables whose values the Program does not show and that no law of costs has.
constexpr std::array<std::string_view, 6> unknown{"attention_engine",    "cuda_graph", "threads",
                                                  "allreduce_algorithm", "env",        "host_binding"};
// NCCL's variables that nccl_time.h has.
constexpr std::array<std::string_view, 6> known_of_nccl{"nccl_algo",     "nccl_proto", "nccl_min_ctas",
                                                        "nccl_max_ctas", "nccl_nvls",  "nccl_collnet"};

bool knows(std::string_view name) {
  if (name.starts_with("nccl_")) return std::ranges::find(known_of_nccl, name) != known_of_nccl.end();
  return std::ranges::find(unknown, name) == unknown.end();
}

std::vector<std::string> unknown_between(const config::Settings& a, const config::Settings& b) {
  std::vector<std::string> names;
  for (const config::Variable& v : config::registry()) {
    if (!knows(v.name) && v.print(a) != v.print(b)) names.push_back(v.name);
  }
  return names;
}

}  // namespace

ExpectedErrors expected_errors(const config::Calibration& calibration, const config::Hardware& hardware) {
  const config::Validation& v = calibration.validation;
  if (v.steps == 0) return {};
  if (!calibration.has_measured(hardware)) {
    if (!(v.step_of_new_gpu.mean > 0)) return {};
    return {v.step_of_new_gpu.mean > v.step.mean ? v.step_of_new_gpu : v.step, std::nullopt};
  }
  return {v.step, v.changes > 0 ? std::optional(v.change) : std::nullopt};
}

std::string expected_error_words(const config::Calibration& calibration, const config::Hardware& hardware) {
  const ExpectedErrors errors = expected_errors(calibration, hardware);
  if (!errors.step) {
    return calibration.validation.steps == 0
               ? fmt::format("not known: no measured step was compared with calibration {}", calibration.file)
               : fmt::format("not known: calibration {} was compared with steps of {} alone", calibration.file,
                             join(calibration.gpus, ", "));
  }
  std::string text = words_of(*errors.step, "step");
  if (!calibration.has_measured(hardware)) text += ", as on GPUs that the fit left out";
  return text + (errors.change ? ", " + words_of(*errors.change, "change") : "; of a change not known");
}

double least_change(const config::Calibration& calibration, const config::Hardware& hardware) {
  const ExpectedErrors errors = expected_errors(calibration, hardware);
  return errors.change ? errors.change->nine_of_ten : largest_of_change;
}

double smallest_effect(const config::Experiment& experiment) {
  const double asked = experiment.measure.smallest_effect;
  if (!config::traits_of(experiment.backend).predicts()) return asked;
  return std::max(asked, least_change(*experiment.calibration, *experiment.hardware));
}

std::string unknown_change(const config::Settings& baseline, const config::Settings& changed) {
  const std::vector<std::string> names = unknown_between(baseline, changed);
  return names.empty() ? "" : names.front();
}

std::vector<std::string> disregarded(const config::Settings& settings) {
  return unknown_between({}, settings);
}

Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration) {
  Trust trust{expected_errors(calibration, hardware), expected_error_words(calibration, hardware), {}};
  if (calibration.gpus.empty()) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: calibration {} rests on published tables alone", calibration.file));
  } else if (!calibration.has_measured(hardware)) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: no step was measured on {}, of which only published tables are known; steps were "
                    "measured on {}",
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
