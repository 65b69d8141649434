#include "analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace harness::analysis {
namespace {

constexpr int permutations = 9999;
constexpr std::uint64_t permutation_key = 0x6869'7374'6f72'7901;  // any number: the same files give the same p

// In the newest file's terms: its cases, and the time of its steps where batches differ.
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

// The logarithms of the times of the runs that measured the case, in the order of a permutation of all runs.
std::vector<double> in_order(const CaseHistory& history, const std::vector<std::size_t>& order) {
  std::vector<double> logs;
  for (const std::size_t run : order) {
    if (history.seconds[run] > 0) logs.push_back(std::log(history.seconds[run]));
  }
  return logs;
}

// Fisher and Yates, with numbers that depend on the permutation's number alone.
void shuffle(std::vector<std::size_t>& order, std::uint64_t permutation) {
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    const std::uint32_t bits = philox(permutation_key, i, permutation)[0];
    std::swap(order[i], order[(std::uint64_t{bits} * (i + 1)) >> 32]);
  }
}

Verdict verdict_of(const ChangePoint& change, double smallest_effect, double alpha) {
  if (change.p > alpha) return Verdict::unresolved;
  if (change.ratio > 1 + smallest_effect) return Verdict::slower;
  return change.ratio < 1 / (1 + smallest_effect) ? Verdict::faster : Verdict::same;
}

// Where the change lies among all runs, and its size.
ChangePoint change_point(const CaseHistory& history, std::size_t first_after) {
  std::vector<std::size_t> measured;
  for (std::size_t run = 0; run < history.seconds.size(); ++run) {
    if (history.seconds[run] > 0) measured.push_back(run);
  }
  const auto mean_log = [&](std::span<const std::size_t> runs) {
    double sum = 0;
    for (const std::size_t run : runs) sum += std::log(history.seconds[run]);
    return sum / static_cast<double>(runs.size());
  };
  const std::span<const std::size_t> all(measured);
  return {.before = measured[first_after - 1],
          .run = measured[first_after],
          .ratio = std::exp(mean_log(all.subspan(first_after)) - mean_log(all.first(first_after)))};
}

void find_changes(History& history) {
  std::vector<std::size_t> order(history.files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<CaseHistory*> tested;
  std::vector<double> observed;
  for (CaseHistory& row : history.cases) {
    const auto logs = in_order(row, order);
    const auto shift = largest_shift(logs);
    if (logs.size() < min_history_runs || !shift) continue;
    row.largest = change_point(row, shift->first_after);
    tested.push_back(&row);
    observed.push_back(shift->statistic);
  }
  if (tested.empty()) return;
  std::vector<int> as_extreme(tested.size(), 1);
  constexpr double rounding = 1e-9;  // the same groups in another order are as extreme
  for (int permutation = 0; permutation < permutations; ++permutation) {
    shuffle(order, static_cast<std::uint64_t>(permutation));
    double largest = 0;
    for (const CaseHistory* row : tested) largest = std::max(largest, largest_shift(in_order(*row, order))->statistic);
    for (std::size_t i = 0; i < tested.size(); ++i) {
      if (largest >= observed[i] - rounding) ++as_extreme[i];
    }
  }
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->largest->p = as_extreme[i] / (permutations + 1.0);
    tested[i]->verdict = verdict_of(*tested[i]->largest, history.smallest_effect, 1 - history.confidence);
  }
}

}  // namespace

const CaseHistory* History::clearest() const {
  const CaseHistory* clearest = nullptr;
  const auto size = [](const CaseHistory& row) { return std::abs(std::log(row.largest->ratio)); };
  for (const CaseHistory& row : cases) {
    if (moved(row.verdict) && (clearest == nullptr || size(row) > size(*clearest))) clearest = &row;
  }
  return clearest;
}

std::optional<LargestShift> largest_shift(std::span<const double> logs) {
  const std::size_t n = logs.size();
  if (n < 2) return std::nullopt;
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(n);
  double total = 0;
  for (const double value : logs) total += (value - mean) * (value - mean);
  LargestShift best{1, 0};
  double sum = 0;  // of the deviations of the first k: k (n - k) / n * (difference of means)^2 = sum^2 n / (k (n - k))
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
    history.cases.push_back(
        {row.name, std::vector<double>(files.size(), std::numeric_limits<double>::quiet_NaN()), {}, Verdict::none});
  }
  for (std::size_t run = 0; run < files.size(); ++run) add_run(newest, files[run], run, history);
  history.files = std::move(files);
  find_changes(history);
  return history;
}

}  // namespace harness::analysis
