#pragma once

#include <optional>
#include <vector>

#include "store/result.h"

namespace harness {

/// Medians over the timed steps of the finished blocks of two cases in the rounds in which both finished in one
/// session: what can be compared. Same order in both.
struct Pairs {
  std::vector<double> first, second;
};
/// without: rounds to leave out.
Pairs pair_blocks(const Result& result, int first_case, int second_case, const std::vector<std::int32_t>& without = {});

/// Rounds in which some block ran on throttled devices: by the reasons that NVML gave, or because its mean clock was
/// more than 5 % below the median block's. Ascending.
std::vector<std::int32_t> throttled_rounds(const Result& result);

/// The median timed step of a finished block; nothing if the block did not finish or has no usable samples.
std::optional<double> block_median(const Result& result, std::size_t block);

/// What the case's step repeats; nullptr where it is no single operation.
const ResultPoint* find_point(const Result& result, int case_index);

/// By exact name; -1 if there is none.
int find_case(const Result& result, const std::string& name);

}  // namespace harness
