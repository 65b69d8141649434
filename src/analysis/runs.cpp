#include "analysis/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.h"

namespace harness::analysis {

std::optional<double> log_ratio_of(const CaseSummary& row) {
  if (!row.effect || row.effect->verdict == Verdict::not_honoured) return {};
  if (timed_something_else(row.judgement) || !std::isfinite(row.effect->ratio)) return {};
  return std::log(row.effect->ratio);
}

ConfidenceInterval interval_over_runs(std::span<const double> log_ratios, double alpha) {
  if (log_ratios.size() >= runs_for_an_interval) return mean_interval(log_ratios, alpha);
  ConfidenceInterval interval;
  interval.n = static_cast<int>(log_ratios.size());
  if (!log_ratios.empty()) interval.center = std::reduce(log_ratios.begin(), log_ratios.end()) / interval.n;
  return interval;
}

double strictest_confidence(std::span<const ComparedFile> files) {
  double strictest = 0;
  for (const ComparedFile& file : files) strictest = std::max(strictest, file.result->confidence);
  return strictest;
}

void refuse_copies(std::span<const ComparedFile> files) {
  std::map<std::string, std::string> seen;
  for (const ComparedFile& file : files) {
    const auto [at, fresh] = seen.emplace(file.result->run_uuid, file.label);
    if (fresh) continue;
    fail("{} and {} hold the same run ({}). A run counts once: leave one of them out", at->second, file.label,
         file.result->run_uuid);
  }
}

namespace {

// In one file: the case that makes a change, by its variable and value.
const CaseSummary* find_change(const ComparedFile& file, const store::ResultCase& change) {
  const auto found = std::ranges::find_if(file.summary->cases, [&](const CaseSummary& row) {
    const store::ResultCase& candidate = file.result->at(row);
    return row.role == store::CaseRole::change && candidate.variable == change.variable &&
           candidate.value == change.value;
  });
  return found == file.summary->cases.end() ? nullptr : &*found;
}

// A side of one run has the verdict and interval of the run's own analysis.
SideChange change_of_run(const CaseSummary& row) {
  if (!row.effect) return {};
  return {row.effect->verdict, row.effect->ratio, row.effect->low, row.effect->high, row.effect->rounds};
}

// A side of several runs takes the runs as the sample.
SideChange change_over_runs(const std::vector<const CaseSummary*>& rows, double alpha, double smallest_effect) {
  std::vector<double> log_ratios;
  for (const CaseSummary* row : rows) {
    if (const auto log_ratio = log_ratio_of(*row)) log_ratios.push_back(*log_ratio);
  }
  const ConfidenceInterval interval = interval_over_runs(log_ratios, alpha);
  return {decide(interval, smallest_effect, {}).verdict, std::exp(interval.center), std::exp(interval.low),
          std::exp(interval.high), interval.n};
}

// The effect of a change on a side; nothing if no file of the side tried the change.
std::optional<SideChange> change_on(std::span<const ComparedFile> side, const store::ResultCase& change,
                                    int comparisons) {
  std::vector<const CaseSummary*> rows;
  for (const ComparedFile& file : side) {
    if (const CaseSummary* row = find_change(file, change)) rows.push_back(row);
  }
  if (rows.empty()) return {};
  if (side.size() == 1) return change_of_run(*rows[0]);
  return change_over_runs(rows, family_alpha(comparisons, strictest_confidence(side)), side[0].result->smallest_effect);
}

Reproduced outcome_of(Verdict first, Verdict second) {
  const auto decided = [](Verdict verdict) { return moved(verdict) || verdict == Verdict::same; };
  if (!decided(first) || !decided(second)) return Reproduced::undecided;
  if (first == second) return Reproduced::yes;
  return first == Verdict::same || second == Verdict::same ? Reproduced::no : Reproduced::opposite;
}

void check_side(std::span<const ComparedFile> side) {
  if (side.empty()) fail("--reproduce needs a result file on each side");
  if (side.size() == 2) {
    fail("{} and {} are two runs of one side: give one run, or at least three so that their spread can be estimated",
         side[0].label, side[1].label);
  }
  refuse_copies(side);
}

}  // namespace

const char* name_of(Reproduced reproduced) {
  static constexpr std::array names{"reproduced", "not reproduced", "opposite", "undecided"};
  return names[static_cast<std::size_t>(reproduced)];
}

Reproduction reproduce(std::span<const ComparedFile> first, std::span<const ComparedFile> second) {
  check_side(first);
  check_side(second);
  Reproduction out;
  for (const ComparedFile& file : first) out.first.push_back(file.label);
  for (const ComparedFile& file : second) out.second.push_back(file.label);
  out.first_by_runs = first.size() > 1;
  out.second_by_runs = second.size() > 1;
  out.first_confidence = strictest_confidence(first);
  out.second_confidence = strictest_confidence(second);
  const auto changes_of = [](const ComparedFile& file) {
    std::vector<const store::ResultCase*> changes;
    for (const store::ResultCase& result_case : file.result->cases) {
      if (result_case.role() == store::CaseRole::change) changes.push_back(&result_case);
    }
    return changes;
  };
  const std::vector<const store::ResultCase*> changes = changes_of(first[0]);
  for (const store::ResultCase* change : changes) {
    const auto comparisons = static_cast<int>(changes.size());
    const auto here = change_on(first, *change, comparisons), there = change_on(second, *change, comparisons);
    if (!there) {
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", change->name, second[0].label));
      continue;
    }
    out.changes.push_back({change->name, *here, *there, outcome_of(here->verdict, there->verdict)});
  }
  for (const store::ResultCase* change : changes_of(second[0])) {
    if (find_change(first[0], *change) != nullptr) continue;
    out.only_in_one.push_back(fmt::format("{} was not tried in {}", change->name, first[0].label));
  }
  return out;
}

}  // namespace harness::analysis
