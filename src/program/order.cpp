#include "program/order.h"

namespace harness::program {

std::vector<char> computes_beside_another(const std::vector<Operation>& list, std::size_t streams) {
  const HappensBefore before(list, streams);
  std::vector<std::vector<OperationId>> computations(streams);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_communication(list[i].action)) computations[list[i].stream].push_back(static_cast<OperationId>(i));
  }
  std::vector<char> beside(list.size(), 0);
  for (const std::vector<OperationId>& own : computations) {
    for (const OperationId id : own) {
      const StreamId stream = list[id].stream;
      for (std::size_t other = 0; other < streams; ++other) {
        if (std::cmp_equal(other, stream)) continue;
        const auto other_id = static_cast<StreamId>(other);
        // The first of those that are not complete before this one begins first: if it waits for this one, all do.
        const auto next = std::ranges::partition_point(
            computations[other], [&](OperationId earlier) { return before.ordered(earlier, other_id, id); });
        if (next != computations[other].end() && !before.ordered(id, stream, *next)) beside[id] = 1;
      }
    }
  }
  return beside;
}

}  // namespace harness::program
