#pragma once

#include <string>
#include <vector>

#include "support/sample_results.h"

namespace harness::test {

/// A sweep of single operations: steps of ten operations of 0.125 s times the ratio.
inline store::Result operations(const std::vector<std::string>& changes, const std::vector<double>& ratios,
                                double bus_factor) {
  store::Result result = test::samples::sweep(changes, ratios);
  result.variables.emplace_back(bus_factor > 0 ? "message_size" : "gemm");
  for (std::size_t c = 0; c < result.cases.size(); ++c) {
    store::ResultCase& row = result.cases[c];
    const store::ResultCase& point = result.case_at(row.reference);
    row.settings.push_back(point.variable == result.variables.back() ? point.value : "1 kB");
    row.tokens_per_step = 0;
    if (bus_factor > 0) row.model_flop_per_step = 0;
    const double bytes = row.settings.back() == "1 kB" ? 1e3 : 1e9;
    result.points.push_back(
        {static_cast<int>(c), bus_factor > 0 ? "all_reduce" : "gemm", 10, bytes, bus_factor, 0, ""});
  }
  return result;
}

}  // namespace harness::test
