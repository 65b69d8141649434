#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/part.h"
#include "store/result.h"

namespace harness {

// Where the time of a profiled step went. Definitions and approximations: docs/method.md, "Breakdown".

using NamedSeconds = std::vector<std::pair<std::string, double>>;  // largest first

struct Breakdown {
  std::int32_t case_index = 0, role = 0, rank = 0;  // rank -1: the mean over all ranks
  double step_s = 0;
  Parts parts;
  NamedSeconds other_compute;  // by kind of operation; sums to the part
  NamedSeconds idle;           // by place ("forward to backward", "between collectives"); sums to the part
  NamedSeconds overlapped;     // what ran behind computation, by key_of(part): beside the parts, not of them

  std::optional<double> operator[](Part part) const { return parts[part]; }
  double share(Part part) const;  // of the step; 0 where absent
  double overlapped_s() const;    // communication behind computation
};

/// The identity that every Breakdown keeps: its parts are the step, within 0.5 % of it. Returns what is left over, as a
/// share of the step.
double unexplained(const Breakdown& breakdown);
inline constexpr double most_unexplained = 0.005;

struct CaseBreakdown {
  std::int32_t case_index = 0;
  std::vector<Breakdown> ranks;     // the ranks that have a whole timeline: one per role, in order of roles
  Breakdown mean;                   // over all ranks of the case (role_mean.h), roles weighted by their ranks
  std::int32_t critical_rank = -1;  // whose step was longest
  std::size_t critical = 0;         // the entry of `ranks` that stands for it: of its role
};

/// Of every case whose timeline is in the result (read_result with the timeline), in order of cases. baseline_again has
/// none of its own: it is the baseline.
std::vector<CaseBreakdown> break_down(const Result& result);
/// nullptr if there is none.
const CaseBreakdown* find_breakdown(const std::vector<CaseBreakdown>& all, int case_index);

}  // namespace harness
