#pragma once

#include <vector>

#include "analysis/breakdown.h"
#include "store/result.h"

namespace harness::explain {

/// Where one rank's profiled step went.
struct RankTime {
  double computes_s = 0;
  double communicates_s = 0;  // hidden or not, without the waiting for others
  double waits_s = 0;         // in communications, for later ranks and other stages
};

/// The times of a profiled step in which a fault shows.
struct Picture {
  double step_s = 0;
  std::vector<RankTime> ranks;
  std::vector<analysis::KindTime> kinds;  // means over ranks
};

/// The picture of a measured case with a profiled step. `breakdown`: of that case.
Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown);
/// The picture of the only case of a predicted result.
Picture picture_of(const store::Result& predicted);

/// How unlike two pictures of one case are, in seconds of a step: what each rank computes, communicates and waits more
/// or less, as a mean over the ranks, and what each kind of communication takes more or less.
double distance(const Picture& a, const Picture& b);

/// How many times as long computations take in `measured`, on the ranks in the middle: what all ranks share says
/// nothing of one of them.
double common_slowness(const Picture& measured, const Picture& predicted);

}  // namespace harness::explain
