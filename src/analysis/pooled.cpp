#include "analysis/pooled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/runs.h"
#include "analysis/statistics.h"
#include "base/error.h"
#include "base/median.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

std::vector<std::string> changes_of(const ComparedFile& file) {
  std::vector<std::string> names;
  for (const store::ResultCase& result_case : file.result->cases) {
    if (result_case.role() == store::CaseRole::change) names.push_back(result_case.name);
  }
  return names;
}

// Each case is held against the first file that has it: all that have it are one case, or somebody is named.
void compare_cases(std::span<const ComparedFile> files, std::vector<std::string>& reasons) {
  std::map<std::string, std::pair<const ComparedFile*, const store::ResultCase*>> known;
  for (const ComparedFile& file : files) {
    for (const store::ResultCase& result_case : file.result->cases) {
      const auto [at, fresh] = known.try_emplace(result_case.name, &file, &result_case);
      if (fresh) continue;
      const auto& [first, first_case] = at->second;
      const auto differences = setting_differences(*first->result, *first_case, *file.result, result_case);
      if (differences.empty()) continue;
      reasons.push_back(fmt::format("{} has other settings: {} in {} and {}", result_case.name,
                                    settings_in_words(differences), first->label, file.label));
      return;  // what the baselines differ in, every case does
    }
  }
}

void compare_changes(std::span<const ComparedFile> files, std::vector<std::string>& reasons) {
  std::map<std::string, int> in_files;
  for (const ComparedFile& file : files) {
    for (const std::string& name : changes_of(file)) ++in_files[name];
  }
  for (const ComparedFile& file : files) {
    const std::vector<std::string> changes = changes_of(file);
    const bool none_shared = std::ranges::all_of(changes, [&](const std::string& name) { return in_files[name] == 1; });
    if (!none_shared || in_files.empty()) continue;
    reasons.push_back(changes.empty() ? fmt::format("{} has no change, but other files have", file.label)
                                      : fmt::format("no other file has a change of {}, which are {}", file.label,
                                                    join(changes, ", ")));
  }
}

// A sentence each; empty: they are runs of one configuration.
std::vector<std::string> why_no_repeats(std::span<const ComparedFile> files) {
  std::vector<std::string> reasons = why_incomparable(files);
  for (const ComparedFile& file : files) {
    if (file.result->baseline() == nullptr) reasons.push_back(fmt::format("{} has no baseline", file.label));
  }
  if (!reasons.empty()) return reasons;  // the rest would only repeat it
  compare_cases(files, reasons);
  if (reasons.empty()) compare_changes(files, reasons);
  return reasons;
}

// A case in every file that planned it.
struct CaseInFiles {
  PooledCase pooled;
  std::vector<const CaseSummary*> rows;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // each with the files that have it
};

CaseInFiles& find_or_add(std::vector<CaseInFiles>& cases, const CaseSummary& row) {
  const auto known =
      std::ranges::find_if(cases, [&](const CaseInFiles& candidate) { return candidate.pooled.name == row.name; });
  if (known != cases.end()) return *known;
  CaseInFiles fresh;
  fresh.pooled.name = row.name;
  fresh.pooled.role = row.role;
  cases.push_back(std::move(fresh));
  return cases.back();
}

void add_run(const ComparedFile& file, std::size_t index, const CaseSummary& row, CaseInFiles& to) {
  to.rows.push_back(&row);
  if (!row.reason.empty()) {
    auto known = std::ranges::find(to.reasons, row.reason, &std::pair<std::string, std::vector<std::string>>::first);
    if (known == to.reasons.end()) known = to.reasons.insert(known, {row.reason, {}});
    known->second.push_back(file.label);
  }
  if (row.blocks == 0) return;
  RunOfCase run{index, &row};
  if (const auto log_ratio = log_ratio_of(row)) run.ratio = std::exp(*log_ratio);
  if (store::is_reference(row.role) || std::isfinite(run.ratio)) ++to.pooled.n;
  to.pooled.runs.push_back(run);
}

std::vector<CaseInFiles> cases_of(std::span<const ComparedFile> files) {
  std::vector<CaseInFiles> cases;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const CaseSummary& row : files[i].summary->cases) add_run(files[i], i, row, find_or_add(cases, row));
  }
  for (CaseInFiles& in_files : cases) {
    for (const auto& [reason, labels] : in_files.reasons) {
      const bool everywhere = labels.size() == files.size();
      in_files.pooled.remarks.push_back(everywhere ? reason : fmt::format("{} ({})", reason, join(labels, ", ")));
    }
  }
  return cases;
}

bool could_run(const CaseInFiles& in_files) {
  return std::ranges::any_of(in_files.rows,
                             [](const CaseSummary* row) { return row->status != store::CaseStatus::impossible; });
}

// One run in which nothing was wrong is enough: the others do not count, or say so in a remark.
Evidence evidence_of(const CaseInFiles& in_files) {
  Evidence evidence;
  evidence.role = in_files.pooled.role;
  evidence.measured = !in_files.pooled.runs.empty();
  const auto all = [&](store::CaseStatus status) {
    return std::ranges::all_of(in_files.rows, [&](const CaseSummary* row) { return row->status == status; });
  };
  if (all(store::CaseStatus::failed)) evidence.status = store::CaseStatus::failed;
  if (all(store::CaseStatus::impossible)) evidence.status = store::CaseStatus::impossible;
  if (!evidence.measured || in_files.pooled.n > 0) return evidence;
  evidence.honoured = std::ranges::any_of(in_files.pooled.runs, [](const RunOfCase& run) { return run.row->honoured; });
  const auto any_without = [&](Reason reason) {
    return std::ranges::any_of(in_files.pooled.runs,
                               [&](const RunOfCase& run) { return run.row->judgement.reason != reason; });
  };
  evidence.within_limit = any_without(Reason::beyond_limit);
  evidence.trains_alike = any_without(Reason::trains_differently);
  return evidence;
}

void judge(CaseInFiles& in_files, double alpha, double smallest_effect) {
  PooledCase& pooled = in_files.pooled;
  std::vector<double> log_ratios;
  for (const RunOfCase& run : pooled.runs) {
    if (std::isfinite(run.ratio)) log_ratios.push_back(std::log(run.ratio));
  }
  const ConfidenceInterval interval = interval_over_runs(log_ratios, alpha);
  pooled.ratio = std::exp(interval.center);
  pooled.low = std::exp(interval.low);
  pooled.high = std::exp(interval.high);
  pooled.judgement = decide(interval, smallest_effect, evidence_of(in_files));
}

std::optional<double> differ_p(const PooledCase& pooled) {
  std::vector<OwnEstimate> estimates;
  for (const RunOfCase& run : pooled.runs) {
    if (!std::isfinite(run.ratio)) continue;
    estimates.push_back({std::log(run.ratio), run.row->effect->standard_error, run.row->effect->degrees});
  }
  return heterogeneity_p(estimates);
}

// The largest of the runs' ratios over the smallest.
double spread_of(const PooledCase& pooled) {
  double smallest = INFINITY, largest = 0;
  for (const RunOfCase& run : pooled.runs) {
    if (!std::isfinite(run.ratio)) continue;
    smallest = std::min(smallest, run.ratio);
    largest = std::max(largest, run.ratio);
  }
  return largest / smallest;
}

// Tests all cases that can be tested together. The control is among them, because a control that differs from run to
// run is news as well.
void find_differing_runs(std::vector<PooledCase>& cases, double smallest_effect, double confidence) {
  int tested = 0;
  for (PooledCase& pooled : cases) {
    pooled.runs_differ_p = differ_p(pooled);
    if (pooled.runs_differ_p) ++tested;
  }
  const double alpha = family_alpha(tested, confidence);
  for (PooledCase& pooled : cases) {
    pooled.runs_differ =
        pooled.runs_differ_p && *pooled.runs_differ_p < alpha && spread_of(pooled) > 1 + smallest_effect;
  }
}

void refuse_what_is_no_repeat(std::span<const ComparedFile> files) {
  refuse_copies(files);
  const std::vector<std::string> reasons = why_no_repeats(files);
  if (reasons.empty()) return;
  fail("these files are no runs of one configuration: {}. `compare` compares files that differ", join(reasons, "; "));
}

}  // namespace

Pool pool_runs(std::span<const ComparedFile> files) {
  if (files.size() < 2) fail("a pool needs two runs or more, got {}", files.size());
  refuse_what_is_no_repeat(files);
  if (std::ranges::any_of(files, [](const ComparedFile& file) { return file.summary->predicted; }))
    fail("a prediction that is repeated is the same prediction, so there is nothing to pool; `compare` compares files");
  std::vector<CaseInFiles> cases = cases_of(files);
  Pool pool;
  pool.smallest_effect = files[0].result->smallest_effect;
  pool.confidence = strictest_confidence(files);
  pool.comparisons = static_cast<int>(std::ranges::count_if(cases, [](const CaseInFiles& in_files) {
    return in_files.pooled.role == store::CaseRole::change && could_run(in_files);
  }));
  for (CaseInFiles& in_files : cases) {
    const bool alone = in_files.pooled.role == store::CaseRole::control;
    judge(in_files, family_alpha(alone ? 1 : pool.comparisons, pool.confidence), pool.smallest_effect);
    if (alone && moved(in_files.pooled.judgement.verdict)) pool.unreliable = true;
    pool.cases.push_back(std::move(in_files.pooled));
  }
  find_differing_runs(pool.cases, pool.smallest_effect, pool.confidence);
  return pool;
}

std::optional<double> median_over_runs(
    const PooledCase& pooled, std::span<const ComparedFile> files,
    const std::function<std::optional<double>(const store::Result&, const CaseSummary&)>& value) {
  std::vector<double> values;
  for (const RunOfCase& run : pooled.runs) {
    const std::optional<double> found = value(*files[run.file].result, *run.row);
    if (!found) return {};
    values.push_back(*found);
  }
  if (values.empty()) return {};
  return median(values);
}

int exit_code(const Pool& pool, std::span<const ComparedFile> files) {
  int code = pool.unreliable ? 4 : 0;
  for (const ComparedFile& file : files) code = std::max(code, exit_code(*file.summary));
  return code;
}

}  // namespace harness::analysis
