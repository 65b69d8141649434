#include "analysis/processes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "analysis/blocks.h"
#include "base/median.h"

namespace harness::analysis {
namespace {

// A one-way analysis of variance with processes as groups (R. A. Fisher; S. R. Searle, G. Casella and C. E. McCulloch,
// "Variance Components"): the mean square between processes is n times their variance plus that of a block. Each value
// is a block's log seconds beyond its case's median.
std::optional<double> deviation_of(const std::map<std::int32_t, std::vector<double>>& by_process) {
  double all = 0, sum = 0, squares_of_sizes = 0, between = 0, within = 0;
  int groups = 0;
  for (const auto& [process, values] : by_process) {
    if (values.size() < 2) continue;
    const auto n = static_cast<double>(values.size());
    const double center = std::accumulate(values.begin(), values.end(), 0.0) / n;
    ++groups;
    all += n;
    squares_of_sizes += n * n;
    sum += n * center;
    between += n * center * center;
    for (const double value : values) within += (value - center) * (value - center);
  }
  if (groups < 3 || !(all > groups)) return std::nullopt;
  between = (between - sum * sum / all) / (groups - 1);
  within /= all - groups;
  const double blocks_of_one = (all - squares_of_sizes / all) / (groups - 1);
  return std::sqrt(std::max(between - within, 0.0) / blocks_of_one);
}

}  // namespace

std::optional<Processes> find_processes(const store::Result& result) {
  if (!shares_processes(result)) return std::nullopt;
  const std::vector<FinishedBlock> blocks = finished_blocks(result);
  std::map<std::int32_t, std::vector<double>> by_case, beyond_case;
  for (const FinishedBlock& block : blocks) by_case[block.case_index].push_back(std::log(block.seconds));
  for (const FinishedBlock& block : blocks)
    beyond_case[result.blocks[block.index].process].push_back(std::log(block.seconds) -
                                                              median(by_case[block.case_index]));
  Processes out;
  out.processes = static_cast<int>(beyond_case.size());
  out.shared =
      static_cast<int>(std::ranges::count_if(beyond_case, [](const auto& row) { return row.second.size() > 1; }));
  out.deviation = deviation_of(beyond_case);
  return out;
}

}  // namespace harness::analysis
