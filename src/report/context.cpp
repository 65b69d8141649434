#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/blocks.h"
#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/published.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "config/model.h"
#include "config/registry.h"
#include "report/metrics.h"
#include "report/words.h"

namespace harness::report {

std::string backend_line(const store::Result& result) {
  const config::BackendTraits& traits = config::traits_of(result.backend);
  if (traits.caveat.empty()) return fmt::format("Backend {}.", result.backend);
  std::string line = fmt::format("Backend {}: {}", result.backend, traits.caveat);
  if (traits.predicts() && !result.ranks_are_gpus()) {
    line += fmt::format(" It stands for backend {}, whose ranks are CPU cores: it says nothing about a GPU.",
                        result.step_backend());
  }
  return line;
}

namespace {

std::string blocks_words(const store::Result& result, const analysis::Summary& summary) {
  if (summary.predicted) return fmt::format("a step of each case in virtual time, {}", result.created);
  const char* shared = analysis::shares_processes(result) ? ", all sizes of a setting in one process" : "";
  return fmt::format("{} of {} warm-up and {}{}, seed {}; {}", plural(result.rounds, "round"), result.warmup_steps,
                     plural(result.steps, "timed step"), shared, result.seed, result.created);
}

std::string run_line(const store::Result& result, const analysis::Summary& summary) {
  const std::string workload = analysis::workload_of(result);
  const std::string subject = workload == "gpt"
                                  ? fmt::format("model {} ({})", result.model.name, config::in_words(result.model))
                                  : "workload " + workload;
  return fmt::format("{}: {} on {} of {}; {}", result.name, subject, plural(result.ranks, "rank"),
                     plural(result.nodes, "node"), blocks_words(result, summary));
}

bool honours(const config::Variable& variable, const store::Result& result) {
  if (!variable.honoured_by(analysis::workload_of(result))) return false;
  // A fixed one is shown elsewhere.
  return !variable.fixed && variable.honoured_on(result.backend, result.step_backend());
}

// Whether what a case sets a variable to decides anything there, or another variable does.
bool decides(const store::Result& result, const store::ResultCase& of, const config::Variable& variable) {
  if (variable.overridden_by.empty()) return true;
  const std::string_view other = result.setting(of, variable.overridden_by);
  return other.empty() || other == config::find_variable(variable.overridden_by)->print(config::Settings());
}

// The settings that every case shares, and the baseline's value of those that differ.
void settings_lines(const store::Result& result, std::vector<std::string>& lines) {
  std::vector<std::string> common, swept;
  for (std::size_t v = 0; v < result.variables.size() && !result.cases.empty(); ++v) {
    const std::string& first = result.cases[0].settings[v];
    const bool differs =
        std::ranges::any_of(result.cases, [&](const store::ResultCase& other) { return other.settings[v] != first; });
    // Settings that the backend ignores, or that were left to a library, would only add noise.
    const config::Variable* variable = config::find_variable(result.variables[v]);
    const bool honoured = variable == nullptr || honours(*variable, result);
    if (!differs && (!honoured || first == "default" || first == "{}")) continue;
    const auto says_nothing = [&](const store::ResultCase& of) { return !decides(result, of, *variable); };
    if (variable != nullptr && std::ranges::any_of(result.cases, says_nothing)) continue;
    (differs ? swept : common).push_back(result.variables[v] + "=" + first);
  }
  if (!common.empty()) lines.push_back("All cases: " + join(common, "  "));
  if (!swept.empty()) lines.push_back("Baseline: " + join(swept, "  "));
}

// Explains the columns of single operations, and where the limit comes from.
std::string rates_line(const store::Result& result) {
  const store::ResultPoint& first = result.points.front();
  if (first.bus_factor == 0) {
    return fmt::format("time = step time / {} repetitions; GB/s = (operands + result, each moved once) / time.",
                       first.repetitions);
  }
  const auto limited =
      std::ranges::find_if(result.points, [](const store::ResultPoint& p) { return p.limit_bytes_per_s > 0; });
  const std::string limit =
      limited == result.points.end()
          ? "No limit of the links is known: state it as `fabric` in the configuration."
          : fmt::format("limit = what the links allow in one direction ({}).", limited->limit_source);
  return fmt::format(
      "time = step time / {} repetitions; algbw = size / time; busbw = algbw x bytes on a link per byte of the size; "
      "both as in nccl-tests. {}",
      first.repetitions, limit);
}

std::string mfu_line(const store::Result& result, const analysis::Summary& summary) {
  std::vector<double> peaks;
  for (const store::ResultCase& result_case : result.cases) {
    if (result_case.peak_flops_per_rank > 0) peaks.push_back(result_case.peak_flops_per_rank);
  }
  if (peaks.empty()) {
    return "MFU is absent: the peak rate of a rank is unknown. State it with a hardware file or peak_flops in the "
           "configuration.";
  }
  if (std::ranges::none_of(summary.cases, [](const analysis::CaseSummary& row) { return row.mfu.has_value(); })) {
    return "MFU is absent: nothing was measured.";
  }
  const auto [low, high] = std::ranges::minmax(peaks);
  const Scale scale = scale_of_flops(peaks);
  const std::string peak = low == high ? scale.print(low) : scale.print(low) + " to " + scale.print(high);
  return fmt::format("{} = model FLOP / (step time x ranks x peak); FLOP counted {}; peak {} {} per rank, dense ({}).",
                     measured_by(result) == Measured::training ? "MFU" : "Of peak", result.flop_formula, peak,
                     scale.unit, result.peak_source);
}

// Whether some change does another amount of work than what it is compared with.
bool works_differ(const store::Result& result) {
  return std::ranges::any_of(result.points, [&](const store::ResultPoint& point) {
    const store::ResultPoint* reference = result.find_point(result.at(point).reference);
    const store::ResultPoint& first = reference == nullptr ? point : *reference;
    const auto flop = [&](const store::ResultPoint& p) {
      return result.at(p).model_flop_per_step / result.at(p).ranks;
    };
    return point.bytes * point.bus_factor != first.bytes * first.bus_factor || flop(point) != flop(first) ||
           point.repetitions != first.repetitions;
  });
}

// Says what a change is measured against, and how.
std::string reference_of(const store::Result& result, const analysis::Summary& summary) {
  const bool left =
      std::ranges::any_of(summary.levels, [](const auto& level) { return level.baseline_left.has_value(); });
  const bool with_copy = !left || analysis::is_grid(result);
  return fmt::format("the baseline{}{}, {}", with_copy ? " and its copy" : "",
                     analysis::is_grid(result) ? " at the same size" : "",
                     summary.levels.empty() ? "paired within rounds" : "each block at the machine's level of its time");
}

// How far blocks are off the machine's level: "0.8 %"; of several sizes from the least to the most.
std::string deviation_words(std::span<const analysis::LevelFindings> levels) {
  const auto [least, most] = std::ranges::minmax(levels, {}, &analysis::LevelFindings::block_deviation);
  const std::string low = percent(least.block_deviation, 2), high = percent(most.block_deviation, 2);
  return low == high ? low : fmt::format("{} to {}, by size", low, high);
}

std::string change_line(const store::Result& result, const analysis::Summary& summary) {
  if (summary.predicted) {
    return fmt::format(
        "Change: {} against the baseline, both predicted. A prediction has neither interval nor verdict; {} a change "
        "is too close to call.",
        what_changes(result), analysis::within_threshold_words(result.smallest_effect));
  }
  const int comparisons = analysis::declared_comparisons(result);
  std::string line = fmt::format("Change: {} against {}; {:.3g} % intervals", what_changes(result),
                                 reference_of(result, summary), 100 * result.confidence);
  if (comparisons > 1) line += fmt::format(", which hold for all {} comparisons together", comparisons);
  line += fmt::format("; a verdict must clear {}.", analysis::threshold_words(result.smallest_effect));
  if (std::isfinite(summary.noise)) {
    line += fmt::format(" Noise: the baseline and its copy differ by {} (standard deviation) between rounds.",
                        percent(summary.noise, 2));
  }
  if (!summary.levels.empty()) {
    line +=
        fmt::format(" A block is off the machine's level by {} (standard deviation).", deviation_words(summary.levels));
  }
  if (!result.looks.empty()) {
    const bool several = result.looks.find(',') != std::string::npos;
    line += fmt::format(" The sweep looks after {} {}{}; what is settled leaves.", several ? "rounds" : "round",
                        replaced(result.looks, {{',', ", "}}),
                        result.extended.empty() ? ", and the looks share the error" : "");
  }
  return line;
}

std::string loss_line(const store::Result& result, const analysis::Summary& summary) {
  if (!result.points.empty()) return "";  // nothing is trained
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.blocks == 0 || !std::isfinite(row.first_loss)) continue;
    const bool rises = row.last_loss >= row.first_loss;
    return fmt::format("Loss of {}: {:.4f} at its first step, {:.4f} after {}.{}", row.name, row.first_loss,
                       row.last_loss, result.warmup_steps + result.steps,
                       rises ? " The tokens are random, so it need not fall." : "");
  }
  return "";
}

// The baseline beside published steps; "" where none is near.
std::string published_of(const store::Result& result, const analysis::Summary& summary) {
  const std::string line = analysis::published_line(result, summary);
  return line.empty() ? "" : fmt::format("Baseline: {}.", line);
}

// The calibration that a prediction rests on.
std::string calibration_line(const store::Result& result) {
  const std::string calibration = value_of(result.identity, "calibration");
  if (calibration.empty()) return "";
  const std::string error = value_of(result.identity, "expected_error");
  return fmt::format("Calibration: {}{}.", calibration, error.empty() ? "" : "; expected error: " + error);
}

}  // namespace

std::string what_changes(const store::Result& result) {
  if (works_differ(result)) {
    return measured_by(result) == Measured::collective ? "time per byte on the bus" : "time per FLOP";
  }
  const bool batches_differ = std::ranges::any_of(result.cases, [&](const store::ResultCase& result_case) {
    return result_case.tokens_per_step > 0 && result_case.tokens_per_step != result.cases[0].tokens_per_step;
  });
  return batches_differ ? "time per token (batches differ)" : "step time";
}

std::string per_what(const store::Result& result) {
  if (!works_differ(result)) return "";
  return measured_by(result) == Measured::collective ? " per byte on the bus" : " per FLOP";
}

std::string subject_of(const store::Result& result) {
  return result.points.empty() ? result.model.name : "workload " + analysis::workload_of(result);
}

std::vector<std::string> short_context(const store::Result& result, const analysis::Summary& summary) {
  std::string text = fmt::format("{}: {} on {} of {}, backend {}", result.name, subject_of(result),
                                 plural(result.ranks, "rank"), plural(result.nodes, "node"), result.backend);
  if (summary.predicted) text += ", predicted, not measured";
  if (!result.ranks_are_gpus()) text += ": nothing here is about a GPU";
  text += ".";
  if (const std::string error = value_of(result.identity, "expected_error"); !error.empty())
    text += fmt::format(" Expected error: {}.", error);
  if (summary.predicted) {
    text += fmt::format(" A change {} is too close to call.", analysis::within_threshold_words(result.smallest_effect));
  } else if (!analysis::sweeps_sizes_alone(result)) {
    text += fmt::format(" {}; a verdict must clear {}.", plural(result.rounds, "round"),
                        analysis::threshold_words(result.smallest_effect));
  }
  std::vector<std::string> lines{text + " -v says more.", published_of(result, summary)};
  std::erase(lines, "");
  return lines;
}

std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary) {
  std::vector<std::string> lines{backend_line(result), run_line(result, summary), calibration_line(result)};
  if (result.sessions > 1) {
    lines.push_back(
        fmt::format("Resumed: measured in {} sessions, each a start of the sweep. A change compares blocks of one "
                    "session only; the medians of a row mix them.",
                    result.sessions));
  }
  settings_lines(result, lines);
  if (!result.points.empty()) lines.push_back(rates_line(result));
  if (measured_by(result) != Measured::collective) lines.push_back(mfu_line(result, summary));
  lines.push_back(published_of(result, summary));
  if (!analysis::sweeps_sizes_alone(result)) lines.push_back(change_line(result, summary));
  lines.push_back(loss_line(result, summary));
  std::erase(lines, "");
  return lines;
}

}  // namespace harness::report
