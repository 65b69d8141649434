#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/part.h"
#include "store/result.h"

namespace harness::analysis {

/// The phase of the operation that ends a step on all ranks, as the file names it.
inline constexpr std::string_view closing_phase = "finish";

/// `kind`: an operation's kind as the file names it, such as "all_reduce".
bool is_collective(std::string_view kind);
bool is_communication(std::string_view kind);  // a collective, a send or a receive

/// Seconds per part. A part that the step does not have, or that was not measured, is absent, never zero.
struct Parts {
  std::array<std::optional<double>, part_count> seconds;

  std::optional<double> operator[](Part part) const { return seconds[index_of(part)]; }
  std::optional<double>& operator[](Part part) { return seconds[index_of(part)]; }
  /// Adds `s` seconds. The part is present afterwards, even with 0 seconds.
  void add(Part part, double s) { (*this)[part] = (*this)[part].value_or(0) + s; }
  double sum(bool (*wanted)(Part)) const;  // sums the wanted parts
  double sum() const {
    return sum([](Part) { return true; });
  }  // sums all parts that are present
  double computation() const { return sum(is_computation); }
  double exposed() const { return sum(is_exposed_communication); }  // without waiting and bubble
};

/// An interval of a profiled step, placed for drawing.
struct DrawnInterval {
  const store::ResultInterval* row = nullptr;
  /// On the clock that the ranks share if DrawnStep::one_clock, else on the rank's own.
  double start_s = 0, end_s = 0;
  /// The stream, with the direction for sends and receives: "pipeline send". Intervals on one track of a rank do not
  /// overlap: an overlapping interval moves to "STREAM (2)", "STREAM (3)" …
  std::string track;
};

struct DrawnStep {
  std::vector<DrawnInterval> intervals;  // by rank, then by start
  /// In the file, each rank's times start at its own step. The closing all-reduce ends the step on all ranks at once,
  /// so its ends are aligned. False if a rank has no closing all-reduce: the times are then the file's.
  bool one_clock = false;
};

/// Looks up the group of each communication in a case's profiled step. Neither it nor its answers may outlive the
/// result.
class GroupsOf {
 public:
  GroupsOf(const store::Result& result, std::int32_t case_index);
  /// Returns the file's name of the group: "tensor", "pipeline" for sends and receives, "" for a computation.
  std::string_view operator()(const store::ResultInterval& x) const;

 private:
  std::map<std::tuple<int, std::string_view, std::string_view, std::string_view>, std::string_view> groups_;
};

/// Returns a case's profiled step, without rows whose times are not finite or run backwards; empty if there is none.
DrawnStep drawn_step(const store::Result& result, std::int32_t case_index);

// Where the time of a profiled step went. Definitions and approximations: docs/method.md, "Breakdown".

using NamedSeconds = std::vector<std::pair<std::string, double>>;  // largest first

/// Where in the step a rank was idle.
struct IdlePlace {
  enum class Kind : std::uint8_t { before_first, after_last, between_collectives, within_phase, between_phases };
  Kind kind = Kind::within_phase;
  std::string before = {}, after = {};  // neighbouring operations' phases, for the last two kinds

  std::string name() const;                            // "between collectives", "forward to backward"
  auto operator<=>(const IdlePlace&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// All operations of one kind in a step. Communication times exclude the waiting for other ranks.
struct KindTime {
  std::string kind, group;  // "all_reduce", "data"; computations have no group
  bool recomputed = false;
  double takes_s = 0;  // total duration, hidden or exposed
  double owns_s = 0;   // seconds of the step that the parts attribute to them

  bool is_same_kind(const KindTime& other) const {
    return kind == other.kind && group == other.group && recomputed == other.recomputed;
  }
};

struct Breakdown {
  std::int32_t case_index = 0, role = 0, rank = 0;  // rank -1: the mean over all ranks
  double step_s = 0;
  Parts parts;
  NamedSeconds other_compute;                      // by kind of operation; sums to the part
  std::vector<std::pair<IdlePlace, double>> idle;  // largest first; sums to the part
  std::vector<KindTime> kinds;  // by name; their owns_s plus waiting, bubble, loading and idle add up to the step
  std::vector<std::pair<Part, double>>
      overlapped;  // hidden behind (other) computation and not counted in the parts; largest first

  std::optional<double> operator[](Part part) const { return parts[part]; }
  /// The share of the step that a part takes; 0 where it is absent.
  double share(Part part) const { return step_s > 0 ? parts[part].value_or(0) / step_s : 0; }
  /// The part's time behind computation.
  double hidden_s(Part part) const {
    const auto found = std::ranges::find(overlapped, part, &std::pair<Part, double>::first);
    return found == overlapped.end() ? 0 : found->second;
  }
  /// Communication behind computation.
  double overlapped_s() const {
    double sum = 0;
    for (const auto& [part, s] : overlapped) sum += part == Part::loading || is_computation(part) ? 0 : s;
    return sum;
  }
};

/// The share of the step that the parts do not account for: every Breakdown keeps it below max_unexplained.
double unexplained(const Breakdown& breakdown);
inline constexpr double max_unexplained = 0.005;

struct CaseBreakdown {
  std::int32_t case_index = 0;
  std::vector<Breakdown> ranks;  // ranks with a complete timeline, by role: one per role, or all (measure.timeline)
  Breakdown mean;                // over all ranks of the case; roles weighted by their number of ranks
};

/// Breaks down every case whose timeline is in the result (read_result with the timeline), in order of cases. The
/// control has no timeline: it runs what the baseline runs.
std::vector<CaseBreakdown> break_down(const store::Result& result);

/// Returns "profiled step", or "predicted step" for a predicted result.
const char* step_in_parts(const store::Result& result);

/// Returns the unweighted mean over `ranks`, which must not be empty.
Breakdown mean_of(std::span<const Breakdown> ranks);

/// An operation in a step of harness or of a traced program. Times are seconds since the step began.
struct StepOperation {
  double start_s = 0, end_s = 0;
  std::optional<Part> part = {};           // none: belongs to no part, like a copy in a user's program
  bool main = false;                       // on the stream with the most computation
  std::string_view kind, group, phase;     // group "": a computation; phase "": not known
  bool recomputed = false;                 // done again for the backward pass
  double waiting_s = NAN, bubble_s = NAN;  // at its start: for slower ranks, then for other stages; NaN: not known
};

/// A step divided among its operations.
struct DividedStep {
  Breakdown breakdown;   // the caller fills in case, role and rank
  double no_part_s = 0;  // only operations of no part ran
  double waits_s = 0;    // waiting for slower ranks and other stages, hidden or exposed
};

/// Assigns every moment of [0, step_s] to one operation or to none. Computation comes first (on the main stream, then
/// on others, such as the optimizer during the backward pass), then the communication that computation waits for first
/// (a layer's own before that of gradients) or the waiting at its start, then operations of no part. `loading_s`:
/// loading of input data before the first operation; NaN: not known.
DividedStep divide_step(std::span<const StepOperation> operations, double step_s, double loading_s);

}  // namespace harness::analysis
