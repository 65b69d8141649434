#include "analysis/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/levers.h"
#include "base/text.h"
#include "base/units.h"

namespace harness {
namespace {

using Kind = BottleneckKind;
constexpr double least_lever = 0.002;  // of the step: less is not worth a try
constexpr std::size_t most_levers = 10;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// The shares of the step that each part loses: all of it, or what it takes beyond its roof where that is known.
std::map<Part, double> lost_shares(const Breakdown& mean, const Waterfall* waterfall) {
  std::map<Part, double> lost;
  for (std::size_t i = 0; i < part_count; ++i) {
    const Part part = part_at(i);
    if (!mean.parts.seconds[i] || part == Part::matrix_products || part == Part::attention) continue;
    lost[part] = mean.share(part);
  }
  if (waterfall == nullptr) return lost;
  for (const WaterfallBar& bar : waterfall->bars) {
    if (!bar.part || !(waterfall->profiled_step_s > 0)) continue;
    if (*bar.part == Part::matrix_products || *bar.part == Part::attention) {
      lost[*bar.part] = std::max(0.0, bar.seconds - bar.roof_s.value_or(0)) / waterfall->profiled_step_s;
    }
  }
  return lost;
}

Kind kind_of(Part part) {
  if (part == Part::matrix_products || part == Part::attention || part == Part::recomputation) return Kind::compute;
  if (part == Part::other_compute) return Kind::memory;
  if (is_exposed_communication(part)) return Kind::communication;
  if (part == Part::waiting) return Kind::stragglers;
  if (part == Part::bubble) return Kind::bubble;
  return part == Part::loading ? Kind::loading : Kind::host;
}

std::string parts_in_words(const CaseBreakdown& breakdown, Kind kind, const std::map<Part, double>& lost) {
  std::vector<std::pair<double, Part>> parts;
  for (const auto& [part, share] : lost) {
    if (kind_of(part) == kind && share > 0) parts.emplace_back(share, part);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::vector<std::string> words;
  for (const auto& [share, part] : parts) {
    words.push_back(
        fmt::format("{} {} ({})", name_of(part), percent(share), show_seconds(share * breakdown.mean.step_s)));
  }
  return join(words, ", ");
}

std::string largest(const NamedSeconds& names, double step_s) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) {
    words.push_back(fmt::format("{} {}", names[i].first, percent(names[i].second / step_s)));
  }
  return join(words, ", ");
}

std::string setting(const Result& result, int case_index, const std::string& variable) {
  const auto at = static_cast<std::size_t>(std::ranges::find(result.variables, variable) - result.variables.begin());
  const auto& settings = result.cases[static_cast<std::size_t>(case_index)].settings;
  return at < settings.size() ? settings[at] : "";
}

// " They would take … at memory bandwidth.", where that is known.
std::string memory_roof(const Waterfall* waterfall) {
  if (waterfall == nullptr) return "";
  for (const WaterfallBar& bar : waterfall->bars) {
    if (bar.part != Part::other_compute || !bar.roof_s) continue;
    return fmt::format(" At memory bandwidth, every view read or written once, they would take {} instead of {}.",
                       show_seconds(*bar.roof_s), show_seconds(bar.seconds));
  }
  return "";
}

// What the stated links would need for the same messages, where they are known.
std::string link_roof(const Waterfall* waterfall) {
  std::vector<std::string> words;
  if (waterfall == nullptr) return "";
  for (const WaterfallBar& bar : waterfall->bars) {
    if (!bar.part || !is_exposed_communication(*bar.part) || !bar.roof_s) continue;
    words.push_back(fmt::format("{} {}", name_of(*bar.part), show_seconds(*bar.roof_s)));
  }
  if (words.empty()) return "";
  return fmt::format(" The stated links could carry all messages, hidden ones too, in: {}.", join(words, ", "));
}

std::string evidence_of(const CaseBreakdown& breakdown, const Bottleneck& found, const std::map<Part, double>& lost,
                        const Stragglers& stragglers, const Waterfall* waterfall) {
  const Breakdown& mean = breakdown.mean;
  const std::string parts = parts_in_words(breakdown, found.kind, lost);
  const std::string share = percent(found.share);
  switch (found.kind) {
    case Kind::loading:
      return fmt::format("Filling the input buffers holds the step up for {} of it.", share);
    case Kind::communication:
      return fmt::format(
                 "Communication that no computation hides takes {} of the step: {}. Another {} runs behind "
                 "computation.",
                 share, parts, percent(mean.overlapped_s() / mean.step_s)) +
             link_roof(waterfall);
    case Kind::compute:
      return fmt::format("Computation beyond what it would take at peak FLOP/s is {} of the step: {}.", share, parts);
    case Kind::memory:
      return fmt::format("Operations that move memory rather than multiply take {} of the step: {}.", share,
                         largest(mean.other_compute, mean.step_s)) +
             memory_roof(waterfall);
    case Kind::host:
      return fmt::format("For {} of the step nothing runs: {}.", share, largest(mean.idle, mean.step_s));
    case Kind::bubble:
      return fmt::format("For {} of the step, mean over stages, a stage waits for another one.", share);
    case Kind::stragglers:
      if (stragglers.found()) {
        const Straggler& s = stragglers.ranks.front();
        return fmt::format(
            "Ranks wait for slower ones for {} of the step. Late is rank {} ({}): {} beyond the others, {} of it "
            "computing and {} idle, in {} of {} profiled steps.",
            share, s.rank, s.host, show_seconds(s.late_s), show_seconds(std::max(0.0, s.compute_s)),
            show_seconds(std::max(0.0, s.idle_s)), s.late_cases, stragglers.cases);
      }
      return fmt::format(
          "Ranks wait for slower ones for {} of the step, and not always for the same: no rank stands out over the "
          "profiled steps.",
          share);
    case Kind::none:
      break;
  }
  return "";
}

}  // namespace

const char* name_of(BottleneckKind kind) {
  static constexpr std::array names{"none",         "data loading", "communication",   "compute below its roof",
                                    "memory-bound", "host-bound",   "pipeline bubble", "stragglers"};
  return names[static_cast<std::size_t>(kind)];
}

Bottleneck find_bottleneck(const Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers) {
  Bottleneck found;
  found.case_index = breakdown.case_index;
  const std::map<Part, double> lost = lost_shares(breakdown.mean, waterfall);
  std::map<Kind, double> by_kind;
  for (const auto& [part, share] : lost) by_kind[kind_of(part)] += share;
  found.losses.assign(by_kind.begin(), by_kind.end());
  std::ranges::stable_sort(found.losses, std::ranges::greater(), &std::pair<Kind, double>::second);
  if (found.losses.empty() || found.losses.front().second <= 0) return found;
  found.kind = found.losses.front().first;
  found.share = found.losses.front().second;
  found.evidence = evidence_of(breakdown, found, lost, stragglers, waterfall);
  for (const auto& [part, share] : lost) {
    if (share < least_lever) continue;
    for (const std::string& variable : variables_for(part, result.backend)) {
      const std::string now = setting(result, found.case_index, variable);
      if (now == "true" || now == "bf16") continue;  // as quick as this variable can make it
      const auto known = std::ranges::find(found.levers, variable, &Lever::variable);
      Lever& lever = known == found.levers.end() ? found.levers.emplace_back() : *known;
      lever.variable = variable;
      lever.gain_share += share;
      lever.acts_on += (lever.acts_on.empty() ? "" : ", ") + std::string(name_of(part));
    }
  }
  std::ranges::stable_sort(found.levers, std::ranges::greater(), &Lever::gain_share);
  if (found.levers.size() > most_levers) found.levers.resize(most_levers);
  return found;
}

}  // namespace harness
