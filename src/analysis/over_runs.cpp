// Several runs of one configuration: joint results, reproduction on another side, and changes in a series.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/comparison.h"
#include "base/random.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

constexpr int incomparable_code = 3;

// Compares each case with the first file that has it. Stops at the first difference: all cases share those of the
// baselines.
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
  if (reasons.empty()) compare_cases(files, reasons);  // else it would only repeat them
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

// As RunOfCase::ratio.
double ratio_of(const CaseSummary& row) {
  if (row.blocks == 0 || !row.effect || row.effect->verdict == Verdict::not_honoured) return NAN;
  return timed_something_else(row.judgement) ? NAN : row.effect->ratio;
}

std::vector<PooledCase> cases_of(std::span<const ComparedFile> files) {
  std::vector<PooledCase> cases;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const CaseSummary& row : files[i].summary->cases)
      find_or_add(cases, files[i].result->at(row)).runs.push_back({i, &row, ratio_of(row)});
  }
  for (PooledCase& pooled : cases) {
    std::vector<const store::ResultCase*> in_files(files.size(), nullptr);
    for (const RunOfCase& run : pooled.runs) in_files[run.file] = &files[run.file].result->at(*run.row);
    pooled.measured = measured_case(files, in_files);
    add_remarks(files, pooled);
  }
  return cases;
}

// One run without trouble is enough: the others do not count, or have a remark. Without one, the first measured run
// tells what was wrong.
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

void judge(PooledCase& pooled, double alpha, double smallest_effect) {
  std::vector<double> log_ratios;
  for (const RunOfCase& run : pooled.runs) {
    if (std::isfinite(run.ratio)) log_ratios.push_back(std::log(run.ratio));
  }
  ConfidenceInterval interval = mean_interval(log_ratios, alpha);
  if (log_ratios.size() < runs_for_an_interval) interval = interval.without_ends();
  static_cast<Change&>(pooled) = change_of(interval, smallest_effect, evidence_of(pooled, !log_ratios.empty()));
  if (store::is_reference(pooled.role)) pooled.n = static_cast<int>(pooled.measured.run_seconds.size());
}

// Whether two runs exclude each other: their intervals do not overlap, and their effects differ by more than the
// smallest effect. Applies to the control, too, whose variation from run to run matters as well.
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

// Returns a change in a file, against that file's baseline. A case that failed later keeps its ratio, but no verdict:
// nobody can train with it.
Change change_on_side(const CaseSummary& row) {
  if (!row.effect) return {};
  const Effect& effect = *row.effect;
  const bool failed = row.status == store::CaseStatus::failed;
  const Judgement judgement{failed ? Verdict::none : effect.verdict, failed ? Reason::failed : Reason::interval};
  return {effect.ratio, effect.low, effect.high, effect.rounds, judgement};
}

// The name of a change has its variable, its value and, at another size of an operation, this size.
const CaseSummary* find_change(const ComparedFile& file, const std::string& name) {
  for (const CaseSummary& row : file.summary->cases) {
    if (row.role == store::CaseRole::change && row.name == name) return &row;
  }
  return nullptr;
}

Reproduced outcome_of(Verdict first, Verdict second) {
  const auto decided = [](Verdict verdict) { return moved(verdict) || verdict == Verdict::same; };
  if (!decided(first) || !decided(second)) return Reproduced::undecided;
  if (first == second) return Reproduced::yes;
  return first == Verdict::same || second == Verdict::same ? Reproduced::no : Reproduced::opposite;
}

constexpr int permutations = 9999;
constexpr std::uint64_t permutation_key = 0x6869'7374'6f72'7901;  // arbitrary, fixed: p is reproducible

// Adds a run under the newest file's cases. If batches differ, times are scaled to the newest steps.
void add_run(const ComparedFile& newest, const ComparedFile& file, std::size_t run, History& history) {
  for (const AlignedPair& pair : align(*newest.result, *file.result)) {
    const CaseSummary& row = file.summary->case_at(file.result->index_of(*pair.second));
    if (row.blocks == 0) continue;
    const double tokens = pair.first->tokens_per_step, tokens_here = pair.second->tokens_per_step;
    const bool per_token = tokens > 0 && tokens_here > 0 && tokens != tokens_here;
    history.cases[static_cast<std::size_t>(newest.result->index_of(*pair.first))].seconds[run] =
        per_token ? tokens / row.tokens_per_second : row.step_seconds;
  }
}

// Returns the log times of the runs that measured the case, in the order of a permutation of all runs.
std::vector<double> in_order(const CaseHistory& history, const std::vector<std::size_t>& order) {
  std::vector<double> logs;
  for (const std::size_t run : order) {
    if (history.seconds[run] > 0) logs.push_back(std::log(history.seconds[run]));
  }
  return logs;
}

// Fisher-Yates shuffle with random numbers that depend only on the permutation's number.
void shuffle(std::vector<std::size_t>& order, std::uint64_t permutation) {
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    const std::uint32_t bits = philox(permutation_key, i, permutation)[0];
    std::swap(order[i], order[(std::uint64_t{bits} * (i + 1)) >> 32]);
  }
}

// Locates a change among all runs and computes its size. `logs`: of the runs that measured the case.
ChangePoint change_point(const CaseHistory& history, std::span<const double> logs, std::size_t first_after) {
  std::vector<std::size_t> measured;
  for (std::size_t run = 0; run < history.seconds.size(); ++run) {
    if (history.seconds[run] > 0) measured.push_back(run);
  }
  return {.before = measured[first_after - 1],
          .run = measured[first_after],
          .ratio = std::exp(average(logs.subspan(first_after)) - average(logs.first(first_after)))};
}

void find_changes(History& history) {
  std::vector<std::size_t> order(history.files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<CaseHistory*> tested;
  std::vector<double> observed;
  for (CaseHistory& row : history.cases) {
    const auto logs = in_order(row, order);
    if (logs.size() < min_history_runs) continue;
    const LargestShift shift = largest_shift(logs);
    row.largest = change_point(row, logs, shift.first_after);
    tested.push_back(&row);
    observed.push_back(shift.statistic);
  }
  if (tested.empty()) return;
  std::vector<int> as_extreme(tested.size(), 1);
  constexpr double rounding = 1e-9;  // equal groups in another order are as extreme
  for (int permutation = 0; permutation < permutations; ++permutation) {
    shuffle(order, static_cast<std::uint64_t>(permutation));
    double largest = 0;
    for (const CaseHistory* row : tested) largest = std::max(largest, largest_shift(in_order(*row, order)).statistic);
    for (std::size_t i = 0; i < tested.size(); ++i) {
      if (largest >= observed[i] - rounding) ++as_extreme[i];
    }
  }
  for (std::size_t i = 0; i < tested.size(); ++i) {
    ChangePoint& change = *tested[i]->largest;
    change.p = as_extreme[i] / (permutations + 1.0);
    Verdict& verdict = tested[i]->verdict = Verdict::same;
    if (change.ratio > 1 + history.smallest_effect) verdict = Verdict::slower;
    if (change.ratio < 1 / (1 + history.smallest_effect)) verdict = Verdict::faster;
    if (change.p > 1 - history.confidence) verdict = Verdict::unresolved;
  }
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

const char* name_of(Reproduced reproduced) {
  static constexpr std::array names{"reproduced", "not reproduced", "opposite", "undecided"};
  return names[static_cast<std::size_t>(reproduced)];
}

Reproduction reproduce(const ComparedFile& first, const ComparedFile& second) {
  Reproduction out{first.label, second.label, first.result->confidence, second.result->confidence};
  for (const CaseSummary& row : first.summary->cases) {
    if (row.role != store::CaseRole::change) continue;
    if (const CaseSummary* other = find_change(second, row.name)) {
      const Change here = change_on_side(row), there = change_on_side(*other);
      out.changes.push_back({row.name, here, there, outcome_of(here.judgement.verdict, there.judgement.verdict)});
    } else {
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", row.name, second.label));
    }
  }
  for (const CaseSummary& row : second.summary->cases) {
    if (row.role == store::CaseRole::change && find_change(first, row.name) == nullptr)
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", row.name, first.label));
  }
  return out;
}

const CaseHistory* History::clearest() const {
  const CaseHistory* clearest = nullptr;
  const auto size = [](const CaseHistory& row) { return std::abs(std::log(row.largest->ratio)); };
  for (const CaseHistory& row : cases) {
    if (moved(row.verdict) && (clearest == nullptr || size(row) > size(*clearest))) clearest = &row;
  }
  return clearest;
}

LargestShift largest_shift(std::span<const double> logs) {
  const std::size_t n = logs.size();
  const double mean = average(logs);
  double total = 0;
  for (const double value : logs) total += (value - mean) * (value - mean);
  LargestShift best{1, 0};
  double sum = 0;  // deviations of the first k: k (n - k) / n * (difference of means)^2 = sum^2 n / (k (n - k))
  for (std::size_t k = 1; k < n; ++k) {
    sum += logs[k - 1] - mean;
    const double between = sum * sum * static_cast<double>(n) / (static_cast<double>(k) * static_cast<double>(n - k));
    const double statistic = total > 0 ? between / total : 0;
    if (statistic > best.statistic) best = {k, statistic};
  }
  return best;
}

History find_history(std::vector<ComparedFile> files) {
  if (files.empty()) fail("a history needs result files");
  refuse_copies(files);
  if (any_predicted(files))
    fail("a history is of measured runs: predictions differ by what they were asked, and prove nothing");
  std::ranges::stable_sort(files, {}, [](const ComparedFile& file) { return file.result->created; });
  const ComparedFile& newest = files.back();
  History history;
  history.smallest_effect = newest.result->smallest_effect;
  history.confidence = strictest_confidence(files);
  for (const store::ResultCase& row : newest.result->cases) {
    history.cases.push_back({row.name, std::vector<double>(files.size(), store::not_known), {}, Verdict::none});
  }
  for (std::size_t run = 0; run < files.size(); ++run) add_run(newest, files[run], run, history);
  history.files = std::move(files);
  find_changes(history);
  return history;
}

}  // namespace harness::analysis
