#include "analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/blocks.h"
#include "analysis/differences.h"
#include "analysis/runs.h"
#include "analysis/statistics.h"
#include "base/error.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::analysis {
namespace {

// The case of another file that is this one, by settings; nullptr if there is none. Of several (the baseline and its
// copy) the one with the same variable and value and then the same name is meant.
const store::ResultCase* counterpart(const store::Result& from, const store::ResultCase& wanted,
                                     const store::Result& in) {
  const auto has_kinds = [](const store::Result& result) { return result.find_case(store::alone_name) != nullptr; };
  const bool both_have_kinds = has_kinds(from) && has_kinds(in);  // of blocks: in processes of their own, and shared
  const store::ResultCase* best = nullptr;
  int best_score = -1;
  for (const store::ResultCase& candidate : in.cases) {
    if (!setting_differences(from, wanted, in, candidate).empty()) continue;
    // The control is compared with the control and with nothing else.
    if ((wanted.role() == store::CaseRole::control) != (candidate.role() == store::CaseRole::control)) continue;
    if (both_have_kinds && from.is_alone(from.index_of(wanted)) != in.is_alone(in.index_of(candidate))) continue;
    const bool same_change = wanted.variable == candidate.variable && wanted.value == candidate.value;
    const int score = (same_change ? 2 : 0) + (wanted.name == candidate.name ? 1 : 0);
    if (score <= best_score) continue;
    best = &candidate;
    best_score = score;
  }
  return best;
}

// A case in each run of a side; nullptr where a run does not have it.
using CaseInRuns = std::vector<const store::ResultCase*>;

// The medians over runs of what the runs say of one case.
CaseSide side_of(std::span<const ComparedFile> runs, const CaseInRuns& in_runs, const PartsOf& parts_of) {
  CaseSide side;
  std::vector<double> tokens_per_second, mfu;
  std::vector<std::string> part_names;
  std::map<std::string, std::vector<double>> parts;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (in_runs[r] == nullptr) continue;
    const store::Result& result = *runs[r].result;
    const std::int32_t index = result.index_of(*in_runs[r]);
    const CaseSummary& summary = runs[r].summary->case_at(index);
    if (summary.blocks == 0) continue;
    side.run_seconds.push_back(summary.step_seconds);
    for (const FinishedBlock& block : finished_blocks(result, index)) side.block_seconds.push_back(block.seconds);
    tokens_per_second.push_back(summary.tokens_per_second);
    if (summary.mfu) mfu.push_back(*summary.mfu);
    if (!parts_of) continue;
    for (const StepPart& part : parts_of(result, index)) {
      if (!parts.contains(part.name)) part_names.push_back(part.name);
      parts[part.name].push_back(part.seconds);
    }
  }
  side.step_seconds = median(side.run_seconds);
  side.tokens_per_second = median(tokens_per_second);
  if (!mfu.empty() && mfu.size() == side.run_seconds.size()) side.mfu = median(mfu);
  for (const auto& name : part_names) side.parts.push_back({name, median(parts[name])});
  return side;
}

std::vector<double> logs(const std::vector<double>& values, double per) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::log(value / per));
  return out;
}

std::vector<std::string> labels(std::span<const ComparedFile> files) {
  std::vector<std::string> out;
  for (const ComparedFile& file : files) out.push_back(file.label);
  return out;
}

bool share_a_run(std::span<const ComparedFile> first, std::span<const ComparedFile> second) {
  return std::ranges::any_of(first, [&](const ComparedFile& a) {
    return std::ranges::any_of(second, [&](const ComparedFile& b) { return a.result->run_uuid == b.result->run_uuid; });
  });
}

// Why a case of the first side has no counterpart.
std::string why_not_aligned(const ComparedFile& first, const store::ResultCase& left_over, const ComparedFile& second) {
  const store::ResultCase* namesake = second.result->find_case(left_over.name);
  if (namesake == nullptr) return fmt::format("{} is only in {}", left_over.name, first.label);
  const std::string words = settings_in_words(setting_differences(*first.result, left_over, *second.result, *namesake));
  if (words.empty()) return fmt::format("{} is in both, but its counterpart matches another case", left_over.name);
  return fmt::format("{} is not the same case in both: {}", left_over.name, words);
}

// Cases of the two sides' first runs that are one case.
struct AlignedPair {
  const store::ResultCase* first = nullptr;
  const store::ResultCase* second = nullptr;
  bool same = true;  // false: two baselines with different settings
};

std::vector<AlignedPair> align(const store::Result& first, const store::Result& second) {
  std::vector<AlignedPair> pairs;
  for (const store::ResultCase& candidate : first.cases) {
    const store::ResultCase* match = counterpart(first, candidate, second);
    if (match == nullptr || std::ranges::find(pairs, match, &AlignedPair::second) != pairs.end()) continue;
    // The other side's case may be nearer to another case of this side: the one of its name.
    if (counterpart(second, *match, first) == &candidate) pairs.push_back({&candidate, match});
  }
  return pairs;
}

// Makes pairs of baseline and control, whatever else their cases are like.
void align_baselines(const store::Result& first, const store::Result& second, std::vector<AlignedPair>& pairs) {
  std::vector<AlignedPair> forced;
  for (const std::string_view name : {store::baseline_name, store::control_name, store::alone_name}) {
    const store::ResultCase *here = first.find_case(name), *there = second.find_case(name);
    if (here == nullptr || there == nullptr) continue;
    const auto taken = std::ranges::find(pairs, here, &AlignedPair::first);
    if (taken != pairs.end() && taken->second == there) continue;
    std::erase_if(pairs, [&](const AlignedPair& pair) { return pair.first == here || pair.second == there; });
    forced.push_back({here, there, false});
  }
  pairs.insert(pairs.begin(), forced.begin(), forced.end());
}

std::vector<std::string> not_aligned(const ComparedFile& first, const ComparedFile& second,
                                     const std::vector<AlignedPair>& pairs) {
  std::vector<std::string> sentences;
  for (const store::ResultCase& left_over : first.result->cases) {
    if (std::ranges::find(pairs, &left_over, &AlignedPair::first) != pairs.end()) continue;
    sentences.push_back(why_not_aligned(first, left_over, second));
  }
  for (const store::ResultCase& left_over : second.result->cases) {
    if (std::ranges::find(pairs, &left_over, &AlignedPair::second) != pairs.end()) continue;
    if (first.result->find_case(left_over.name) != nullptr) continue;
    sentences.push_back(fmt::format("{} is only in {}", left_over.name, second.label));
  }
  return sentences;
}

CaseInRuns find_in(std::span<const ComparedFile> side, const store::ResultCase* in_first_run,
                   const store::Result& reference, const store::ResultCase& wanted) {
  CaseInRuns in_runs{in_first_run};
  for (const ComparedFile& run : side.subspan(1)) in_runs.push_back(counterpart(reference, wanted, *run.result));
  return in_runs;
}

double tokens_ratio(const AlignedPair& pair) {
  const double before = pair.first->tokens_per_step, after = pair.second->tokens_per_step;
  return before > 0 && after > 0 ? after / before : 1;
}

// A step in virtual time has no scatter to be judged by.
bool any_predicted(std::span<const ComparedFile> files) {
  return std::ranges::any_of(files, [](const ComparedFile& file) { return file.summary->predicted; });
}

void judge(CaseComparison& row, bool between_runs, double alpha, double smallest_effect, double tokens_ratio,
           bool predicted) {
  row.per_token = tokens_ratio != 1;
  const auto& first = between_runs ? row.first.run_seconds : row.first.block_seconds;
  const auto& second = between_runs ? row.second.run_seconds : row.second.block_seconds;
  const ConfidenceInterval interval = yuen_welch_interval(logs(first, 1), logs(second, tokens_ratio), alpha);
  row.ratio = std::exp(interval.center);
  row.low = predicted ? std::numeric_limits<double>::quiet_NaN() : std::exp(interval.low);
  row.high = predicted ? std::numeric_limits<double>::quiet_NaN() : std::exp(interval.high);
  row.judgement = decide(interval, smallest_effect, {.predicted = predicted});
}

}  // namespace

std::vector<StepPart> parts_of_splits(const store::Result& result, std::int32_t case_index) {
  double compute = 0, exposed = 0, idle = 0;
  int ranks = 0;
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != case_index) continue;
    compute += split.compute_s;
    exposed += split.exposed_s;
    idle += split.idle_s;
    ++ranks;
  }
  if (ranks == 0) return {};
  return {{"computation", compute / ranks}, {"exposed communication", exposed / ranks}, {"idle", idle / ranks}};
}

std::vector<StepPart> parts_of_breakdown(const CaseBreakdown& breakdown) {
  std::vector<StepPart> parts;
  for (const Part part : all_parts) {
    if (const auto seconds = breakdown.mean[part]) parts.push_back({name_of(part), *seconds});
  }
  return parts;
}

Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         const ComparisonOptions& options) {
  if (first.empty() || second.empty()) fail("a comparison needs a result file on each side");
  refuse_copies(first);
  refuse_copies(second);
  const store::Result& reference = *first[0].result;
  std::vector<AlignedPair> pairs = align(reference, *second[0].result);
  if (options.baselines_anyway) align_baselines(reference, *second[0].result, pairs);
  Comparison out;
  out.first = labels(first);
  out.second = labels(second);
  out.same_run = share_a_run(first, second);
  out.smallest_effect = reference.smallest_effect;
  out.predicted = any_predicted(first) || any_predicted(second);
  if (out.predicted) {  // whose error is in their files
    for (const auto& side : {first, second}) {
      for (const ComparedFile& file : side)
        out.smallest_effect = std::max(out.smallest_effect, file.result->smallest_effect);
    }
  }
  out.not_aligned = not_aligned(first[0], second[0], pairs);
  if (!out.predicted) out.machines_differ = how_machines_differ(first, second);
  bool enough_runs = first.size() >= runs_for_an_interval && second.size() >= runs_for_an_interval;
  for (const AlignedPair& pair : pairs) {
    CaseComparison& row = out.cases.emplace_back();
    row.name = pair.first->name;
    if (pair.second->name != row.name) row.name += " = " + pair.second->name;
    row.first_index = reference.index_of(*pair.first);
    row.role = pair.first->role();
    const store::Result& of_second = pair.same ? reference : *second[0].result;
    const store::ResultCase& wanted = pair.same ? *pair.first : *pair.second;
    if (!pair.same && row.role == store::CaseRole::baseline) {
      out.baselines_differ =
          settings_in_words(setting_differences(reference, *pair.first, *second[0].result, *pair.second));
    }
    row.first = side_of(first, find_in(first, pair.first, reference, *pair.first), options.parts_of);
    row.second = side_of(second, find_in(second, pair.second, of_second, wanted), options.parts_of);
    row.impossible =
        pair.first->status == store::CaseStatus::impossible && pair.second->status == store::CaseStatus::impossible;
    if (!row.measured_on_both()) continue;
    ++out.comparisons;
    enough_runs = enough_runs && row.first.run_seconds.size() >= runs_for_an_interval &&
                  row.second.run_seconds.size() >= runs_for_an_interval;
  }
  out.between_runs = enough_runs && out.comparisons > 0;
  out.confidence = std::max(strictest_confidence(first), strictest_confidence(second));
  const double alpha = family_alpha(out.comparisons, out.confidence);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CaseComparison& row = out.cases[i];
    if (row.measured_on_both())
      judge(row, out.between_runs, alpha, out.smallest_effect, tokens_ratio(pairs[i]), out.predicted);
  }
  return out;
}

std::vector<std::string> why_unreliable(std::span<const ComparedFile> files) {
  std::vector<std::string> reasons;
  for (const ComparedFile& file : files) {
    if (file.summary->unreliable) {
      reasons.push_back(
          fmt::format("{} is unreliable: its control, baseline_again, is {} than the baseline that it repeats. Measure "
                      "again when the machine is quiet.",
                      file.label, name_of(file.summary->control->verdict)));
    }
    if (file.summary->partial) {
      reasons.push_back(fmt::format("{} is partial: blocks are missing. `sweep --resume` completes it.", file.label));
    }
  }
  return reasons;
}

namespace {

double parse_percentage(const std::string& option, std::string number) {
  if (!number.empty() && number.back() == '%') number.pop_back();
  double percent = 0;
  try {
    percent = parse_real(trim(number));
  } catch (const Error& error) {
    fail("--fail-on {}: {}; expected a percentage, such as slower:5", quote(option), error.what());
  }
  if (!std::isfinite(percent) || percent < 0 || percent > 10000) {
    fail("--fail-on {}: allowed: 0 to 10000 percent, such as slower:5", quote(option));
  }
  return percent / 100;
}

}  // namespace

Gate parse_gate(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  Gate gate;
  if (word == "not-proven-within") {
    gate.fails_on = Gate::FailsOn::not_proven_within;
    if (colon == std::string::npos) fail("--fail-on {}: within what? Such as not-proven-within:2%", quote(text));
  } else if (word != "slower") {
    fail("--fail-on {}: expected slower, slower:PERCENT or not-proven-within:PERCENT, such as slower:5", quote(text));
  }
  if (colon != std::string::npos) gate.share = parse_percentage(text, text.substr(colon + 1));
  return gate;
}

bool fails(const Gate& gate, const Comparison& comparison, const CaseComparison& row) {
  if (row.impossible) return false;  // neither side could run it, so nothing became slower
  const double limit = 1 + gate.share.value_or(comparison.smallest_effect);
  // NaN, where a side that could have run it has not measured it, is no proof.
  return gate.fails_on == Gate::FailsOn::slower ? row.low > limit : !(row.high <= limit);
}

GateOutcome judge_gate(const Gate& gate, std::span<const Comparison> comparisons) {
  if (std::ranges::any_of(comparisons, &Comparison::predicted))
    fail("--fail-on judges what is proven, and a prediction proves nothing: leave it out");
  GateOutcome outcome = GateOutcome::passes;
  for (const Comparison& comparison : comparisons) {
    const auto fails_it = [&](const CaseComparison& row) { return fails(gate, comparison, row); };
    if (std::ranges::none_of(comparison.cases, fails_it)) continue;
    if (comparison.machines_differ.empty()) return GateOutcome::fails;
    outcome = GateOutcome::disturbed;
  }
  return outcome;
}

}  // namespace harness::analysis
