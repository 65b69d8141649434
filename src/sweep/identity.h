#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"

namespace harness::sweep {

/// A line for every name whose value is not the same on all ranks: "oneDNN: 3.1 on 7 ranks, but 2.6.3 on rank 3
/// (node7)". The most frequent value is taken to be right. A name that a rank does not have counts as "absent".
/// `places` by rank.
std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places);

/// What ranks say that need not be equal, each value with its number of ranks, in the order of the first of them:
/// "CPUs 0-7 (4 ranks); CPUs 8-15 (4 ranks)". Of many values the first.
std::string said_by_ranks(const std::vector<std::string>& by_rank);

}  // namespace harness::sweep
