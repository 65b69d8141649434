#include "report/pooled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/runs.h"
#include "config/registry.h"
#include "report/context.h"
#include "report/effect_words.h"
#include "report/scale.h"

namespace harness::report {
namespace {

constexpr std::array<std::string_view, 4> of_one_sweep{"blocks", "settled_after", "speedup", "efficiency"};

KnownChange known_change(const analysis::PooledCase& row) {
  return {row.name, row.judgement.verdict, row.ratio, row.low, row.high};
}

// How much hardware there is is no setting that could be better.
bool is_scaling(const PooledReport& report, const analysis::PooledCase& row) {
  return std::ranges::any_of(report.files, [&](const analysis::ComparedFile& file) {
    const store::ResultCase* known = file.result->find_case(row.name);
    return known != nullptr && config::purpose_of(known->variable) == config::Purpose::scale;
  });
}

std::string what_was_found(const PooledReport& report) {
  std::vector<KnownChange> changes;
  for (const analysis::PooledCase& row : report.pool.cases) {
    if (row.role == store::CaseRole::change && !is_scaling(report, row)) changes.push_back(known_change(row));
  }
  if (report.files.size() < analysis::runs_for_an_interval) {
    return "Two runs have no interval, so there is no verdict: a third run is needed.";
  }
  if (changes.empty()) return "Only baselines or numbers of ranks were measured: there is no change to judge.";
  const Asked asked{report.pool.smallest_effect, static_cast<int>(changes.size()), per_what(*report.files[0].result)};
  std::string text = what_moved(changes, asked);
  return text.empty() ? "No change was measured in three runs, which an interval needs." : text;
}

// "-14.9 % in a.h5 to -4.1 % in c.h5"
std::string range_of(const PooledReport& report, const analysis::PooledCase& row) {
  std::vector<analysis::RunOfCase> counting;
  std::ranges::copy_if(row.runs, std::back_inserter(counting),
                       [](const analysis::RunOfCase& run) { return std::isfinite(run.ratio); });
  const auto [low, high] = std::ranges::minmax(counting, {}, &analysis::RunOfCase::ratio);
  return fmt::format("{} in {} to {} in {}", change_words(low.ratio), report.files[low.file].label,
                     change_words(high.ratio), report.files[high.file].label);
}

}  // namespace

std::string pooled_headline(const PooledReport& report) {
  const std::string runs = fmt::format("{} runs pooled. ", report.files.size());
  if (!report.pool.unreliable) return runs + what_was_found(report);
  const auto control = std::ranges::find(report.pool.cases, store::CaseRole::control, &analysis::PooledCase::role);
  return runs + fmt::format(
                    "Unreliable: over the runs the control baseline_again took {} than the baseline, which it "
                    "repeats; no verdict below counts.",
                    how_much(known_change(*control), per_what(*report.files[0].result)));
}

std::string show(const PooledReport& report, Format format) {
  if (format == Format::csv) return pooled_csv(report);
  if (format == Format::json) return pooled_json(report);
  return write(pooled_document(report), format);
}

std::vector<Metric> pooled_metrics(const store::Result& result) {
  std::vector<Metric> metrics;
  for (const Metric& metric : case_metrics()) {
    const bool left_out = metric.key.starts_with("effect.") || !belongs(metric, result) ||
                          std::ranges::find(of_one_sweep, metric.key) != of_one_sweep.end();
    if (!left_out) metrics.push_back(metric);
  }
  return metrics;
}

std::optional<double> pooled_value(const PooledReport& report, const analysis::PooledCase& row, const Metric& metric) {
  return analysis::median_over_runs(row, report.files, metric.value);
}

std::string pooled_verdict(const analysis::PooledCase& row) {
  if (row.judgement.reason == analysis::Reason::too_few_rounds) return "too few runs";
  return analysis::name_of(row.judgement);
}

std::vector<std::string> pooled_remarks(const PooledReport& report, const analysis::PooledCase& row) {
  std::vector<std::string> remarks;
  if (row.runs_differ) {
    remarks.push_back(fmt::format("runs differ more than their rounds explain: {} (p {:.2g})", range_of(report, row),
                                  row.runs_differ_p.value_or(0)));
  }
  remarks.insert(remarks.end(), row.remarks.begin(), row.remarks.end());
  return remarks;
}

}  // namespace harness::report
