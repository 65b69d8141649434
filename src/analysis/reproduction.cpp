#include "analysis/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "analysis/two_samples.h"
#include "base/error.h"

namespace harness {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double confidence = 0.95;

bool is_change(const CaseSummary& one) {
  return one.name != "baseline" && one.name != "baseline_again";
}

const CaseSummary* find_change(const ComparedFile& file, const ResultCase& change) {
  for (const CaseSummary& one : file.summary->cases) {
    const ResultCase& row = file.result->cases[static_cast<std::size_t>(one.case_index)];
    if (is_change(one) && row.variable == change.variable && row.value == change.value) return &one;
  }
  return nullptr;
}

// Of one run: what its own analysis says. Of several: the runs are the sample.
std::optional<SideEffect> effect_of(std::span<const ComparedFile> side, const ResultCase& change, int comparisons) {
  std::vector<double> log_ratios;
  bool there = false;
  for (const ComparedFile& file : side) {
    const CaseSummary* one = find_change(file, change);
    if (one == nullptr) continue;
    there = true;
    if (!one->effect) continue;
    const Effect& e = *one->effect;
    if (side.size() == 1) return SideEffect{e.verdict, e.ratio, e.low, e.high, e.rounds};
    if (std::isfinite(e.ratio) && e.verdict != Verdict::not_honoured) log_ratios.push_back(std::log(e.ratio));
  }
  if (!there) return {};
  const double alpha = (1 - confidence) / std::max(comparisons, 1);
  const TrimmedInterval interval = yuen_interval(log_ratios, alpha);
  SideEffect effect{Verdict::none, nan, nan, nan, static_cast<int>(log_ratios.size())};
  if (log_ratios.size() < 3) return effect;
  effect.ratio = std::exp(interval.center);
  effect.low = std::exp(interval.low);
  effect.high = std::exp(interval.high);
  effect.verdict = verdict_of_interval(interval.low, interval.high, side[0].result->smallest_effect);
  return effect;
}

Reproduced judge(Verdict first, Verdict second) {
  const auto decided = [](Verdict v) { return v == Verdict::faster || v == Verdict::slower || v == Verdict::same; };
  if (!decided(first) || !decided(second)) return Reproduced::undecided;
  if (first == second) return Reproduced::yes;
  return first == Verdict::same || second == Verdict::same ? Reproduced::no : Reproduced::opposite;
}

void check_side(std::span<const ComparedFile> side) {
  if (side.empty()) fail("--reproduce needs a result file on each side");
  if (side.size() == 2) {
    fail("{} and {} are two runs of one side: give one, or three and more so that their spread can be told",
         side[0].label, side[1].label);
  }
  std::set<std::string> runs;
  for (const ComparedFile& file : side) {
    if (!runs.insert(file.result->run_uuid).second) {
      fail("{} holds a run that stands on its side already: one run counts once", file.label);
    }
  }
}

}  // namespace

const char* name_of(Reproduced reproduced) {
  switch (reproduced) {
    case Reproduced::yes:
      return "reproduced";
    case Reproduced::no:
      return "not reproduced";
    case Reproduced::opposite:
      return "opposite";
    case Reproduced::undecided:
      break;
  }
  return "undecided";
}

Reproduction reproduce(std::span<const ComparedFile> first, std::span<const ComparedFile> second) {
  check_side(first);
  check_side(second);
  Reproduction out;
  for (const ComparedFile& file : first) out.first.push_back(file.label);
  for (const ComparedFile& file : second) out.second.push_back(file.label);
  out.first_by_runs = first.size() > 1;
  out.second_by_runs = second.size() > 1;
  int comparisons = 0;
  for (const CaseSummary& one : first[0].summary->cases) comparisons += is_change(one);
  for (const CaseSummary& one : first[0].summary->cases) {
    if (!is_change(one)) continue;
    const ResultCase& change = first[0].result->cases[static_cast<std::size_t>(one.case_index)];
    const auto here = effect_of(first, change, comparisons);
    const auto there = effect_of(second, change, comparisons);
    if (!there) {
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", one.name, second[0].label));
      continue;
    }
    const SideEffect nothing{Verdict::none, nan, nan, nan, 0};
    ChangeReproduction row{one.name, here.value_or(nothing), *there, Reproduced::undecided};
    row.reproduced = judge(row.first.verdict, row.second.verdict);
    out.changes.push_back(std::move(row));
  }
  for (const CaseSummary& one : second[0].summary->cases) {
    const ResultCase& change = second[0].result->cases[static_cast<std::size_t>(one.case_index)];
    if (is_change(one) && find_change(first[0], change) == nullptr) {
      out.only_in_one.push_back(fmt::format("{} was not tried in {}", one.name, first[0].label));
    }
  }
  return out;
}

}  // namespace harness
