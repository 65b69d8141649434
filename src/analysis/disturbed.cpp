#include "analysis/disturbed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/median.h"
#include "base/units.h"

namespace harness::analysis {

void Exceeded::count(std::size_t block, double value, double limit) {
  if (std::isnan(value)) return;
  ++known;
  if (value > limit) ++blocks;
  if (value <= most) return;
  most = value;
  worst = block;
}

bool Exceeded::is_news() const {
  constexpr double few = 0.1;
  return blocks > few * known;
}

Exceeded foreign_use(const store::Result& result) {
  constexpr double much = 0.05;  // of the cores
  std::map<std::string, std::int32_t> cores;
  for (const store::ResultRank& rank : result.rank_table) cores[rank.host] = std::max(cores[rank.host], rank.cores);
  Exceeded foreign;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    const machine::Conditions& row = result.conditions[i];
    if (result.blocks[i].status != store::BlockStatus::ok) continue;
    const std::int32_t of_host = cores[row.busiest_host];
    if (of_host > 0) foreign.count(i, row.foreign_cores, much * of_host);
  }
  return foreign;
}

Exceeded stolen_time(const store::Result& result) {
  Exceeded steal;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    if (result.blocks[i].status == store::BlockStatus::ok)
      steal.count(i, result.conditions[i].steal_share, much_stolen);
  }
  return steal;
}

namespace {

// All runs of a side together.
template <class Of>
Exceeded over(std::span<const ComparedFile> side, Of of_result) {
  Exceeded all;
  for (const ComparedFile& file : side) {
    const Exceeded one = of_result(*file.result);
    all.known += one.known;
    all.blocks += one.blocks;
  }
  return all;
}

Exceeded throttled_rounds_of(std::span<const ComparedFile> side) {
  Exceeded all;
  for (const ComparedFile& file : side) {
    all.known += file.result->rounds;
    all.blocks += static_cast<int>(file.summary->throttled_rounds.size());
  }
  return all;
}

// The baseline's, by the runs that measured one; nothing where a peak was stated.
std::optional<double> measured_peak(std::span<const ComparedFile> side) {
  std::vector<double> peaks;
  for (const ComparedFile& file : side) {
    const store::ResultCase* baseline = file.result->baseline();
    if (baseline != nullptr && baseline->peak_flops_per_rank > 0 && file.result->peak_source.starts_with("measured"))
      peaks.push_back(baseline->peak_flops_per_rank);
  }
  if (peaks.empty()) return std::nullopt;
  return median(peaks);
}

void add_disturbance(const Exceeded& first, const Exceeded& second, const char* what, const char* unit,
                     std::vector<std::string>& sentences) {
  if (first.is_news() == second.is_news()) return;
  const bool of_second = second.is_news();
  const Exceeded &worse = of_second ? second : first, &other = of_second ? first : second;
  sentences.push_back(fmt::format("{} was disturbed: {} in {} of {} {} ({}: in {} of {})", of_second ? "B" : "A", what,
                                  worse.blocks, worse.known, unit, of_second ? "A" : "B", other.blocks, other.known));
}

}  // namespace

std::vector<std::string> how_machines_differ(std::span<const ComparedFile> first,
                                             std::span<const ComparedFile> second) {
  std::vector<std::string> sentences;
  add_disturbance(over(first, foreign_use), over(second, foreign_use), "other processes kept cores busy", "blocks",
                  sentences);
  add_disturbance(over(first, stolen_time), over(second, stolen_time),
                  "the host of the virtual machine gave CPU time to others", "blocks", sentences);
  add_disturbance(throttled_rounds_of(first), throttled_rounds_of(second), "GPUs were throttled", "rounds", sentences);
  const std::optional<double> of_first = measured_peak(first), of_second = measured_peak(second);
  constexpr double alike = 1.25;  // a peak is measured once, within seconds
  if (of_first && of_second && std::max(*of_first, *of_second) > alike * std::min(*of_first, *of_second)) {
    const bool b_is_slower = *of_second < *of_first;
    const double low = std::min(*of_first, *of_second), high = std::max(*of_first, *of_second);
    sentences.push_back(
        fmt::format("The machine of {} was slower: its measured peak is {:.2g} times lower ({} against {})",
                    b_is_slower ? "B" : "A", high / low, show_flops(low), show_flops(high)));
  }
  return sentences;
}

}  // namespace harness::analysis
