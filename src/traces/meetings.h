#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture.h"

namespace harness::traces {

/// A kernel of communication.
struct Collective {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  Class kernel_class = 0;
  std::int64_t bytes = 0, group_size = 0;  // of its result, of its ranks; 0: not recorded
  double seconds() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};

/// By start.
std::vector<Collective> collectives_of(const Capture& capture, const Device& device);

/// A collective that several ranks have in common. It ends on all of them at once, because none has the result before
/// the last has contributed: so the shortest duration is the transfer, and what another rank's exceeds it is waiting.
struct Meeting {
  struct Member {
    std::size_t rank = 0, collective = 0;  // indices of find_meetings()'s argument
    double waiting_s = 0;
  };
  Class kernel_class = 0;
  std::vector<Member> members;  // by rank
  double transfer_s = 0, longest_s = 0, end_spread_s = 0;
  std::size_t last = 0;  // the rank that came last
  bool is_pair() const;  // a send or receive: the other is most often another pipeline stage
};

struct Meetings {
  std::vector<Meeting> all;     // by start on their first rank
  std::vector<double> clock_s;  // by rank: its clock minus the first rank's; 0 where it was not needed
};

/// Finds the collectives that ranks share: the streams whose kernels of communication have the same kinds in the same
/// order and end together, up to a difference of clocks that is constant. Names of groups are not needed. What does not
/// end together is not the same collective: no waiting is told of it.
Meetings find_meetings(const std::vector<std::vector<Collective>>& ranks);

/// Whether a collective of this class ends on all of its ranks at once.
bool ends_at_once(Class kernel_class);

/// How long one rank waited in the collectives that begin in a window, in seconds, told from this rank alone. The
/// transfer is the shortest of at least four that are alike (by stream, kind and size, or by their place in a step
/// where no size is recorded), if the second shortest is within 20 % of it. A lower bound: a rank that always waits
/// never sees the bare transfer. Absent: no four are alike.
std::optional<double> least_waiting_s(const std::vector<Collective>& all, const std::vector<Window>& steps,
                                      const Window& window);

}  // namespace harness::traces
