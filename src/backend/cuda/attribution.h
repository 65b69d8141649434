#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/activity.h"
#include "program/operation.h"

namespace harness::cuda {

// From what the device did to which operation did it. In an eager step, operation i is launched under external id
// i + 1, and communications that start as one group under that of the group's first.

/// For each operation that left records: from the start of its first to the end of its last, in seconds since begin_ns
/// and in the order of the operations. The members of a fused group all get the group's interval. Records without an
/// external id (or with one beyond the step) belong to nobody.
std::vector<program::Interval> operation_intervals(std::span<const ActivityRecord> records,
                                                   std::span<const program::Operation> step, std::uint64_t begin_ns);

/// A graph's nodes carry no external ids: the records of one replay are paired with those of the same step run eagerly,
/// node ids in one and correlation ids in the other growing in the order of the launches. Returns the replay's records
/// with the external ids of their partners, or nothing and `why` when both do not show the same kernels in the same
/// order, or when kernels that one stream launched after each other ran in another order in the replay.
std::optional<std::vector<ActivityRecord>> label_replay(std::vector<ActivityRecord> replay,
                                                        std::vector<ActivityRecord> eager, std::string& why);

}  // namespace harness::cuda
