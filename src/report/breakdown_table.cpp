#include "report/breakdown_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/words.h"

namespace harness {
namespace {

constexpr std::size_t most_roles = 8;  // columns

Scale scale_of(const StepFindings& step) {
  return scale_of_seconds(std::array{step.breakdown.mean.step_s});
}

std::string cell(const std::optional<double>& value, const Scale& scale) {
  return value ? fmt::format("{:.2f}", *value / scale.factor + 0.0) : "";
}

const WaterfallBar* bar_of(const StepFindings& step, std::optional<Part> part) {
  if (!step.waterfall) return nullptr;
  const auto found = std::ranges::find(step.waterfall->bars, part, &WaterfallBar::part);
  return found == step.waterfall->bars.end() ? nullptr : &*found;
}

// "+1.2", and "0.0" for what rounds to it from either side.
std::string signed_number(double value, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", value, decimals);
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string points(double share) {
  return signed_number(-100 * share, 1);
}

std::string difference(const std::optional<double>& now, const std::optional<double>& before, const Scale& scale) {
  if (!now && !before) return "";
  return signed_number((now.value_or(0) - before.value_or(0)) / scale.factor, 2);
}

}  // namespace

Table breakdown_table(const StepFindings& step, const StepFindings* baseline) {
  const Scale scale = scale_of(step);
  const Breakdown& mean = step.breakdown.mean;
  const bool roles = step.breakdown.ranks.size() > 1 && step.breakdown.ranks.size() <= most_roles;
  Table table;
  const auto heading = [&](const std::string& text) { table.columns.push_back({text, false}); };
  table.columns.push_back({"part of the profiled step", true});
  if (baseline != nullptr) heading("baseline " + scale.unit);
  heading(scale.unit);
  if (baseline != nullptr) heading("change");
  heading("share");
  if (step.waterfall) heading("MFU"), heading("roof " + scale.unit);
  for (const Breakdown& b : step.breakdown.ranks) {
    if (roles) heading(fmt::format("rank {}", b.rank));
  }
  const auto row = [&](const std::string& name, auto&& seconds, const std::string& share, const std::string& lost,
                       const std::string& roof) {
    auto& cells = table.rows.emplace_back();
    const std::optional<double> now = seconds(mean);
    cells.push_back(name);
    if (baseline != nullptr) cells.push_back(cell(seconds(baseline->breakdown.mean), scale));
    cells.push_back(cell(now, scale));
    if (baseline != nullptr) cells.push_back(difference(now, seconds(baseline->breakdown.mean), scale));
    cells.push_back(share);
    if (step.waterfall) cells.push_back(lost), cells.push_back(roof);
    for (const Breakdown& b : step.breakdown.ranks) {
      if (roles) cells.push_back(cell(seconds(b), scale));
    }
  };
  if (step.waterfall)
    row(
        "(peak)", [](const Breakdown&) { return std::optional<double>(); }, "", "100.0 %", "");
  for (const Part part : all_parts) {
    const bool before = baseline != nullptr && baseline->breakdown.mean[part];
    if (!mean[part] && !before) continue;
    const WaterfallBar* bar = bar_of(step, part);
    row(
        name_of(part), [part](const Breakdown& b) { return b[part]; }, mean[part] ? percent(mean.share(part)) : "",
        bar != nullptr ? points(bar->points) : "", bar != nullptr && bar->roof_s ? cell(bar->roof_s, scale) : "");
  }
  const WaterfallBar* rest = bar_of(step, std::nullopt);
  row(
      "step, profiled", [](const Breakdown& b) { return std::optional<double>(b.step_s); }, "100.0 %",
      rest != nullptr ? points(rest->points) : "", "");
  if (step.waterfall) {
    row(
        "step, timed",
        [&](const Breakdown& b) {
          const StepFindings* of = &b == &mean ? &step : nullptr;
          if (baseline != nullptr && &b == &baseline->breakdown.mean) of = baseline;
          return of != nullptr && of->waterfall ? std::optional<double>(of->waterfall->step_s) : std::nullopt;
        },
        "", percent(step.waterfall->mfu), cell(step.waterfall->ideal_s, scale));
  }
  return table;
}

Table straggler_table(const Stragglers& stragglers, std::size_t rows) {
  Table table;
  table.columns = {{"rank", false},        {"host", true},          {"device", true},   {"late ms", false},
                   {"of the step", false}, {"computing ms", false}, {"idle ms", false}, {"late in", true},
                   {"last in", true},      {"then by ms", false}};
  const auto ms = [](double s) { return fmt::format("{:+.2f}", 1e3 * s); };
  for (const Straggler& s : stragglers.ranks) {
    if (table.rows.size() == rows) break;
    table.rows.push_back(
        {std::to_string(s.rank) + (s.named ? " *" : ""), one_line(s.host), one_line(s.device),
         stragglers.cases > 0 ? ms(s.late_s) : "", stragglers.cases > 0 ? percent(s.late_share) : "",
         stragglers.cases > 0 ? ms(s.compute_s) : "", stragglers.cases > 0 ? ms(s.idle_s) : "",
         stragglers.cases > 0 ? fmt::format("{} of {} profiled steps", s.late_cases, stragglers.cases) : "",
         stragglers.steps > 0 ? fmt::format("{} of {} timed steps", s.last_steps, stragglers.steps) : "",
         s.last_steps > 0 ? ms(s.last_excess_s) : ""});
  }
  return table;
}

}  // namespace harness
