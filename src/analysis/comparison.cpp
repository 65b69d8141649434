#include "analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/pairing.h"
#include "analysis/two_samples.h"
#include "base/error.h"

namespace harness {
namespace {

constexpr std::size_t runs_for_an_interval = 3;
constexpr double confidence = 0.95;

// The case of another file that is this one, by settings; -1 if there is none. Among several (the baseline and its
// copy) the one with the same variable and value and then the same name is meant.
int counterpart(const Result& from, const ResultCase& one, const Result& in) {
  int best = -1, best_score = -1;
  for (std::size_t i = 0; i < in.cases.size(); ++i) {
    const ResultCase& other = in.cases[i];
    if (!same_settings(from, one, in, other)) continue;
    const bool copies_differ = (one.name == "baseline_again") != (other.name == "baseline_again");
    if (copies_differ) continue;  // the control is compared with the control and with nothing else
    const int score = 2 * (one.variable == other.variable && one.value == other.value) + (one.name == other.name);
    if (score <= best_score) continue;
    best = static_cast<int>(i);
    best_score = score;
  }
  return best;
}

std::vector<double> finished_blocks(const Result& result, int case_index) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].case_index != case_index) continue;
    if (const auto block = block_median(result, i)) seconds.push_back(*block);
  }
  return seconds;
}

double tokens_of(const Result& result, int case_index) {
  return result.cases[static_cast<std::size_t>(case_index)].tokens_per_step;
}

// The medians over runs of what the runs say of one case. indices: of the case in each run, -1 where it is not.
CaseSide side_of(std::span<const ComparedFile> runs, const std::vector<int>& indices, const PartsOf& parts_of) {
  CaseSide side;
  std::vector<double> tokens_per_second, mfu;
  std::vector<std::string> part_names;
  std::map<std::string, std::vector<double>> parts;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (indices[r] < 0) continue;
    const Result& result = *runs[r].result;
    const CaseSummary& summary = runs[r].summary->cases[static_cast<std::size_t>(indices[r])];
    if (summary.blocks == 0) continue;
    side.run_seconds.push_back(summary.step_seconds);
    for (const double block : finished_blocks(result, indices[r])) side.block_seconds.push_back(block);
    tokens_per_second.push_back(summary.tokens_per_second);
    if (summary.mfu) mfu.push_back(*summary.mfu);
    if (!parts_of) continue;
    for (const StepPart& part : parts_of(result, indices[r])) {
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

void refuse_copies(std::span<const ComparedFile> side) {
  std::map<std::string, std::string> seen;
  for (const ComparedFile& file : side) {
    const auto [at, fresh] = seen.emplace(file.result->run_uuid, file.label);
    if (fresh) continue;
    fail("{} and {} hold the same run ({}): one run counts once on a side; leave one of them out", at->second,
         file.label, file.result->run_uuid);
  }
}

bool share_a_run(std::span<const ComparedFile> first, std::span<const ComparedFile> second) {
  return std::any_of(first.begin(), first.end(), [&](const ComparedFile& a) {
    return std::any_of(second.begin(), second.end(),
                       [&](const ComparedFile& b) { return a.result->run_uuid == b.result->run_uuid; });
  });
}

// In which variables two cases differ that go by the same name.
std::string unlike_settings(const Result& first, const ResultCase& one, const Result& second, const ResultCase& other) {
  std::string text;
  for (std::size_t v = 0; v < first.variables.size(); ++v) {
    const auto at = std::find(second.variables.begin(), second.variables.end(), first.variables[v]);
    if (at == second.variables.end()) continue;
    const std::string& theirs = other.settings[static_cast<std::size_t>(at - second.variables.begin())];
    if (one.settings[v] == theirs) continue;
    text += fmt::format("{}{} is {} and {}", text.empty() ? "" : ", ", first.variables[v], one.settings[v], theirs);
  }
  return text;
}

void say_not_aligned(const ComparedFile& first, const ComparedFile& second, const std::vector<bool>& taken_first,
                     const std::vector<bool>& taken_second, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < first.result->cases.size(); ++i) {
    if (taken_first[i]) continue;
    const ResultCase& one = first.result->cases[i];
    const int namesake = find_case(*second.result, one.name);
    if (namesake < 0) {
      out.push_back(fmt::format("{} is only in {}", one.name, first.label));
      continue;
    }
    const ResultCase& other = second.result->cases[static_cast<std::size_t>(namesake)];
    const std::string unlike = unlike_settings(*first.result, one, *second.result, other);
    out.push_back(fmt::format("{} is not the same case in both: {}", one.name,
                              unlike.empty() ? "its counterpart goes with another" : unlike));
  }
  for (std::size_t i = 0; i < second.result->cases.size(); ++i) {
    const std::string& name = second.result->cases[i].name;
    if (!taken_second[i] && find_case(*first.result, name) < 0) {
      out.push_back(fmt::format("{} is only in {}", name, second.label));
    }
  }
}

void judge(CaseComparison& row, bool between_runs, double alpha, double smallest_effect, double tokens_ratio) {
  row.per_token = tokens_ratio != 1;
  const auto& first = between_runs ? row.first.run_seconds : row.first.block_seconds;
  const auto& second = between_runs ? row.second.run_seconds : row.second.block_seconds;
  const TrimmedInterval interval = yuen_welch_interval(logs(first, 1), logs(second, tokens_ratio), alpha);
  row.ratio = std::exp(interval.center);
  row.low = std::exp(interval.low);
  row.high = std::exp(interval.high);
  row.verdict = verdict_of_interval(interval.low, interval.high, smallest_effect);
}

}  // namespace

bool same_settings(const Result& first, const ResultCase& one, const Result& second, const ResultCase& other) {
  for (std::size_t v = 0; v < first.variables.size(); ++v) {
    const auto at = std::find(second.variables.begin(), second.variables.end(), first.variables[v]);
    if (at == second.variables.end()) continue;
    if (one.settings[v] != other.settings[static_cast<std::size_t>(at - second.variables.begin())]) return false;
  }
  return true;
}

std::vector<StepPart> parts_of_splits(const Result& result, int case_index) {
  double compute = 0, exposed = 0, idle = 0;
  int ranks = 0;
  for (const ResultSplit& split : result.splits) {
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
  for (std::size_t i = 0; i < part_count; ++i) {
    if (const auto seconds = breakdown.mean.parts.seconds[i]) parts.push_back({name_of(part_at(i)), *seconds});
  }
  return parts;
}

Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         const ComparisonOptions& options) {
  if (first.empty() || second.empty()) fail("a comparison needs a result file on each side");
  refuse_copies(first);
  refuse_copies(second);
  Comparison out;
  out.first = labels(first);
  out.second = labels(second);
  out.same_run = share_a_run(first, second);
  out.smallest_effect = first[0].result->smallest_effect;
  const Result& reference = *first[0].result;
  const Result& other = *second[0].result;
  std::vector<bool> taken_first(reference.cases.size()), taken_second(other.cases.size());
  std::vector<double> tokens_ratios;
  bool all_between = first.size() >= runs_for_an_interval && second.size() >= runs_for_an_interval;
  for (std::size_t i = 0; i < reference.cases.size(); ++i) {
    const ResultCase& one = reference.cases[i];
    const int match = counterpart(reference, one, other);
    if (match < 0 || taken_second[static_cast<std::size_t>(match)]) continue;
    // A case of the other side may have a nearer relative than this one: its own of the same name.
    const ResultCase& theirs = other.cases[static_cast<std::size_t>(match)];
    if (counterpart(other, theirs, reference) != static_cast<int>(i)) continue;
    taken_first[i] = taken_second[static_cast<std::size_t>(match)] = true;
    const auto find_in = [&](std::span<const ComparedFile> side, int at_first) {
      std::vector<int> indices{at_first};
      for (const ComparedFile& run : side.subspan(1)) indices.push_back(counterpart(reference, one, *run.result));
      return indices;
    };
    CaseComparison row;
    row.name = one.name == theirs.name ? one.name : one.name + " = " + theirs.name;
    row.first = side_of(first, find_in(first, static_cast<int>(i)), options.parts_of);
    row.second = side_of(second, find_in(second, match), options.parts_of);
    const double before = tokens_of(reference, static_cast<int>(i)), after = tokens_of(other, match);
    tokens_ratios.push_back(before > 0 && after > 0 ? after / before : 1);
    if (row.first.run_seconds.empty() || row.second.run_seconds.empty()) {
      out.cases.push_back(std::move(row));
      continue;
    }
    ++out.comparisons;
    all_between &=
        row.first.run_seconds.size() >= runs_for_an_interval && row.second.run_seconds.size() >= runs_for_an_interval;
    out.cases.push_back(std::move(row));
  }
  out.between_runs = all_between && out.comparisons > 0;
  const double alpha = (1 - confidence) / std::max(out.comparisons, 1);
  for (std::size_t i = 0; i < out.cases.size(); ++i) {
    CaseComparison& row = out.cases[i];
    if (row.first.run_seconds.empty() || row.second.run_seconds.empty()) continue;
    judge(row, out.between_runs, alpha, out.smallest_effect, tokens_ratios[i]);
  }
  say_not_aligned(first[0], second[0], taken_first, taken_second, out.not_aligned);
  return out;
}

std::vector<std::string> why_unreliable(std::span<const ComparedFile> files) {
  std::vector<std::string> reasons;
  for (const ComparedFile& file : files) {
    if (file.summary->unreliable) {
      reasons.push_back(
          fmt::format("{} is unreliable: its control, baseline_again, came out {} than the baseline that "
                      "it repeats; measure again when the machine is quiet",
                      file.label, name_of(file.summary->control->verdict)));
    }
    if (file.summary->partial) {
      reasons.push_back(fmt::format("{} is partial: blocks are missing; `sweep --resume` goes on with it", file.label));
    }
  }
  return reasons;
}

bool any_slower(const Comparison& comparison, double share) {
  return std::any_of(comparison.cases.begin(), comparison.cases.end(),
                     [&](const CaseComparison& row) { return row.low > 1 + share; });
}

}  // namespace harness
