#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

// Who was late. Ranks of a synchronous step all take equally long: early ranks wait in a collective for late ones. So
// the splits of the profiled steps show it (the late rank communicates, that is waits, least); step times of ranks show
// it only where a step does not end with all of them.

struct Straggler {
  std::int32_t rank = 0;
  std::string host, device;
  // From the timed steps: in how many it was last, and by how much it then exceeded the median rank.
  std::int64_t last_steps = 0;
  double last_excess_s = 0;      // median over those steps
  double last_excess_share = 0;  // the same of the median rank's step
  // From the profiled steps: its own time (the step without communication) beyond the median of its role's other ranks.
  std::int32_t late_cases = 0;       // cases whose profiled step waited for it
  double late_s = 0;                 // mean over all profiled cases; may be negative: it waited for others
  double late_share = 0;             // the same of the step
  double compute_s = 0, idle_s = 0;  // what of late_s was spent computing more, and doing nothing (host)
  bool named = false;                // found to be late, not merely among the last
};

/// Seconds of ranks in the timed steps of one block; rows are stretches of neighbouring ranks, a cell their slowest.
struct HeatMap {
  std::int32_t case_index = -1;
  std::int32_t ranks_per_row = 1;
  std::vector<std::int32_t> first_rank;     // of each row
  std::vector<std::vector<float>> seconds;  // [row][timed step]; NaN: idle ranks
  std::vector<float> median;                // [timed step], over ranks
};

struct Stragglers {
  std::vector<Straggler> ranks;  // worst first, at most 16; never empty where anything was measured with 2 ranks
  std::string evidence;          // what it rests on, in whole sentences
  std::int64_t steps = 0;        // timed steps looked at
  std::int32_t cases = 0;        // profiled steps looked at
  std::optional<HeatMap> heat;   // of the block with the largest excess
  bool found() const { return !ranks.empty() && ranks.front().named; }
};

/// Time is linear in what is in rank_seconds, memory a few numbers per rank beyond it. Uses whatever of rank_seconds
/// and splits the result holds.
Stragglers find_stragglers(const store::Result& result);

}  // namespace harness::analysis
