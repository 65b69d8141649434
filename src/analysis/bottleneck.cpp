#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

#include "analysis/cases.h"
#include "analysis/findings.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "program/count.h"

namespace harness::analysis {
namespace {

// Returns the bytes that a rank's operations other than products and attention read and write, mean over roles. Nothing
// for older files, which do not record them.
std::optional<double> other_bytes(const store::Result& result, int case_index, std::size_t roles) {
  std::optional<double> bytes;
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index != case_index || row.recomputed != 0 || !row.group.empty()) continue;
    if (row.kind == "matmul" || row.kind.starts_with("attention")) continue;
    bytes = bytes.value_or(0) + row.bytes / static_cast<double>(roles);
  }
  return bytes;
}

// Returns the least time of a rank's messages of this part over the stated links, hidden or not, mean over roles. Sends
// and receives overlap; collectives run one after the other. Nothing if a limit is not known.
std::optional<double> least_communication_s(const store::Result& result, int case_index, Part part, std::size_t roles) {
  double collectives_s = 0;
  std::map<std::int32_t, double> sent_s, received_s;  // by role
  bool any = false;
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index != case_index || row.group != key_of(part) || row.operations == 0) continue;
    if (!(row.limit_s > 0)) return std::nullopt;
    any = true;
    if (row.kind == "send") {
      sent_s[row.role] += row.limit_s;
    } else if (row.kind == "receive") {
      received_s[row.role] += row.limit_s;
    } else {
      collectives_s += row.limit_s;
    }
  }
  if (!any) return std::nullopt;
  for (const auto& [role, s] : received_s) sent_s[role] = std::max(sent_s[role], s);
  for (const auto& [role, s] : sent_s) collectives_s += s;
  return collectives_s / static_cast<double>(roles);
}

std::string bar_name(Part part) {
  if (part == Part::matrix_products || part == Part::attention) return fmt::format("{} below peak", name_of(part));
  if (part == Part::other_compute) return "memory-bound operations";
  if (part == Part::communication) return "other exposed communication";
  return fmt::format("{}{}", is_exposed_communication(part) && part != Part::world ? "exposed " : "", name_of(part));
}

// The time of the model's FLOP on a rank at the peak. The causal and non-causal counts differ in attention alone, of
// which the causal one counts half. So their difference is attention's share.
struct IdealSeconds {
  double products = 0, attention = 0, recomputation = 0;

  explicit IdealSeconds(const store::ResultCase& row) {
    const program::DeviceRates all_ranks{.flops = row.ranks * row.peak_flops_per_rank};
    const auto seconds = [&](double flop) { return program::least_time(flop, 0, all_ranks).seconds(); };
    attention = seconds(row.noncausal_flop_per_step - row.model_flop_per_step);
    products = seconds(row.model_flop_per_step) - attention;
    recomputation = seconds(row.hardware_flop_per_step - row.model_flop_per_step);
  }
  double of(Part part) const {
    if (part == Part::matrix_products) return products;
    return part == Part::attention ? attention : 0;
  }
};

void set_roof(const store::Result& result, const CaseBreakdown& breakdown, const IdealSeconds& ideal, Part part,
              WaterfallBar& bar) {
  const std::size_t roles = breakdown.ranks.size();
  if (part == Part::matrix_products || part == Part::attention || part == Part::recomputation) {
    bar.roof_s = part == Part::recomputation ? ideal.recomputation : ideal.of(part);
    bar.roof = "peak FLOP/s";
  } else if (part == Part::other_compute) {
    const std::optional<double> bytes = other_bytes(result, breakdown.case_index, roles);
    if (!bytes || !(result.memory_bytes_per_s > 0)) return;
    bar.roof_s = program::least_time(0, *bytes, {.memory_bytes_per_s = result.memory_bytes_per_s}).seconds();
    bar.roof = breakdown.mean.hidden_s(part) > 0 ? "memory bandwidth, hidden or not" : "memory bandwidth";
  } else if (is_exposed_communication(part)) {
    bar.roof_s = least_communication_s(result, breakdown.case_index, part, roles);
    if (bar.roof_s) bar.roof = "stated links, hidden or not";
  } else {
    bar.roof_s = 0;
    bar.roof = "none needed";
  }
}

using Kind = BottleneckKind;
constexpr double min_lever = 0.002;  // share of the step: less is not shown
constexpr std::size_t max_levers = 10;
constexpr double least_printed = 0.0005;  // as 0.1 %

// Returns the roof of a part in seconds; nothing if it is not known. Recomputation has none: like waiting, it is
// avoidable.
std::optional<double> roof_of(Part part, const Waterfall* waterfall) {
  if (waterfall == nullptr || part == Part::recomputation) return std::nullopt;
  const auto bar = std::ranges::find(waterfall->bars, std::optional(part), &WaterfallBar::part);
  return bar == waterfall->bars.end() ? std::nullopt : bar->roof_s;
}

// Returns the share of the step that each part loses: the time beyond its roof, or all of it if the roof is not known.
// Products and attention have no entry without a peak, because nothing then tells whether they are slow.
std::map<Part, double> lost_shares(const Breakdown& mean, const Waterfall* waterfall) {
  std::map<Part, double> lost;
  for (const Part part : all_parts) {
    const std::optional<double> roof_s = roof_of(part, waterfall);
    const bool needs_peak = part == Part::matrix_products || part == Part::attention;
    if (!mean[part] || !(mean.step_s > 0) || (needs_peak && !roof_s)) continue;
    // A roof covers the whole part, of which as much as now stays hidden.
    const double least_s = std::max(0.0, roof_s.value_or(0) - mean.hidden_s(part));
    lost[part] = std::max(0.0, *mean[part] - least_s) / mean.step_s;
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

// Lists the parts of a kind, largest loss first: "data communication 31.5 % (41.6 ms; 12.0 ms at its limit, hidden or
// not)".
std::string parts_in_words(const Breakdown& mean, Kind kind, const std::map<Part, double>& lost,
                           const Waterfall* waterfall) {
  std::vector<std::pair<double, Part>> parts;
  for (const auto& [part, share] : lost) {
    if (kind_of(part) == kind && share >= least_printed) parts.emplace_back(share, part);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::vector<std::string> words;
  for (const auto& [share, part] : parts) {
    const std::optional<double> roof_s = roof_of(part, waterfall);
    const bool has_limit = is_exposed_communication(part) || part == Part::other_compute;
    std::string limit;
    if (has_limit)
      limit = roof_s ? fmt::format("; {} at its limit, hidden or not", show_seconds(*roof_s)) : "; limit not known";
    words.push_back(
        fmt::format("{} {} ({}{})", name_of(part), percent(share), show_seconds(share * mean.step_s), limit));
  }
  return join(words, ", ");
}

template <class Key>
std::string largest(const std::vector<std::pair<Key, double>>& list, double step_s, const auto& name) {
  std::vector<std::string> words;
  for (const auto& [key, s] : list) {
    if (words.size() == 3) break;
    words.push_back(fmt::format("{} {}", std::invoke(name, key), percent(s / step_s)));
  }
  return join(words, ", ");
}

// Suggests changes so that input data arrives in time.
std::string loading_remedy(const config::Settings& s) {
  if (s.data_file.empty()) return "";
  if (s.loader_workers == 0)
    return " Its loader_workers are 0, so that it loads each batch itself: 1 or more load the next ones behind it.";
  return fmt::format(
      " Its {} with loader_prefetch {} do not keep up: more of them help if a batch takes long to prepare, a data_file "
      "on faster storage if it takes long to read.",
      plural(s.loader_workers, "loader worker"), s.loader_prefetch);
}

std::string evidence_of(const store::Result& result, const CaseBreakdown& breakdown, const Bottleneck& found,
                        const std::map<Part, double>& lost, const Stragglers& stragglers, const Waterfall* waterfall) {
  const Breakdown& mean = breakdown.mean;
  const std::string parts = parts_in_words(mean, found.kind, lost, waterfall);
  const std::string share = percent(found.share);
  switch (found.kind) {
    case Kind::loading:
      return fmt::format("The step spends {} of its time waiting for its input buffers to be filled.", share) +
             loading_remedy(settings_of(result, result.at(breakdown)));
    case Kind::communication:
      return fmt::format(
          "Exposed communication costs {} of the step: {}. Another {} of the step runs behind computation.", share,
          parts, percent(mean.overlapped_s() / mean.step_s));
    case Kind::compute:
      return fmt::format("Running below peak FLOP/s costs {} of the step: {}.", share, parts);
    case Kind::memory:
      return fmt::format("Memory-bound operations cost {} of the step: {}. The longest: {}.", share, parts,
                         largest(mean.other_compute, mean.step_s, std::identity()));
    case Kind::host:
      return fmt::format("Nothing runs on the device for {} of the step: {}.", share,
                         largest(mean.idle, mean.step_s, &IdlePlace::name));
    case Kind::bubble:
      return fmt::format("A stage waits for another stage for {} of the step (mean over stages).", share);
    case Kind::stragglers:
      if (!stragglers.found())
        return fmt::format("Ranks spend {} of the step waiting for slower ranks; no single rank is consistently late.",
                           share);
      break;
    case Kind::none:
      return "";
  }
  const Straggler& s = stragglers.ranks.front();
  return fmt::format(
      "Ranks spend {} of the step waiting for slower ranks. Rank {} ({}) is late by {}, of which {} computing and {} "
      "idle, in {} of {} cases.",
      share, s.rank, s.host, show_seconds(s.late_s), show_seconds(std::max(0.0, s.compute_s)),
      show_seconds(std::max(0.0, s.idle_s)), s.late_cases, stragglers.cases);
}

// Returns, for example, "computation, data communication". Several computation parts become one "computation".
std::string words_for(const std::vector<Part>& parts) {
  std::vector<std::string> words;
  const bool all_computation = std::ranges::count_if(parts, is_computation) > 1;
  for (const Part part : parts) {
    const std::string word = all_computation && is_computation(part) ? "computation" : name_of(part);
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return join(words, ", ");
}

std::vector<Lever> levers_for(const store::Result& result, const CaseBreakdown& found,
                              const std::map<Part, double>& lost) {
  std::vector<Lever> levers;
  config::Settings known = settings_of(result, result.at(found));
  known.ranks = result.at(found).ranks;  // some variables depend on it
  for (const config::Variable& variable : config::registry()) {
    if (!variable.honoured_on(result.backend, result.step_backend())) continue;
    if (!variable.fastest.empty() && variable.print(known) == variable.fastest) continue;
    if (!variable.without_effect(known).empty()) continue;
    const auto loses = [&](Part part) { return lost.contains(part) && lost.at(part) >= min_lever; };
    if (std::ranges::none_of(variable.acts_on, loses)) continue;
    Lever lever{.variable = variable.name};
    std::vector<Part> parts;
    for (const Part part : all_parts) {
      if (std::ranges::find(variable.acts_on, part) == variable.acts_on.end()) continue;
      lever.share += found.mean.share(part);
      if (lost.contains(part)) lever.lost += lost.at(part);
      if (found.mean.share(part) >= min_lever) parts.push_back(part);
    }
    lever.acts_on = words_for(parts);
    levers.push_back(std::move(lever));
  }
  // Doubling the peak also halves the time at the peak.
  std::ranges::stable_sort(levers, std::ranges::greater(), [](const Lever& lever) {
    return config::find_variable(lever.variable)->moves_peak ? (lever.share + lever.lost) / 2 : lever.lost;
  });
  if (levers.size() > max_levers) levers.resize(max_levers);
  return levers;
}

}  // namespace

std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown) {
  const store::ResultCase& row = result.at(breakdown);
  const Breakdown& mean = breakdown.mean;
  if (!(row.model_flop_per_step > 0)) return {};  // a step of communication alone has no share of the peak
  if (!(row.peak_flops_per_rank > 0) || !(mean.step_s > 0)) return {};
  Waterfall w;
  w.timed = summary.mfu.has_value() && summary.step_seconds > 0;
  w.step_s = w.timed ? summary.step_seconds : mean.step_s;
  w.ideal_s = row.model_flop_per_step / row.ranks / row.peak_flops_per_rank;
  w.mfu = w.timed ? *summary.mfu : w.ideal_s / mean.step_s;
  if (std::isfinite(summary.gpu_utilisation)) w.gpu_utilisation = summary.gpu_utilisation;
  const IdealSeconds ideal(row);
  for (const Part part : all_parts) {
    if (!mean[part] && ideal.of(part) == 0) continue;
    WaterfallBar& bar = w.bars.emplace_back();
    bar.name = bar_name(part);
    bar.part = part;
    bar.seconds = mean[part].value_or(0);
    bar.points = (bar.seconds - ideal.of(part)) / mean.step_s;
    set_roof(result, breakdown, ideal, part, bar);
  }
  if (!w.timed) return w;
  // The profiler costs time, and a single step differs from the median of many.
  WaterfallBar& difference = w.bars.emplace_back();
  difference.name = "profiled step differs from the timed ones";
  difference.seconds = w.step_s - mean.step_s;
  difference.points = w.ideal_s / mean.step_s - w.mfu;
  return w;
}

const char* name_of(BottleneckKind kind) {
  static constexpr std::array names{"none",         "data loading", "communication",   "compute below its roof",
                                    "memory-bound", "host-bound",   "pipeline bubble", "stragglers"};
  return names[static_cast<std::size_t>(kind)];
}

Bottleneck find_bottleneck(const store::Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers) {
  Bottleneck found;
  const std::map<Part, double> lost = lost_shares(breakdown.mean, waterfall);
  std::map<Kind, double> by_kind;
  for (const auto& [part, share] : lost) by_kind[kind_of(part)] += share;
  for (const auto& [kind, share] : by_kind) {
    if (share <= found.share) continue;
    found.kind = kind;
    found.share = share;
  }
  if (found.kind == Kind::none) return found;
  found.evidence = evidence_of(result, breakdown, found, lost, stragglers, waterfall);
  found.levers = levers_for(result, breakdown, lost);
  return found;
}

}  // namespace harness::analysis
