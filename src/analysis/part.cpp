#include "analysis/part.h"

#include <algorithm>
#include <array>

namespace harness::analysis {

bool is_collective(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kinds{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(std::string_view kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

double Parts::sum(bool (*wanted)(Part)) const {
  double total = 0;
  for (const Part part : all_parts) {
    if (wanted(part)) total += (*this)[part].value_or(0);
  }
  return total;
}

}  // namespace harness::analysis
