#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/breakdown_table.h"
#include "report/words.h"

namespace harness {
namespace {

constexpr std::size_t width = 120;
constexpr std::size_t shown_ranks = 4;

std::string absent_parts(const Breakdown& mean) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < part_count; ++i) {
    const Part part = part_at(i);
    if (!mean.parts.seconds[i] && part != Part::communication) names.emplace_back(name_of(part));
  }
  return names.empty() ? "" : "Not present: " + join(names, ", ") + ".";
}

std::string named(const NamedSeconds& names, std::size_t most) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    words.push_back(fmt::format("{} {}", names[i].first, show_seconds(names[i].second)));
  }
  if (names.size() > most) words.push_back(fmt::format("{} more", names.size() - most));
  return join(words, ", ");
}

std::string introduction(const StepAnalysis& all) {
  if (all.cases.empty()) {
    return "There is no breakdown: the file holds no profiled step (an older file, or the sweep was stopped before "
           "it).";
  }
  return "Where one profiled step of each case went, outside the timed blocks: mean over ranks, from one rank per "
         "role. Each "
         "moment belongs to one part: to computation where any ran, else to communication, else it is idle. MFU: "
         "points "
         "of the peak that a part costs. Roof: what it would take at the peak FLOP/s, or memory bandwidth, or 0 where "
         "nothing needs it; none where the limit is unknown.";
}

std::string title(const Result& result, const StepAnalysis::One& one) {
  const auto index = static_cast<std::size_t>(one.breakdown.case_index);
  return one_line(result.cases[index].name);
}

template <class Paragraph>
void straggler_words(const StepAnalysis& all, Paragraph paragraph) {
  if (all.stragglers.found()) {
    const Straggler& s = all.stragglers.ranks.front();
    paragraph(fmt::format("Rank {} on {} ({}) is late: the others wait for it.", s.rank, one_line(s.host),
                          one_line(s.device)));
  } else {
    paragraph("No rank stands out as late.");
  }
  paragraph(all.stragglers.evidence);
}

}  // namespace

std::vector<std::string> breakdown_words(const Result& result, const StepAnalysis::One& one) {
  const Breakdown& mean = one.breakdown.mean;
  std::vector<std::string> words;
  if (one.bottleneck.kind != BottleneckKind::none) {
    std::string text = fmt::format("Bottleneck: {}. {}", name_of(one.bottleneck.kind), one.bottleneck.evidence);
    std::vector<std::string> levers;
    for (const Lever& lever : one.bottleneck.levers) {
      levers.push_back(fmt::format("{} ({}: {})", lever.variable, percent(lever.gain_share), lever.acts_on));
    }
    if (!levers.empty()) {
      text +=
          " Variables that act on what the step loses, with the most that each could gain: " + join(levers, "; ") + ".";
    }
    words.push_back(std::move(text));
  }
  for (const std::string& rule : one.rules) words.push_back("Rule: " + rule);
  if (one.fall) {
    const auto& bars = one.fall->bars;
    const auto above = [](const WaterfallBar& bar) { return bar.part && bar.points < 0; };
    if (std::any_of(bars.begin(), bars.end(), above)) {
      words.emplace_back(
          "Some products ran above the peak in this step, so their points are gains: the peak was measured while all "
          "ranks "
          "shared the machine, or the configured one is too low.");
    }
  }
  if (!mean.other_compute.empty()) words.push_back("Other computation: " + named(mean.other_compute, 5) + ".");
  if (mean[Part::idle].value_or(0) > 0) words.push_back("Idle: " + named(mean.idle, 5) + ".");
  if (!mean.overlapped.empty()) {
    words.push_back("Behind computation, beside the parts and not free: " + named(mean.overlapped, 6) + ".");
  }
  const Breakdown& critical = one.breakdown.ranks[one.breakdown.critical];
  if (one.breakdown.ranks.size() > 1 || critical.rank != one.breakdown.critical_rank) {
    words.push_back(fmt::format("The longest step was rank {}'s{}.", one.breakdown.critical_rank,
                                critical.rank == one.breakdown.critical_rank
                                    ? std::string()
                                    : fmt::format(", which does what rank {} does", critical.rank)));
  }
  if (one.fall && one.fall->gpu_utilisation) {
    words.push_back(fmt::format("GPU utilisation as NVML reports it is {}, MFU {}.",
                                percent(*one.fall->gpu_utilisation), percent(one.fall->mfu)));
  }
  if (!one.fall) {
    const ResultCase& row = result.cases[static_cast<std::size_t>(one.breakdown.case_index)];
    words.push_back(row.peak_flops_per_rank > 0 ? "No MFU: the case has no finished block."
                                                : "No MFU: the peak is unknown.");
  }
  const std::string absent = absent_parts(mean);
  if (!absent.empty()) words.push_back(absent);
  double worst = 0;
  for (const Breakdown& b : one.breakdown.ranks) worst = std::max(worst, unexplained(b));
  if (worst > most_unexplained) {
    words.push_back(
        fmt::format("The parts leave {} of the step unexplained: a fault worth reporting.", percent(worst)));
  }
  return words;
}

std::string breakdown_text(const Result& result, const Summary& summary) {
  const StepAnalysis all = analyse_steps(result, summary);
  std::string out = "\n" + wrapped(introduction(all), width, 2);
  const StepAnalysis::One* baseline = nullptr;
  for (const StepAnalysis::One& one : all.cases) {
    out += fmt::format("\n{}\n", title(result, one)) + breakdown_table(one, baseline).text();
    for (const std::string& paragraph : breakdown_words(result, one)) out += wrapped("- " + paragraph, width, 2);
    if (baseline == nullptr && title(result, one) == "baseline") baseline = &one;
  }
  out += "\nstragglers\n";
  if (!all.stragglers.ranks.empty()) out += straggler_table(all.stragglers, shown_ranks).text();
  straggler_words(all, [&](const std::string& text) { out += wrapped("- " + text, width, 2); });
  for (const std::string& rule : all.rules) out += wrapped("- Rule: " + rule, width, 2);
  return out;
}

std::string breakdown_markdown(const Result& result, const Summary& summary) {
  const StepAnalysis all = analyse_steps(result, summary);
  std::string out = "\n## Where the step goes\n\n" + introduction(all) + "\n";
  const StepAnalysis::One* baseline = nullptr;
  for (const StepAnalysis::One& one : all.cases) {
    out += fmt::format("\n### {}\n\n", title(result, one)) + breakdown_table(one, baseline).markdown() + "\n";
    for (const std::string& paragraph : breakdown_words(result, one)) out += "- " + one_line(paragraph) + "\n";
    if (baseline == nullptr && title(result, one) == "baseline") baseline = &one;
  }
  out += "\n## Stragglers\n\n";
  if (!all.stragglers.ranks.empty()) out += straggler_table(all.stragglers, shown_ranks).markdown() + "\n";
  straggler_words(all, [&](const std::string& text) { out += "- " + text + "\n"; });
  for (const std::string& rule : all.rules) out += "- Rule: " + rule + "\n";
  return out;
}

}  // namespace harness
