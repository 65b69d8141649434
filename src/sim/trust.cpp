#include "sim/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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

std::string words_of(const config::Errors& errors, const char* what, std::string_view tier) {
  return fmt::format("{} of a {} (9 of 10 within {}{})", percent(errors.median), what, percent(errors.nine_of_ten),
                     tier);
}

struct TierRow {
  const char *letter, *meaning;
};
constexpr std::array<TierRow, 5> tiers{
    {{"", ""},
     {"A", "this cluster has a step among those that the calibration was compared with"},
     {"B", "this software and GPU, on a cluster that was not measured"},
     {"C", "a GPU on which no step was measured"},
     {"D", "software of which no step was measured"}}};  // in the order of Tier

// Measured once on 229 published steps that no number was fitted to, by source (docs/simulation.md).
constexpr config::Errors held_back{0.05, 0.11};      // labs whose other steps were fitted
constexpr config::Errors of_other_labs{0.13, 0.38};  // 56 of the 67 took longer than predicted
// Errors of the fitted steps with their GPU or their software left out of the fit, plus an unknown cluster.
constexpr config::Errors of_other_gpu{0.17, 0.42};
constexpr config::Errors of_other_software{0.26, 0.42};  // 0.36 on few steps: raised to that of the better known tier
constexpr config::Errors of_nvfp4{0.19, 0.41};
constexpr double outside = 1.5;

// Returns the median and the 0.9 quantile of the groups' medians: a group with many steps counts once.
config::Errors over_groups(const std::vector<config::StepError>& steps) {
  std::map<std::string, std::vector<double>> groups;
  for (const config::StepError& step : steps) groups[step.group].push_back(std::abs(step.error));
  const auto at = [](std::vector<double>& sizes, double share) {
    std::ranges::sort(sizes);
    return sizes[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sizes.size()))) - 1];
  };
  std::vector<double> medians;
  for (auto& [name, sizes] : groups) medians.push_back(at(sizes, 0.5));
  return {at(medians, 0.5), at(medians, 0.9)};
}

config::Errors larger(const config::Errors& a, const config::Errors& b) {
  return {std::max(a.median, b.median), std::max(a.nine_of_ten, b.nine_of_ten)};
}

// The largest error of a change in any calibration, for 9 of 10 (docs/accuracy.md).
constexpr double largest_of_change = 0.24;

// Variables that neither the Program nor any law of costs takes into account.
constexpr std::array<std::string_view, 6> unknown{"attention_engine",    "cuda_graph", "threads",
                                                  "allreduce_algorithm", "env",        "data_file"};
// The NCCL variables that nccl_time.cpp models.
constexpr std::array<std::string_view, 6> known_of_nccl{"nccl_algo",     "nccl_proto", "nccl_min_ctas",
                                                        "nccl_max_ctas", "nccl_nvls",  "nccl_collnet"};

bool knows(std::string_view name) {
  if (name.starts_with("nccl_")) return std::ranges::find(known_of_nccl, name) != known_of_nccl.end();
  return std::ranges::find(unknown, name) == unknown.end();
}

// "13.0 % of a step (9 of 10 within 38.0 %; tier B: …), 9.2 % of a change (9 of 10 within 24.0 %)", or why none is
// stated.
std::string words_of(const ExpectedErrors& errors, const config::Calibration& calibration, bool beyond) {
  if (!errors.step) {
    return calibration.gpus.empty()
               ? fmt::format("not known: no measured step was compared with calibration {}", calibration.file)
               : fmt::format("not known: no step was compared with calibration {}, which was measured on {}",
                             calibration.file, join(calibration.gpus, ", "));
  }
  const TierRow& row = tiers[static_cast<std::size_t>(errors.tier)];
  const std::string tier =
      beyond ? fmt::format("; tier E: outside of what was measured, half as much again as tier {}", row.letter)
             : fmt::format("; tier {}: {}", row.letter, row.meaning);
  const std::string text = words_of(*errors.step, "step", tier);
  return text + (errors.change ? ", " + words_of(*errors.change, "change", "") : "; of a change not known");
}

}  // namespace

ExpectedErrors expected_errors(const config::Calibration& calibration, const config::Hardware& hardware) {
  if (calibration.errors.empty()) {
    // A calibration made on the machine at hand has no steps to be compared with.
    const bool from_tables = calibration.gpus.empty() && config::traits_of(calibration.backend).ranks_are_gpus;
    if (!from_tables) return {};
    return {Tier::other_software, of_other_software, std::nullopt};
  }
  if (!calibration.has_measured(hardware)) return {Tier::other_gpu, of_other_gpu, std::nullopt};
  const auto change = calibration.change.nine_of_ten > 0 ? std::optional(calibration.change) : std::nullopt;
  if (std::ranges::any_of(calibration.errors, [](const auto& step) { return step.lab == "own"; }))
    return {Tier::own_cluster, larger(over_groups(calibration.errors), held_back), change};
  return {Tier::other_cluster, larger(over_groups(calibration.errors), of_other_labs), change};
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

std::vector<std::string> ignored_between(const config::Settings& a, const config::Settings& b) {
  std::vector<std::string> names;
  for (const config::Variable& v : config::registry()) {
    if (!knows(v.name) && v.print(a) != v.print(b)) names.push_back(v.name);
  }
  return names;
}

Trust trust_in(const Prediction& prediction, const config::Model& model, const config::Settings& settings, int ranks,
               const config::Hardware& hardware, const config::Calibration& calibration) {
  Trust trust{expected_errors(calibration, hardware), {}, {}};
  if (calibration.gpus.empty()) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: calibration {} rests on published tables alone", calibration.file));
  } else if (!calibration.has_measured(hardware)) {
    trust.warnings.push_back(
        fmt::format("uncalibrated: no step was measured on {}, of which only published tables are known; steps were "
                    "measured on {}",
                    hardware.name, join(calibration.gpus, ", ")));
  }
  const std::size_t before = trust.warnings.size();
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
  const bool beyond = trust.warnings.size() > before;
  if (trust.errors.step) {
    config::Errors& step = *trust.errors.step;
    if (settings.precision == config::Precision::nvfp4) step = larger(step, of_nvfp4);
    if (beyond) step = {outside * step.median, outside * step.nine_of_ten};
  }
  trust.error_words = words_of(trust.errors, calibration, beyond);
  if (const std::vector<std::string> names = ignored_between({}, settings); !names.empty())
    trust.warnings.push_back(fmt::format("it takes no account of {}", join(names, ", ")));
  return trust;
}

}  // namespace harness::sim
