#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/result.h"

namespace harness {

// Where the time of a profiled step went. Definitions and approximations: docs/method.md, "Breakdown".

/// The parts of a step. Each moment of a rank's step belongs to exactly one.
enum class Part : std::uint8_t {
  matrix_products,
  attention,
  other_compute,  // norms, additions, loss, optimizer …; by kind in Breakdown::other_compute
  recomputation,  // any computation done again for the backward pass
  tensor,         // exposed communication: nothing was computed meanwhile, and it was no waiting
  pipeline,
  data,
  embedding,      // the tied table's gradient between first and last stage
  world,          // the closing all-reduce of the loss
  communication,  // exposed, of a group that is none of these
  waiting,        // in collectives, for members of the own stage that came later
  bubble,         // for other pipeline stages
  loading,        // input data
  idle,           // nothing ran on the device: host, launch, scheduling; by place in Breakdown::idle
};
inline constexpr std::size_t part_count = 14;
const char* name_of(Part part);  // for people: "matrix products", "exposed communication: tensor"
const char* key_of(Part part);   // for machines: "matrix_products"
inline constexpr Part part_at(std::size_t i) {
  return static_cast<Part>(i);
}
bool is_exposed_communication(Part part);  // tensor … communication

using NamedSeconds = std::vector<std::pair<std::string, double>>;  // largest first

struct Breakdown {
  std::int32_t case_index = 0, role = 0, rank = 0;  // rank -1: the mean over all ranks
  double step_s = 0;
  /// Absent: there is no such part in this step, or it was not measured. Never zero for either.
  std::array<std::optional<double>, part_count> parts;
  NamedSeconds other_compute;  // by kind of operation; sums to the part
  NamedSeconds idle;           // by place ("forward to backward", "between collectives"); sums to the part
  NamedSeconds overlapped;     // communication behind computation, by key_of(part): beside the parts, not of them

  std::optional<double> operator[](Part part) const { return parts[static_cast<std::size_t>(part)]; }
  double sum() const;             // of all parts that are there
  double share(Part part) const;  // of the step; 0 where absent
  double compute_s() const;       // products, attention, other, recomputation
  double exposed_s() const;       // exposed communication of all kinds, without waiting and bubble
  double overlapped_s() const;
};

/// The identity that every Breakdown keeps: its parts are the step, within 0.5 % of it. Returns what is left over, as a
/// share of the step.
double unexplained(const Breakdown& breakdown);
inline constexpr double most_unexplained = 0.005;

struct CaseBreakdown {
  std::int32_t case_index = 0;
  std::vector<Breakdown> ranks;     // the ranks that have a whole timeline: one per role, in order of roles
  Breakdown mean;                   // over all ranks of the case: roles weighted by their ranks
  std::int32_t critical_rank = -1;  // whose step was longest
  std::size_t critical = 0;         // the entry of `ranks` that stands for it: of its role
};

/// Of every case whose timeline is in the result (read_result with the timeline), in order of cases. baseline_again has
/// none of its own: it is the baseline.
std::vector<CaseBreakdown> break_down(const Result& result);
/// nullptr if there is none.
const CaseBreakdown* find_breakdown(const std::vector<CaseBreakdown>& all, int case_index);

}  // namespace harness
