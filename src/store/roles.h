#pragma once

#include <vector>

#include "store/result.h"

namespace harness::store {

/// Where the ranks of a case stand, by rank, as the file says.
///
/// A file that does not say is an older one. All versions that wrote such files numbered ranks by tensor, then data,
/// then pipeline axis, and gave each pipeline stage a role. A case whose sizes do not multiply to its ranks counts as
/// one stage of them all. Where a file says no nodes of a case, they are those of the rank table.
std::vector<ResultRole> roles_of(const Result& result, std::int32_t case_index);

}  // namespace harness::store
