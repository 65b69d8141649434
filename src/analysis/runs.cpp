#include "analysis/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/blocks.h"
#include "base/error.h"
#include "base/median.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

// How well a candidate matches the wanted case; nothing if it is another case.
std::optional<int> match(const store::Result& from, const store::ResultCase& wanted, const store::Result& in,
                         const store::ResultCase& candidate) {
  if (!setting_differences(from, wanted, in, candidate).empty()) return std::nullopt;
  if ((wanted.role() == store::CaseRole::control) != (candidate.role() == store::CaseRole::control))
    return std::nullopt;
  const bool same_change = wanted.variable == candidate.variable && wanted.value == candidate.value;
  return (same_change ? 2 : 0) + (wanted.name == candidate.name ? 1 : 0);
}

void pair_baselines(const store::Result& first, const store::Result& second, std::vector<AlignedPair>& pairs) {
  std::vector<AlignedPair> forced;
  for (const std::string_view name : {store::baseline_name, store::control_name}) {
    const store::ResultCase *here = first.find_case(name), *there = second.find_case(name);
    if (here == nullptr || there == nullptr) continue;
    const auto taken = std::ranges::find(pairs, here, &AlignedPair::first);
    if (taken != pairs.end() && taken->second == there) continue;
    std::erase_if(pairs, [&](const AlignedPair& pair) { return pair.first == here || pair.second == there; });
    forced.push_back({here, there, false});
  }
  pairs.insert(pairs.begin(), forced.begin(), forced.end());
}

// By the split that the profiled step left for every rank.
std::vector<StepPart> parts_of_splits(const store::Result& result, std::int32_t case_index) {
  std::vector<StepPart> parts{{"computation", 0}, {"exposed communication", 0}, {"idle", 0}};
  int ranks = 0;
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != case_index) continue;
    const std::array seconds{split.compute_s, split.exposed_s, split.idle_s};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].seconds += seconds[i];
    ++ranks;
  }
  if (ranks == 0) return {};
  for (StepPart& part : parts) part.seconds /= ranks;
  return parts;
}

std::vector<StepPart> parts_of(const ComparedFile& file, std::int32_t case_index) {
  const auto found = std::ranges::find(file.breakdowns, case_index, &CaseBreakdown::case_index);
  if (found == file.breakdowns.end()) return parts_of_splits(*file.result, case_index);
  std::vector<StepPart> parts;
  for (const Part part : all_parts) {
    if (const auto seconds = found->mean[part]) parts.push_back({name_of(part), *seconds});
  }
  return parts;
}

}  // namespace

void refuse_copies(std::span<const ComparedFile> files) {
  std::map<std::string, std::string> seen;
  for (const ComparedFile& file : files) {
    const auto [at, fresh] = seen.emplace(file.result->run_uuid, file.label);
    if (fresh) continue;
    fail("{} and {} hold the same run ({}). A run counts once: leave one of them out", at->second, file.label,
         file.result->run_uuid);
  }
}

double strictest_confidence(std::span<const ComparedFile> files) {
  double strictest = 0;
  for (const ComparedFile& file : files) strictest = std::max(strictest, file.result->confidence);
  return strictest;
}

std::vector<std::string> labels_of(std::span<const ComparedFile> files) {
  std::vector<std::string> labels;
  for (const ComparedFile& file : files) labels.push_back(file.label);
  return labels;
}

bool any_predicted(std::span<const ComparedFile> files) {
  return std::ranges::any_of(files, [](const ComparedFile& file) { return file.summary->predicted; });
}

std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case) {
  std::vector<SettingDifference> differences;
  for (const std::string& variable : first.variables) {
    if (std::ranges::find(second.variables, variable) == second.variables.end()) continue;
    const std::string here(first.setting(first_case, variable)), there(second.setting(second_case, variable));
    if (here != there) differences.push_back({variable, here, there});
  }
  return differences;
}

std::string settings_in_words(const std::vector<SettingDifference>& differences) {
  std::vector<std::string> words;
  for (const SettingDifference& difference : differences) {
    words.push_back(fmt::format("{} is {} and {}", difference.variable, difference.first, difference.second));
  }
  return join(words, ", ");
}

const store::ResultCase* counterpart(const store::Result& from, const store::ResultCase& wanted,
                                     const store::Result& in) {
  const store::ResultCase* best = nullptr;
  int best_score = -1;
  for (const store::ResultCase& candidate : in.cases) {
    const std::optional<int> score = match(from, wanted, in, candidate);
    if (!score || *score <= best_score) continue;
    best = &candidate;
    best_score = *score;
  }
  return best;
}

std::vector<AlignedPair> align(const store::Result& first, const store::Result& second, bool baselines_anyway) {
  std::vector<AlignedPair> pairs;
  for (const store::ResultCase& candidate : first.cases) {
    const store::ResultCase* match = counterpart(first, candidate, second);
    if (match == nullptr || std::ranges::find(pairs, match, &AlignedPair::second) != pairs.end()) continue;
    // The other file's case may be nearer to another case of this file: the one of its name.
    if (counterpart(second, *match, first) == &candidate) pairs.push_back({&candidate, match});
  }
  if (baselines_anyway) pair_baselines(first, second, pairs);
  return pairs;
}

MeasuredCase measured_case(std::span<const ComparedFile> runs, std::span<const store::ResultCase* const> in_runs) {
  MeasuredCase measured;
  std::vector<double> tokens_per_second, mfu;
  std::vector<std::string> part_names;
  std::map<std::string, std::vector<double>> parts;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (in_runs[r] == nullptr) continue;
    const store::Result& result = *runs[r].result;
    const std::int32_t index = result.index_of(*in_runs[r]);
    const CaseSummary& summary = runs[r].summary->case_at(index);
    if (summary.blocks == 0) continue;
    measured.run_seconds.push_back(summary.step_seconds);
    for (const FinishedBlock& block : finished_blocks(result, index)) measured.block_seconds.push_back(block.seconds);
    tokens_per_second.push_back(summary.tokens_per_second);
    if (summary.mfu) mfu.push_back(*summary.mfu);
    for (const StepPart& part : parts_of(runs[r], index)) {
      if (!parts.contains(part.name)) part_names.push_back(part.name);
      parts[part.name].push_back(part.seconds);
    }
  }
  measured.step_seconds = median(measured.run_seconds);
  measured.tokens_per_second = median(tokens_per_second);
  if (!mfu.empty() && mfu.size() == measured.run_seconds.size()) measured.mfu = median(mfu);
  for (const auto& name : part_names) measured.parts.push_back({name, median(parts[name])});
  return measured;
}

Change change_of(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence) {
  Change change;
  change.ratio = std::exp(log_ratio.center);
  change.n = log_ratio.n;
  change.judgement = decide(log_ratio, smallest_effect, evidence);
  if (evidence.predicted) return change;
  change.low = std::exp(log_ratio.low);
  change.high = std::exp(log_ratio.high);
  return change;
}

}  // namespace harness::analysis
