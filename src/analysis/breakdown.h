#pragma once

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

/// By the kind of an operation, as the file names it: "all_reduce".
bool is_collective(std::string_view kind);
bool is_communication(std::string_view kind);  // a collective, or send or receive

/// Seconds by part. Absent: there is no such part in this step, or it was not measured; never zero for either.
struct Parts {
  std::array<std::optional<double>, part_count> seconds;

  std::optional<double> operator[](Part part) const { return seconds[index_of(part)]; }
  std::optional<double>& operator[](Part part) { return seconds[index_of(part)]; }
  /// Present from now on, if only with 0.
  void add(Part part, double s) { (*this)[part] = (*this)[part].value_or(0) + s; }
  double sum(bool (*wanted)(Part)) const;  // of those
  double sum() const {
    return sum([](Part) { return true; });
  }  // of all that are there
  double computation() const { return sum(is_computation); }
  double exposed() const { return sum(is_exposed_communication); }  // without waiting and bubble
};

/// An interval of a profiled step as it is drawn.
struct DrawnInterval {
  const store::ResultInterval* row = nullptr;
  /// On the clock that all ranks of the step share.
  double start_s = 0, end_s = 0;
  /// The stream, for sends and receives with their direction: "pipeline send". Intervals of one track of a rank do not
  /// overlap: those that would go to "STREAM (2)", "STREAM (3)" …
  std::string track;
};

struct DrawnStep {
  std::vector<DrawnInterval> intervals;  // by rank, then by start
  /// The file counts the times of each rank from the start of its own step. The closing all-reduce ends the step on all
  /// ranks at once, so its ends are laid on each other. False: some rank has none, and the times are the file's.
  bool one_clock = false;
};

/// The groups of the communications of a case's profiled step. Must not outlive the result.
class GroupsOf {
 public:
  GroupsOf(const store::Result& result, std::int32_t case_index);
  /// As the file names it: "tensor", of sends and receives "pipeline"; "" for a computation.
  std::string operator()(const store::ResultInterval& x) const;

 private:
  std::map<std::tuple<int, std::string_view, std::string_view, std::string_view>, std::string_view> groups_;
};

/// The profiled step of a case, without rows whose times are not finite or run backwards; empty if there is none.
DrawnStep drawn_step(const store::Result& result, std::int32_t case_index);

// Where the time of a profiled step went. Definitions and approximations: docs/method.md, "Breakdown".

using NamedSeconds = std::vector<std::pair<std::string, double>>;  // largest first

/// Where in the step a rank was idle.
struct IdlePlace {
  enum class Kind : std::uint8_t { before_first, after_last, between_collectives, within_phase, between_phases };
  Kind kind = Kind::within_phase;
  std::string before = {}, after = {};  // phases of the neighbouring operations, of the last two kinds

  std::string name() const;                            // "between collectives", "forward to backward"
  auto operator<=>(const IdlePlace&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// All operations of one kind in a step. Of communications, without the waiting for others.
struct KindTime {
  std::string kind, group;  // "all_reduce", "data"; computations have no group
  bool recomputed = false;
  double takes_s = 0;  // from their starts to their ends, hidden or not
  double owns_s = 0;   // of the step: within the parts

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
  std::vector<KindTime> kinds;  // by name; what they own, waiting, bubble, loading and idle add up to the step
  std::vector<std::pair<Part, double>>
      overlapped;  // ran behind (other) computation: beside the parts, not of them; largest first

  std::optional<double> operator[](Part part) const { return parts[part]; }
  /// The share of the step that a part takes; 0 where it is absent.
  double share(Part part) const { return step_s > 0 ? parts[part].value_or(0) / step_s : 0; }
  double hidden_s(Part part) const;  // behind computation
  double overlapped_s() const;       // communication behind computation
};

/// The share of the step that the parts do not account for: every Breakdown keeps it below max_unexplained.
double unexplained(const Breakdown& breakdown);
inline constexpr double max_unexplained = 0.005;

struct CaseBreakdown {
  std::int32_t case_index = 0;
  std::vector<Breakdown> ranks;  // that have a whole timeline, by role: one of each, or all (measure.timeline)
  Breakdown mean;                // over all ranks of the case, roles weighted by their ranks
};

/// Breaks down every case whose timeline is in the result (read_result with the timeline), in order of cases. The
/// control has no timeline: it runs what the baseline runs.
std::vector<CaseBreakdown> break_down(const store::Result& result);

/// "profiled step", or "predicted step": of whose operations the result has the times.
const char* step_in_parts(const store::Result& result);

/// The mean over ranks, each of which counts once; `ranks` is not empty.
Breakdown mean_of(std::span<const Breakdown> ranks);

/// An operation of a step, in seconds since the step began: of harness's own step, or of a traced program's.
struct StepOperation {
  double start_s = 0, end_s = 0;
  std::optional<Part> part = {};           // none: of no part, as copies of a user's program
  bool main = false;                       // on the stream with most computation
  std::string_view kind, group, phase;     // group "": none, it computes; phase "": not known
  bool recomputed = false;                 // done again for the backward pass
  double waiting_s = NAN, bubble_s = NAN;  // at its beginning: for later ranks, then for other stages; NaN: not known
};

/// A step, divided between its operations.
struct DividedStep {
  Breakdown breakdown;   // the case, role and rank are the caller's to fill in
  double no_part_s = 0;  // operations of no part, while nothing else ran
  double waits_s = 0;    // for later ranks and other stages, hidden or not
};

/// Every moment of [0, step_s] belongs to one operation or to none: to computation (on the main stream first, then on
/// others, such as the optimizer during the backward pass), then to the communication that computation waits for first
/// (a layer's own before that of gradients), or to the waiting at its beginning, then to operations of no part.
/// loading_s: of input data before the first operation; NaN: not known.
DividedStep divide_step(std::span<const StepOperation> operations, double step_s, double loading_s);

}  // namespace harness::analysis
