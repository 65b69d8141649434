#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/registry.h"
#include "report/words.h"

namespace harness {
namespace {

std::string backend_line(const std::string& backend) {
  if (backend == "cpu") {
    return "Backend cpu: real arithmetic and real collectives on CPU cores. These numbers say nothing about a GPU.";
  }
  return "Backend " + backend + ".";
}

std::string run_line(const Result& result) {
  const auto counted = [](std::int64_t n, const char* noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
  };
  const auto blocks =
      fmt::format("{} of {} warm-up and {} timed {}, seed {}; {}", counted(result.rounds, "round"), result.warmup_steps,
                  result.steps, result.steps == 1 ? "step" : "steps", result.seed, result.created);
  if (workload_of(result) != "gpt") {
    return fmt::format("{}: workload {} on {} of {}; {}", result.name, workload_of(result),
                       counted(result.ranks, "rank"), counted(result.nodes, "node"), blocks);
  }
  return fmt::format("{}: model {} ({}, hidden {}, {}, vocab {}, sequence {}) on {} of {}; {}", result.name,
                     result.model_name, counted(result.layers, "layer"), result.hidden, counted(result.heads, "head"),
                     result.vocab, result.sequence, counted(result.ranks, "rank"), counted(result.nodes, "node"),
                     blocks);
}

bool honours(const Variable& variable, const std::string& backend, const std::string& workload) {
  if (!variable.honoured_by(workload)) return false;
  if (variable.fixed) return false;  // said elsewhere
  return std::any_of(variable.backends.begin(), variable.backends.end(),
                     [&](BackendKind kind) { return backend == name_of(kind); });
}

// What every case shares, and the baseline's value of what differs.
void settings_lines(const Result& result, std::vector<std::string>& lines) {
  std::vector<std::string> common, swept;
  for (std::size_t v = 0; v < result.variables.size() && !result.cases.empty(); ++v) {
    const std::string& first = result.cases[0].settings[v];
    const bool differs = std::any_of(result.cases.begin(), result.cases.end(),
                                     [&](const ResultCase& one) { return one.settings[v] != first; });
    // What the backend does nothing with, and what was left to a library, would be said a dozen times over.
    const Variable* variable = find_variable(result.variables[v]);
    const bool said = variable == nullptr || honours(*variable, result.backend, workload_of(result));
    if (!differs && (!said || first == "default" || first == "{}")) continue;
    (differs ? swept : common).push_back(result.variables[v] + "=" + first);
  }
  if (!common.empty()) lines.push_back("All cases: " + join(common, "  "));
  if (!swept.empty()) lines.push_back("Baseline: " + join(swept, "  "));
}

// What the columns of a single operation mean, and where the limit came from.
std::string rates_line(const Result& result) {
  const ResultPoint& first = result.points.front();
  const std::string time = fmt::format("time = step time / {} repetitions", first.repetitions);
  if (first.bus_factor == 0) return time + "; GB/s = operands and result, each once to or from memory, / time.";
  std::string limit = "no limit of the links is known: `fabric` in the configuration states it";
  for (const ResultPoint& point : result.points) {
    if (point.limit_bytes_per_s > 0) {
      limit = fmt::format("limit: what the links allow ({}), one direction", point.limit_source);
      break;
    }
  }
  return fmt::format(
      "{}; algbw = size / time, busbw = algbw x what a link must carry per byte of the size, both as in nccl-tests; "
      "{}.",
      time, limit);
}

std::string mfu_line(const Result& result, const Summary& summary) {
  std::vector<double> peaks;
  bool any = false;
  for (const auto& one : summary.cases) any |= one.mfu.has_value();
  for (const auto& one : result.cases) {
    if (one.peak_flops_per_rank > 0) peaks.push_back(one.peak_flops_per_rank);
  }
  if (!any) {
    return peaks.empty() ? "MFU is absent: the peak rate of a rank is unknown. A hardware file or peak_flops in the "
                           "configuration states it."
                         : "MFU is absent: nothing was measured.";
  }
  const auto [low, high] = std::minmax_element(peaks.begin(), peaks.end());
  const Scale scale = scale_of_flops(peaks);
  const std::string peak = *low == *high ? scale.print(*low) : scale.print(*low) + " to " + scale.print(*high);
  return fmt::format("{} = model FLOP / (step time x ranks x peak); FLOP counted {}; peak {} {} per rank, dense ({}).",
                     result.points.empty() ? "MFU" : "Of peak", result.flop_formula, peak, scale.unit,
                     result.peak_source);
}

bool works_differ(const Result& result) {
  return std::any_of(result.points.begin(), result.points.end(), [&](const ResultPoint& point) {
    const ResultPoint& first = result.points.front();
    const auto flop = [&](const ResultPoint& p) {
      const ResultCase& one = result.at(p);
      return one.model_flop_per_step / one.ranks;
    };
    return point.bytes * point.bus_factor != first.bytes * first.bus_factor || flop(point) != flop(first) ||
           point.repetitions != first.repetitions;
  });
}

std::string change_line(const Result& result, const Summary& summary) {
  int comparisons = 0;
  bool per_token = false;
  for (const auto& one : result.cases) {
    comparisons += one.role() == CaseRole::change && one.status != CaseStatus::impossible;
    per_token |= one.tokens_per_step != result.cases[0].tokens_per_step && one.tokens_per_step > 0;
  }
  const char* what = per_token ? "time per token (batches differ)" : "step time";
  if (works_differ(result)) {
    what = result.points.front().bus_factor > 0 ? "time per byte on the bus (the inverse of busbw)" : "time per FLOP";
  }
  std::string line = fmt::format("Change: {} against the baseline, paired within rounds; 95 % intervals", what);
  if (comparisons > 1) line += fmt::format(", which hold for all {} comparisons together", comparisons);
  line += fmt::format("; a verdict must clear {:.3g} %.", 100 * result.smallest_effect);
  if (std::isfinite(summary.noise)) {
    line += fmt::format(" The baseline and its copy scatter by {} from round to round.", percent(summary.noise, 2));
  }
  return line;
}

std::string loss_line(const Result& result, const Summary& summary) {
  if (!result.points.empty()) return "";  // nothing is trained
  for (const auto& one : summary.cases) {
    if (one.blocks == 0 || !std::isfinite(one.first_loss)) continue;
    return fmt::format("Loss of {}: {:.4f} at its first step, {:.4f} after {}.", one.name, one.first_loss,
                       one.last_loss, result.warmup_steps + result.steps);
  }
  return "";
}

}  // namespace

std::string workload_of(const Result& result) {
  const std::string_view workload = result.cases.empty() ? "" : result.setting(result.cases[0], "workload");
  return workload.empty() ? "gpt" : std::string(workload);
}

std::vector<std::string> context(const Result& result, const Summary& summary) {
  std::vector<std::string> lines{backend_line(result.backend), run_line(result)};
  settings_lines(result, lines);
  if (!result.points.empty()) lines.push_back(rates_line(result));
  const bool computes = result.points.empty() || result.points.front().bus_factor == 0;
  if (computes) lines.push_back(mfu_line(result, summary));
  lines.push_back(change_line(result, summary));
  if (std::string loss = loss_line(result, summary); !loss.empty()) lines.push_back(std::move(loss));
  return lines;
}

}  // namespace harness
