#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/bottleneck.h"
#include "analysis/pairing.h"
#include "analysis/statistics.h"

namespace harness {
namespace {

// The numbers that people go by. None of them proves anything; each says where to look.
constexpr double most_communication = 0.5;    // of the step
constexpr double most_per_computation = 0.3;  // communication over computation
constexpr double most_step_spread = 0.10;     // tenth to ninetieth of a hundred timed steps, of the median
constexpr double most_block_spread = 0.10;    // between blocks, which are runs of their own
constexpr double high_utilisation = 0.90, low_mfu = 0.30;
constexpr double most_idle = 0.02;          // of the step, in one place
constexpr double least_beyond_node = 0.90;  // efficiency per rank, of that on one node
constexpr double least_of_batch = 1.05;     // tokens/s for at least twice the batch

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

double quantile(std::vector<double>& sorted, double at) {
  return sorted[static_cast<std::size_t>(std::lround(at * static_cast<double>(sorted.size() - 1)))];
}

void communication(const Breakdown& mean, std::vector<std::string>& fired) {
  const double hidden = mean.overlapped_s();
  const double all = mean.parts.exposed() + mean[Part::waiting].value_or(0) + hidden;
  if (all > most_communication * mean.step_s) {
    fired.push_back(fmt::format(
        "Communication runs for {} of the step, waiting in it included: more than half. Fewer or larger messages, or "
        "another layout, before anything about computation.",
        percent(all / mean.step_s)));
  }
  const double computation = mean.parts.computation();
  if (computation > 0 && all > most_per_computation * computation) {
    fired.push_back(
        fmt::format("Communication takes {:.2f} of the time of computation: above 0.3 it becomes hard to hide; {} of "
                    "the step is not "
                    "hidden.",
                    all / computation, percent((all - hidden) / mean.step_s)));
  }
}

void idle(const Breakdown& mean, std::vector<std::string>& fired) {
  for (const auto& [place, s] : mean.idle) {
    const bool counts =
        place == "between collectives" || place == "forward to backward" || place == "backward to forward";
    if (!counts || s <= most_idle * mean.step_s) continue;
    std::string where = place;
    if (const auto to = where.find(" to "); to != std::string::npos) {
      where = "between " + where.replace(to, 4, " and ");
    }
    fired.push_back(
        fmt::format("Nothing runs for {} of the step {}: the host does not keep up, or something synchronises there.",
                    percent(s / mean.step_s), where));
  }
}

void spreads(const Result& result, int case_index, std::vector<std::string>& fired) {
  std::vector<double> steps, blocks;
  for (std::size_t b = 0; b < result.blocks.size(); ++b) {
    if (result.blocks[b].case_index != case_index) continue;
    const auto middle = block_median(result, b);
    if (!middle) continue;
    blocks.push_back(*middle);
    // Within blocks: against the own block's median, so that a slow block is not counted twice.
    for (auto i = static_cast<std::size_t>(result.warmup_steps); i < result.step_seconds[b].size(); ++i) {
      if (result.step_seconds[b][i] > 0) steps.push_back(result.step_seconds[b][i] / *middle);
    }
  }
  if (steps.size() >= 10) {
    std::sort(steps.begin(), steps.end());
    const double spread = quantile(steps, 0.9) - quantile(steps, 0.1);
    if (spread > most_step_spread) {
      fired.push_back(fmt::format(
          "Steps of one block spread by {} (from the tenth to the ninetieth of a hundred): more than 10 %. Something "
          "interferes from step to step: other jobs, the network, too few cores.",
          percent(spread)));
    }
  }
  if (blocks.size() >= 2) {
    const auto [low, high] = std::ranges::minmax(blocks);
    const double spread = (high - low) / median(blocks);
    if (spread > most_block_spread) {
      fired.push_back(
          fmt::format("Blocks of this same case, each a fresh run, differ by {} (slowest against quickest): more than "
                      "10 %. One run "
                      "of it would say little.",
                      percent(spread)));
    }
  }
}

int nodes_of(const Result& result, int ranks) {
  std::set<int> nodes;
  for (const ResultRank& row : result.rank_table) {
    if (row.rank < ranks) nodes.insert(row.node);
  }
  return static_cast<int>(nodes.size());
}

void beyond_a_node(const Result& result, const Summary& summary, std::vector<std::string>& fired) {
  const CaseSummary *one_node = nullptr, *worst = nullptr;
  const auto per_rank = [&](const CaseSummary& c) {
    return c.tokens_per_second / result.cases[static_cast<std::size_t>(c.case_index)].ranks;
  };
  bool swept = false;
  for (const CaseSummary& c : summary.cases) {
    const ResultCase& row = result.cases[static_cast<std::size_t>(c.case_index)];
    if (c.blocks == 0 || (c.name != "baseline" && row.variable != "ranks")) continue;
    swept = swept || row.variable == "ranks";
    const bool within = nodes_of(result, row.ranks) == 1;
    if (within && (one_node == nullptr || per_rank(c) > per_rank(*one_node))) one_node = &c;
    if (!within && (worst == nullptr || per_rank(c) < per_rank(*worst))) worst = &c;
  }
  if (!swept || one_node == nullptr || worst == nullptr) return;
  const double efficiency = per_rank(*worst) / per_rank(*one_node);
  if (efficiency >= least_beyond_node) return;
  fired.push_back(fmt::format(
      "A rank does {} of the tokens in {} ({} nodes) that it does in {} (one node): efficiency falls beyond one node. "
      "Look at the network between nodes first.",
      percent(efficiency), worst->name,
      nodes_of(result, result.cases[static_cast<std::size_t>(worst->case_index)].ranks), one_node->name));
}

void batch(const Result& result, const Summary& summary, std::vector<std::string>& fired) {
  const int baseline = find_case(result, "baseline");
  if (baseline < 0) return;
  const CaseSummary& before = summary.cases[static_cast<std::size_t>(baseline)];
  for (const CaseSummary& c : summary.cases) {
    const ResultCase& row = result.cases[static_cast<std::size_t>(c.case_index)];
    const ResultCase& first = result.cases[static_cast<std::size_t>(baseline)];
    if (c.blocks == 0 || before.blocks == 0 || row.variable != "global_batch_size") continue;
    const double larger = row.tokens_per_step / first.tokens_per_step;
    const double more = c.tokens_per_second / before.tokens_per_second;
    if (!(larger >= 2) || more >= least_of_batch) continue;
    fired.push_back(
        fmt::format("{}: {:.3g} times the batch gives {:.2f} times the tokens/s. What a step costs once (gradient "
                    "reduction, bubble, "
                    "launching) is not what holds it up, or a larger batch costs something else.",
                    c.name, larger, more));
  }
}

}  // namespace

std::vector<std::string> fired_rules(const Result& result, const Summary& summary, const CaseBreakdown& breakdown) {
  std::vector<std::string> fired;
  const Breakdown& mean = breakdown.mean;
  if (!(mean.step_s > 0)) return fired;
  communication(mean, fired);
  idle(mean, fired);
  spreads(result, breakdown.case_index, fired);
  const CaseSummary& c = summary.cases[static_cast<std::size_t>(breakdown.case_index)];
  if (c.gpu_utilisation > high_utilisation && c.mfu && *c.mfu < low_mfu) {
    fired.push_back(fmt::format(
        "The GPUs are {} utilised, as NVML counts, and MFU is {}: utilisation says that some kernel ran, not that it "
        "used the GPU.",
        percent(c.gpu_utilisation), percent(*c.mfu)));
  }
  return fired;
}

std::vector<std::string> fired_rules(const Result& result, const Summary& summary) {
  std::vector<std::string> fired;
  beyond_a_node(result, summary, fired);
  batch(result, summary, fired);
  return fired;
}

}  // namespace harness
