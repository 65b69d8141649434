#include "analysis/places.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace harness {
bool is_collective(const std::string& kind) {
  constexpr std::array<std::string_view, 5> kinds{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                  "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(const std::string& kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

Places::Places(const ResultCase& one) : ranks(std::max(one.ranks, 1)) {
  const std::int64_t product =
      std::int64_t{one.tensor_parallel} * std::int64_t{one.data_parallel} * std::int64_t{one.pipeline_parallel};
  if (one.tensor_parallel < 1 || one.data_parallel < 1 || one.pipeline_parallel < 1 || product != ranks) {
    data = ranks;  // not the layout we know: everybody with everybody
    return;
  }
  tensor = one.tensor_parallel, data = one.data_parallel, pipeline = one.pipeline_parallel;
}

}  // namespace harness
