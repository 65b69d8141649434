#include "analysis/sizes.h"

#include <algorithm>
#include <limits>

#include "config/registry.h"

namespace harness::analysis {
namespace {

bool is_size(const store::ResultCase& row) {
  return config::purpose_of(row.variable) == config::Purpose::size;
}

}  // namespace

bool sweeps_sizes_alone(const store::Result& result) {
  const auto is_change = [](const store::ResultCase& row) { return !row.variable.empty(); };
  return std::ranges::any_of(result.cases, is_change) &&
         std::ranges::all_of(result.cases,
                             [&](const store::ResultCase& row) { return !is_change(row) || is_size(row); });
}

std::vector<const CaseSummary*> by_size(const store::Result& result, const Summary& summary) {
  std::vector<const CaseSummary*> rows;
  for (const CaseSummary& row : summary.cases) {
    if (row.role == store::CaseRole::baseline || is_size(result.at(row))) rows.push_back(&row);
  }
  const auto bytes = [&](const CaseSummary* row) {
    const store::ResultPoint* point = result.find_point(row->case_index);
    return point == nullptr ? std::numeric_limits<double>::infinity() : point->bytes;
  };
  std::ranges::stable_sort(rows, {}, bytes);
  return rows;
}

std::optional<double> average_bus_bandwidth(const store::Result& result, const Summary& summary) {
  double sum = 0;
  int sizes = 0;
  for (const CaseSummary* row : by_size(result, summary)) {
    if (!row->rates || !row->rates->bus_bytes_per_s) continue;
    sum += *row->rates->bus_bytes_per_s;
    ++sizes;
  }
  if (sizes < 2) return std::nullopt;
  return sum / sizes;
}

int failed_blocks(const store::Result& result, std::int32_t case_index) {
  return static_cast<int>(std::ranges::count_if(result.blocks, [&](const store::ResultBlock& block) {
    return block.case_index == case_index && block.status == store::BlockStatus::failed;
  }));
}

}  // namespace harness::analysis
