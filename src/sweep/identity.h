#pragma once

#include <string>
#include <vector>

#include "base/name_values.h"
#include "job/job.h"

namespace harness::sweep {

/// A line for every name whose value is not the same on all ranks: "oneDNN: 3.1 on 7 ranks, but 2.6.3 on rank 3
/// (node7)". The most frequent value is taken to be right. A name that a rank does not have counts as "absent".
/// `places` by rank.
std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places);

}  // namespace harness::sweep
