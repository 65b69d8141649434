#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/comparison.h"
#include "analysis/statistics.h"
#include "base/error.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

constexpr int incomparable_code = 3;

// Holds each case against the first file that has it. Stops at the first difference: what the baselines differ in,
// every case does.
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
      return;
    }
  }
}

void refuse_what_does_not_repeat(std::span<const ComparedFile> files) {
  refuse_copies(files);
  std::vector<std::string> reasons = why_incomparable(files);
  for (const ComparedFile& file : files) {
    if (file.result->baseline() == nullptr) reasons.push_back(fmt::format("{} has no baseline", file.label));
  }
  if (reasons.empty()) compare_cases(files, reasons);  // which would only repeat them
  if (reasons.empty()) return;
  throw Error(fmt::format("these files are not runs of the same configuration: {}. Two sides that differ are compared "
                          "with --with",
                          join(reasons, "; ")),
              incomparable_code);
}

PooledCase& find_or_add(std::vector<PooledCase>& cases, const store::ResultCase& planned) {
  const auto known = std::ranges::find(cases, planned.name, &PooledCase::name);
  if (known != cases.end()) return *known;
  PooledCase& fresh = cases.emplace_back();
  fresh.planned = &planned;
  fresh.name = planned.name;
  fresh.role = planned.role();
  return fresh;
}

void add_remarks(std::span<const ComparedFile> files, PooledCase& pooled) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const RunOfCase& run : pooled.runs) {
    if (!run.row->reason.empty()) by_reason[run.row->reason].push_back(files[run.file].label);
  }
  for (const auto& [reason, labels] : by_reason) {
    const bool everywhere = labels.size() == files.size();
    pooled.remarks.push_back(everywhere ? reason : fmt::format("{} ({})", reason, join(labels, ", ")));
  }
}

// A run's result for a change: the logarithm of its time to that of the run's own baseline. Nothing where the run has
// no pair of blocks, where NCCL did something else than the case asked for, and where the time is beyond the limit of
// the hardware.
std::optional<double> log_ratio_of(const CaseSummary& row) {
  if (!row.effect || row.effect->verdict == Verdict::not_honoured) return {};
  if (timed_something_else(row.judgement) || !std::isfinite(row.effect->ratio)) return {};
  return std::log(row.effect->ratio);
}

std::vector<PooledCase> cases_of(std::span<const ComparedFile> files) {
  std::vector<PooledCase> cases;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const CaseSummary& row : files[i].summary->cases) {
      const auto log_ratio = log_ratio_of(row);
      find_or_add(cases, files[i].result->at(row))
          .runs.push_back({i, &row, log_ratio && row.blocks > 0 ? std::exp(*log_ratio) : NAN});
    }
  }
  for (PooledCase& pooled : cases) {
    std::vector<const store::ResultCase*> in_files(files.size(), nullptr);
    for (const RunOfCase& run : pooled.runs) in_files[run.file] = &files[run.file].result->at(*run.row);
    pooled.measured = measured_case(files, in_files);
    add_remarks(files, pooled);
  }
  return cases;
}

std::vector<double> log_ratios_of(const PooledCase& pooled) {
  std::vector<double> log_ratios;
  for (const RunOfCase& run : pooled.runs) {
    if (std::isfinite(run.ratio)) log_ratios.push_back(std::log(run.ratio));
  }
  return log_ratios;
}

// One run in which nothing was wrong is enough: the others do not count, or say so in a remark. Without one, the first
// that was measured tells what was wrong.
Evidence evidence_of(const PooledCase& pooled, bool any_ratio) {
  Evidence evidence{.role = pooled.role, .measured = !pooled.measured.run_seconds.empty()};
  for (const store::CaseStatus status : {store::CaseStatus::failed, store::CaseStatus::impossible}) {
    if (std::ranges::all_of(pooled.runs, [&](const RunOfCase& run) { return run.row->status == status; }))
      evidence.status = status;
  }
  if (!evidence.measured || any_ratio || store::is_reference(pooled.role)) return evidence;
  const CaseSummary& row =
      *std::ranges::find_if(pooled.runs, [](const RunOfCase& run) { return run.row->blocks > 0; })->row;
  evidence.honoured = row.honoured;
  evidence.within_limit = row.judgement.reason != Reason::beyond_limit;
  evidence.trains_alike = row.judgement.reason != Reason::trains_differently;
  return evidence;
}

// One value per run. Below runs_for_an_interval there is a centre alone, without runs nothing.
ConfidenceInterval interval_over_runs(std::span<const double> log_ratios, double alpha) {
  if (log_ratios.size() >= runs_for_an_interval) return mean_interval(log_ratios, alpha);
  ConfidenceInterval interval;
  interval.n = static_cast<int>(log_ratios.size());
  if (!log_ratios.empty()) interval.center = std::reduce(log_ratios.begin(), log_ratios.end()) / interval.n;
  return interval;
}

void judge(PooledCase& pooled, double alpha, double smallest_effect) {
  const std::vector<double> log_ratios = log_ratios_of(pooled);
  static_cast<Change&>(pooled) =
      change_of(interval_over_runs(log_ratios, alpha), smallest_effect, evidence_of(pooled, !log_ratios.empty()));
  if (store::is_reference(pooled.role)) pooled.n = static_cast<int>(pooled.measured.run_seconds.size());
}

// Whether two runs exclude each other: their own intervals do not meet, and their effects lie apart by more than the
// smallest effect. Asked of the control, too: that it differs from run to run is news as well.
bool exclude_each_other(const PooledCase& pooled, double smallest_effect) {
  const Effect *fastest = nullptr, *slowest = nullptr;
  for (const RunOfCase& run : pooled.runs) {
    if (!std::isfinite(run.ratio) || !std::isfinite(run.row->effect->low)) continue;
    const Effect& own = *run.row->effect;
    if (fastest == nullptr || own.high < fastest->high) fastest = &own;
    if (slowest == nullptr || own.low > slowest->low) slowest = &own;
  }
  return fastest != nullptr && slowest->low > fastest->high && slowest->ratio > (1 + smallest_effect) * fastest->ratio;
}

struct ChangeOnSide {
  const store::ResultCase* planned = nullptr;
  Change change;
};

std::vector<ChangeOnSide> changes_on(std::span<const ComparedFile> side) {
  if (side.empty()) fail("--reproduce needs a result file on each side");
  if (side.size() == 2) {
    fail("{} and {} are two runs of one side: give one run, or at least three so that their spread can be estimated",
         side[0].label, side[1].label);
  }
  std::vector<ChangeOnSide> changes;
  if (side.size() == 1) {
    for (const CaseSummary& row : side[0].summary->cases) {
      if (row.role != store::CaseRole::change) continue;
      ChangeOnSide& on_side = changes.emplace_back();
      on_side.planned = &side[0].result->at(row);
      if (const auto& effect = row.effect)
        on_side.change = {
            effect->ratio, effect->low, effect->high, effect->rounds, {effect->verdict, Reason::interval}};
    }
    return changes;
  }
  for (const PooledCase& row : pool_runs(side).cases) {
    if (row.role == store::CaseRole::change) changes.push_back({row.planned, row});
  }
  return changes;
}

const ChangeOnSide* find(const std::vector<ChangeOnSide>& changes, const store::ResultCase& wanted) {
  const auto found = std::ranges::find_if(changes, [&](const ChangeOnSide& on_side) {
    return on_side.planned->variable == wanted.variable && on_side.planned->value == wanted.value;
  });
  return found == changes.end() ? nullptr : &*found;
}

Reproduced outcome_of(Verdict first, Verdict second) {
  const auto decided = [](Verdict verdict) { return moved(verdict) || verdict == Verdict::same; };
  if (!decided(first) || !decided(second)) return Reproduced::undecided;
  if (first == second) return Reproduced::yes;
  return first == Verdict::same || second == Verdict::same ? Reproduced::no : Reproduced::opposite;
}

}  // namespace

Pool pool_runs(std::span<const ComparedFile> files) {
  if (files.size() < runs_for_an_interval) fail("an interval over runs needs three runs or more, got {}", files.size());
  refuse_what_does_not_repeat(files);
  if (any_predicted(files))
    fail("a prediction that is repeated is the same prediction, so there is nothing to pool; give two files");
  Pool pool;
  pool.cases = cases_of(files);
  pool.smallest_effect = files[0].result->smallest_effect;
  pool.confidence = strictest_confidence(files);
  pool.comparisons = static_cast<int>(std::ranges::count_if(pool.cases, [](const PooledCase& pooled) {
    return pooled.role == store::CaseRole::change && std::ranges::any_of(pooled.runs, [](const RunOfCase& run) {
             return run.row->status != store::CaseStatus::impossible;
           });
  }));
  for (PooledCase& pooled : pool.cases) {
    const bool is_control = pooled.role == store::CaseRole::control;
    judge(pooled, family_alpha(is_control ? 1 : pool.comparisons, pool.confidence), pool.smallest_effect);
    if (is_control && moved(pooled.judgement.verdict)) pool.unreliable = true;
    pooled.runs_differ = exclude_each_other(pooled, pool.smallest_effect);
  }
  return pool;
}

int exit_code(const Pool& pool, std::span<const ComparedFile> files) {
  int code = pool.unreliable ? 4 : 0;
  for (const ComparedFile& file : files) code = std::max(code, exit_code(*file.summary));
  return code;
}

const char* name_of(Reproduced reproduced) {
  static constexpr std::array names{"reproduced", "not reproduced", "opposite", "undecided"};
  return names[static_cast<std::size_t>(reproduced)];
}

Reproduction reproduce(std::span<const ComparedFile> first, std::span<const ComparedFile> second) {
  const std::vector<ChangeOnSide> here = changes_on(first), there = changes_on(second);
  Reproduction out{labels_of(first), labels_of(second), strictest_confidence(first), strictest_confidence(second)};
  for (const ChangeOnSide& change : here) {
    if (const ChangeOnSide* other = find(there, *change.planned)) {
      out.changes.push_back({change.planned->name, change.change, other->change,
                             outcome_of(change.change.judgement.verdict, other->change.judgement.verdict)});
    } else {
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", change.planned->name, second[0].label));
    }
  }
  for (const ChangeOnSide& change : there) {
    if (find(here, *change.planned) == nullptr)
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", change.planned->name, first[0].label));
  }
  return out;
}

}  // namespace harness::analysis
