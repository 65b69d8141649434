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
  for (const Part part : all_parts) {
    if (!mean[part] && part != Part::communication) names.emplace_back(name_of(part));
  }
  return names.empty() ? "" : "Not present: " + join(names, ", ") + ".";
}

std::string words_for(const std::string& name) {
  return name;
}
std::string words_for(const IdlePlace& place) {
  return place.name();
}
std::string words_for(Part part) {
  return name_of(part);
}

template <class Key>
std::string named(const std::vector<std::pair<Key, double>>& list, std::size_t max_listed) {
  std::vector<std::string> words;
  for (const auto& [key, s] : list) {
    if (words.size() < max_listed) words.push_back(fmt::format("{} {}", words_for(key), show_seconds(s)));
  }
  if (list.size() > max_listed) words.push_back(fmt::format("{} more", list.size() - max_listed));
  return join(words, ", ");
}

std::string introduction(const Findings& all) {
  if (all.steps.empty()) {
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

std::string title(const Result& result, const StepFindings& step) {
  return one_line(result.at(step.breakdown).name);
}

template <class Paragraph>
void straggler_words(const Findings& all, Paragraph paragraph) {
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

std::vector<std::string> breakdown_words(const Result& result, const StepFindings& step) {
  const Breakdown& mean = step.breakdown.mean;
  std::vector<std::string> words;
  if (step.bottleneck.kind != BottleneckKind::none) {
    std::string text = fmt::format("Bottleneck: {}. {}", name_of(step.bottleneck.kind), step.bottleneck.evidence);
    std::vector<std::string> levers;
    for (const Lever& lever : step.bottleneck.levers) {
      levers.push_back(fmt::format("{} ({}: {})", lever.variable, percent(lever.gain_share), lever.acts_on));
    }
    if (!levers.empty()) {
      text +=
          " Variables that act on what the step loses, with the most that each could gain: " + join(levers, "; ") + ".";
    }
    words.push_back(std::move(text));
  }
  for (const std::string& rule : step.rules) words.push_back("Rule: " + rule);
  if (step.waterfall) {
    const auto& bars = step.waterfall->bars;
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
  const Breakdown& critical = step.breakdown.ranks[step.breakdown.critical];
  if (step.breakdown.ranks.size() > 1 || critical.rank != step.breakdown.critical_rank) {
    words.push_back(fmt::format("The longest step was rank {}'s{}.", step.breakdown.critical_rank,
                                critical.rank == step.breakdown.critical_rank
                                    ? std::string()
                                    : fmt::format(", which does what rank {} does", critical.rank)));
  }
  if (step.waterfall && step.waterfall->gpu_utilisation) {
    words.push_back(fmt::format("GPU utilisation as NVML reports it is {}, MFU {}.",
                                percent(*step.waterfall->gpu_utilisation), percent(step.waterfall->mfu)));
  }
  if (!step.waterfall) {
    const ResultCase& row = result.at(step.breakdown);
    words.push_back(row.peak_flops_per_rank > 0 ? "No MFU: the case has no finished block."
                                                : "No MFU: the peak is unknown.");
  }
  const std::string absent = absent_parts(mean);
  if (!absent.empty()) words.push_back(absent);
  double worst = 0;
  for (const Breakdown& b : step.breakdown.ranks) worst = std::max(worst, unexplained(b));
  if (worst > max_unexplained) {
    words.push_back(
        fmt::format("The parts leave {} of the step unexplained: a fault worth reporting.", percent(worst)));
  }
  return words;
}

std::string breakdown_text(const Result& result, const Findings& all) {
  std::string out = "\n" + wrapped(introduction(all), width, 2);
  const StepFindings* baseline = nullptr;
  for (const StepFindings& step : all.steps) {
    out += fmt::format("\n{}\n", title(result, step)) + breakdown_table(step, baseline).text();
    for (const std::string& paragraph : breakdown_words(result, step)) out += wrapped("- " + paragraph, width, 2);
    if (baseline == nullptr && result.at(step.breakdown).role() == CaseRole::baseline) baseline = &step;
  }
  out += "\nstragglers\n";
  if (!all.stragglers.ranks.empty()) out += straggler_table(all.stragglers, shown_ranks).text();
  straggler_words(all, [&](const std::string& text) { out += wrapped("- " + text, width, 2); });
  for (const std::string& rule : all.rules) out += wrapped("- Rule: " + rule, width, 2);
  return out;
}

std::string breakdown_markdown(const Result& result, const Findings& all) {
  std::string out = "\n## Where the step goes\n\n" + introduction(all) + "\n";
  const StepFindings* baseline = nullptr;
  for (const StepFindings& step : all.steps) {
    out += fmt::format("\n### {}\n\n", title(result, step)) + breakdown_table(step, baseline).markdown() + "\n";
    for (const std::string& paragraph : breakdown_words(result, step)) out += "- " + one_line(paragraph) + "\n";
    if (baseline == nullptr && result.at(step.breakdown).role() == CaseRole::baseline) baseline = &step;
  }
  out += "\n## Stragglers\n\n";
  if (!all.stragglers.ranks.empty()) out += straggler_table(all.stragglers, shown_ranks).markdown() + "\n";
  straggler_words(all, [&](const std::string& text) { out += "- " + text + "\n"; });
  for (const std::string& rule : all.rules) out += "- Rule: " + rule + "\n";
  return out;
}

}  // namespace harness
