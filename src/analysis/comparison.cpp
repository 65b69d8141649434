#include "analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/cases.h"
#include "analysis/verdict.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

std::vector<double> logs(const std::vector<double>& values, double per) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::log(value / per));
  return out;
}

// Returns why cases of the two files have no counterpart, a sentence each.
std::vector<std::string> not_aligned(const ComparedFile& first, const ComparedFile& second,
                                     const std::vector<AlignedPair>& pairs) {
  std::vector<std::string> sentences;
  for (const store::ResultCase& left_over : first.result->cases) {
    if (std::ranges::find(pairs, &left_over, &AlignedPair::first) != pairs.end()) continue;
    const store::ResultCase* namesake = second.result->find_case(left_over.name);
    sentences.push_back(namesake == nullptr ? fmt::format("{} is only in {}", left_over.name, first.label)
                                            : fmt::format("{} is not the same case in both: {}", left_over.name,
                                                          settings_in_words(setting_differences(
                                                              *first.result, left_over, *second.result, *namesake))));
  }
  for (const store::ResultCase& left_over : second.result->cases) {
    if (std::ranges::find(pairs, &left_over, &AlignedPair::second) != pairs.end()) continue;
    if (first.result->find_case(left_over.name) == nullptr)
      sentences.push_back(fmt::format("{} is only in {}", left_over.name, second.label));
  }
  return sentences;
}

// Scores how well a candidate matches the wanted case; nothing if it is another case.
std::optional<int> match(const store::Result& from, const store::ResultCase& wanted, const store::Result& in,
                         const store::ResultCase& candidate) {
  if (!setting_differences(from, wanted, in, candidate).empty()) return std::nullopt;
  if ((wanted.role() == store::CaseRole::control) != (candidate.role() == store::CaseRole::control))
    return std::nullopt;
  const bool same_change = wanted.variable == candidate.variable && wanted.value == candidate.value;
  return (same_change ? 2 : 0) + (wanted.name == candidate.name ? 1 : 0);
}

// Returns the case in `in` with the settings of `wanted` in `from`; nullptr if there is none. Among several (the
// baseline and its copy), prefers equal variable and value, then an equal name. A control matches only a control.
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

// Returns a case as measured by a side: `in_first_run`, and in the other runs the counterpart of `wanted`.
MeasuredCase measured_on(std::span<const ComparedFile> side, const store::ResultCase* in_first_run,
                         const store::Result& reference, const store::ResultCase& wanted) {
  std::vector<const store::ResultCase*> in_runs{in_first_run};
  for (const ComparedFile& run : side.subspan(1)) in_runs.push_back(counterpart(reference, wanted, *run.result));
  return measured_case(side, in_runs);
}

void judge(CaseComparison& row, const Comparison& comparison, const AlignedPair& pair) {
  const double before = pair.first->tokens_per_step, after = pair.second->tokens_per_step;
  const double tokens_ratio = before > 0 && after > 0 ? after / before : 1;
  row.per_token = tokens_ratio != 1;
  const auto& first = comparison.between_runs ? row.first.run_seconds : row.first.block_seconds;
  const auto& second = comparison.between_runs ? row.second.run_seconds : row.second.block_seconds;
  const double alpha = family_alpha(comparison.comparisons, comparison.confidence);
  const ConfidenceInterval interval = yuen_welch_interval(logs(first, 1), logs(second, tokens_ratio), alpha);
  static_cast<Change&>(row) = change_of(interval, comparison.smallest_effect, {.predicted = comparison.predicted});
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

}  // namespace

Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         bool baselines_anyway) {
  if (first.empty() || second.empty()) fail("a comparison needs a result file on each side");
  refuse_copies(first);
  refuse_copies(second);
  const store::Result &reference = *first[0].result, &other = *second[0].result;
  const std::vector<AlignedPair> pairs = align(reference, other, baselines_anyway);
  Comparison out;
  out.first = labels_of(first);
  out.second = labels_of(second);
  for (const ComparedFile& a : first) {
    for (const ComparedFile& b : second) out.same_run = out.same_run || a.result->run_uuid == b.result->run_uuid;
  }
  out.smallest_effect = reference.smallest_effect;
  out.predicted = any_predicted(first) || any_predicted(second);
  if (out.predicted) {  // the files' smallest_effect includes the error of predictions
    for (const auto& side : {first, second}) {
      for (const ComparedFile& file : side)
        out.smallest_effect = std::max(out.smallest_effect, file.result->smallest_effect);
    }
  }
  out.confidence = std::max(strictest_confidence(first), strictest_confidence(second));
  out.not_aligned = not_aligned(first[0], second[0], pairs);
  std::size_t fewest_runs = std::min(first.size(), second.size());
  for (const AlignedPair& pair : pairs) {
    CaseComparison& row = out.cases.emplace_back();
    row.name = pair.first->name;
    if (pair.second->name != row.name) row.name += " = " + pair.second->name;
    row.role = pair.first->role();
    if (!pair.same && row.role == store::CaseRole::baseline)
      out.baselines_differ = settings_in_words(setting_differences(reference, *pair.first, other, *pair.second));
    row.first = measured_on(first, pair.first, reference, *pair.first);
    row.second = pair.same ? measured_on(second, pair.second, reference, *pair.first)
                           : measured_on(second, pair.second, other, *pair.second);
    row.impossible =
        pair.first->status == store::CaseStatus::impossible && pair.second->status == store::CaseStatus::impossible;
    if (!row.measured_on_both()) continue;
    ++out.comparisons;
    fewest_runs = std::min({fewest_runs, row.first.run_seconds.size(), row.second.run_seconds.size()});
  }
  out.between_runs = fewest_runs >= runs_for_an_interval && out.comparisons > 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (out.cases[i].measured_on_both()) judge(out.cases[i], out, pairs[i]);
  }
  return out;
}

Gate parse_gate(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != "slower")
    fail("--fail-on {}: expected slower or slower:PERCENT, such as slower:5", quote(text));
  if (colon == std::string::npos) return {};
  std::string number = text.substr(colon + 1);
  if (number.ends_with('%')) number.pop_back();
  const double percent = number_in<double>(trim(number)).value_or(-1);
  if (!(percent >= 0 && percent <= 10000))
    fail("--fail-on {}: expected 0 to 10000 percent, such as slower:5", quote(text));
  return {percent / 100};
}

bool fails_gate(const Gate& gate, const Comparison& comparison) {
  if (comparison.predicted) fail("--fail-on judges what is proven, and a prediction proves nothing: leave it out");
  const double limit = 1 + gate.share.value_or(comparison.smallest_effect);
  return std::ranges::any_of(comparison.cases, [&](const CaseComparison& row) { return row.low > limit; });
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

std::vector<AlignedPair> align(const store::Result& first, const store::Result& second, bool baselines_anyway) {
  std::vector<AlignedPair> pairs;
  for (const store::ResultCase& candidate : first.cases) {
    const store::ResultCase* match = counterpart(first, candidate, second);
    if (match == nullptr || std::ranges::find(pairs, match, &AlignedPair::second) != pairs.end()) continue;
    // The match may be closer to another case of this file, the one of its name.
    if (counterpart(second, *match, first) == &candidate) pairs.push_back({&candidate, match});
  }
  if (baselines_anyway) pair_baselines(first, second, pairs);
  return pairs;
}

MeasuredCase measured_case(std::span<const ComparedFile> runs, std::span<const store::ResultCase* const> in_runs) {
  MeasuredCase measured;
  std::vector<double> tokens_per_second, mfu;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (in_runs[r] == nullptr) continue;
    const store::Result& result = *runs[r].result;
    const std::int32_t index = result.index_of(*in_runs[r]);
    const CaseSummary& summary = runs[r].summary->case_at(index);
    if (summary.blocks == 0) continue;
    measured.run_seconds.push_back(summary.step_seconds);
    for (const FinishedBlock& block : finished_blocks(result, index)) measured.block_seconds.push_back(block.seconds);
    if (summary.tokens_per_second > 0) tokens_per_second.push_back(summary.tokens_per_second);
    if (summary.mfu) mfu.push_back(*summary.mfu);
  }
  measured.step_seconds = median(measured.run_seconds);
  measured.tokens_per_second = median(tokens_per_second);
  if (!mfu.empty() && mfu.size() == measured.run_seconds.size()) measured.mfu = median(mfu);
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
