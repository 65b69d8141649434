#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "program/operation.h"
#include "program/program.h"

namespace harness::program {

/// Which operations of a list are complete when another begins, following stream order and waits alone. Members of a
/// fused group begin together: none is complete when another begins.
class HappensBefore {
 public:
  /// Waits that do not name an earlier operation are ignored here; verify() reports them.
  HappensBefore(const std::vector<Operation>& list, std::size_t streams) : streams_(streams) {
    known_.assign(list.size() * streams, -1);
    std::vector<OperationId> last(streams, -1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      OperationId* mine = &known_[i * streams];
      const auto share = [&](OperationId earlier) {
        const OperationId* theirs = &known_[earlier * streams];
        for (std::size_t s = 0; s < streams; ++s) mine[s] = std::max(mine[s], theirs[s]);
      };
      const auto take = [&](OperationId earlier) {
        share(earlier);
        const std::size_t on = list[earlier].stream;
        mine[on] = std::max(mine[on], earlier);
      };
      const std::size_t stream = list[i].stream;
      const OperationId previous = last[stream];
      const std::int32_t group = list[i].fused_group;
      if (previous >= 0 && group >= 0 && list[previous].fused_group == group) {
        share(previous);
      } else if (previous >= 0) {
        take(previous);
      }
      for (const OperationId w : list[i].waits) {
        if (w >= 0 && std::cmp_less(w, i)) take(w);
      }
      last[stream] = static_cast<OperationId>(i);
    }
  }

  /// By stream: the latest operation there that is complete before `later` begins, and with it all before it; -1: none.
  std::span<const OperationId> complete_before(OperationId later) const {
    return {&known_[later * streams_], streams_};
  }
  /// True if `earlier`, which runs on `earlier_stream`, is complete before `later` begins.
  bool ordered(OperationId earlier, StreamId earlier_stream, OperationId later) const {
    return known_[later * streams_ + earlier_stream] >= earlier;
  }

 private:
  std::size_t streams_;
  std::vector<OperationId> known_;  // [operation][stream]: the latest operation there that is complete before it
};

/// By operation of a list, not 0 for a computation beside which one of another stream may run, because neither is
/// complete when the other begins: the two may have to share the device. Follows stream order and waits alone.
std::vector<char> computes_beside_another(const std::vector<Operation>& list, std::size_t streams);

}  // namespace harness::program
