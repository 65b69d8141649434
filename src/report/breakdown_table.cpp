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

Scale scale_of(const StepAnalysis::One& one) {
  const std::array<double, 1> step{one.breakdown.mean.step_s};
  return scale_of_seconds(step);
}

std::string cell(const std::optional<double>& value, const Scale& scale) {
  return value ? fmt::format("{:.2f}", *value / scale.factor + 0.0) : "";
}

const WaterfallBar* bar_of(const StepAnalysis::One& one, std::optional<Part> part) {
  if (!one.fall) return nullptr;
  const auto found = std::ranges::find(one.fall->bars, part, &WaterfallBar::part);
  return found == one.fall->bars.end() ? nullptr : &*found;
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

StepAnalysis analyse_steps(const Result& result, const Summary& summary) {
  StepAnalysis all;
  all.stragglers = find_stragglers(result);
  all.rules = fired_rules(result, summary);
  for (CaseBreakdown& breakdown : break_down(result)) {
    StepAnalysis::One one;
    const CaseSummary& of = summary.cases[static_cast<std::size_t>(breakdown.case_index)];
    one.fall = waterfall(result, of, breakdown);
    one.bottleneck = find_bottleneck(result, breakdown, one.fall ? &*one.fall : nullptr, all.stragglers);
    one.rules = fired_rules(result, summary, breakdown);
    one.breakdown = std::move(breakdown);
    all.cases.push_back(std::move(one));
  }
  return all;
}

Table breakdown_table(const StepAnalysis::One& one, const StepAnalysis::One* baseline) {
  const Scale scale = scale_of(one);
  const Breakdown& mean = one.breakdown.mean;
  const bool roles = one.breakdown.ranks.size() > 1 && one.breakdown.ranks.size() <= most_roles;
  Table table;
  const auto heading = [&](const std::string& text) { table.columns.push_back({text, false}); };
  table.columns.push_back({"part of the profiled step", true});
  if (baseline != nullptr) heading("baseline " + scale.unit);
  heading(scale.unit);
  if (baseline != nullptr) heading("change");
  heading("share");
  if (one.fall) heading("MFU"), heading("roof " + scale.unit);
  for (const Breakdown& b : one.breakdown.ranks) {
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
    if (one.fall) cells.push_back(lost), cells.push_back(roof);
    for (const Breakdown& b : one.breakdown.ranks) {
      if (roles) cells.push_back(cell(seconds(b), scale));
    }
  };
  if (one.fall)
    row(
        "(peak)", [](const Breakdown&) { return std::optional<double>(); }, "", "100.0 %", "");
  for (std::size_t i = 0; i < part_count; ++i) {
    const bool before = baseline != nullptr && baseline->breakdown.mean.parts.seconds[i];
    if (!mean.parts.seconds[i] && !before) continue;
    const WaterfallBar* bar = bar_of(one, part_at(i));
    row(
        name_of(part_at(i)), [i](const Breakdown& b) { return b.parts.seconds[i]; },
        mean.parts.seconds[i] ? percent(mean.share(part_at(i))) : "", bar != nullptr ? points(bar->points) : "",
        bar != nullptr && bar->roof_s ? cell(bar->roof_s, scale) : "");
  }
  const WaterfallBar* rest = bar_of(one, std::nullopt);
  row(
      "step, profiled", [](const Breakdown& b) { return std::optional<double>(b.step_s); }, "100.0 %",
      rest != nullptr ? points(rest->points) : "", "");
  if (one.fall) {
    row(
        "step, timed",
        [&](const Breakdown& b) {
          const StepAnalysis::One* of = &b == &mean ? &one : nullptr;
          if (baseline != nullptr && &b == &baseline->breakdown.mean) of = baseline;
          return of != nullptr && of->fall ? std::optional<double>(of->fall->step_s) : std::nullopt;
        },
        "", percent(one.fall->mfu), cell(one.fall->ideal_s, scale));
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
