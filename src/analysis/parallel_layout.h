#pragma once

#include <algorithm>
#include <cstdint>

#include "store/result.h"

namespace harness::analysis {

/// Which ranks of a case belong together: the layout as the GPT step numbers it, rank = tensor + T (data + D pipeline).
/// A case whose sizes do not multiply to its ranks counts as one stage of them all.
struct ParallelLayout {
  explicit ParallelLayout(const store::ResultCase& result_case) : ranks(std::max(result_case.ranks, 1)), data(ranks) {
    const std::int64_t product = std::int64_t{result_case.tensor_parallel} * std::int64_t{result_case.data_parallel} *
                                 std::int64_t{result_case.pipeline_parallel};
    if (std::min({result_case.tensor_parallel, result_case.data_parallel, result_case.pipeline_parallel}) < 1) return;
    if (product != ranks) return;
    tensor = result_case.tensor_parallel;
    data = result_case.data_parallel;
    pipeline = result_case.pipeline_parallel;
  }
  int ranks = 1, tensor = 1, data = 1, pipeline = 1;
  int stage_ranks() const { return tensor * data; }
};

}  // namespace harness::analysis
