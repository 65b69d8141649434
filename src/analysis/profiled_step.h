#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
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

}  // namespace harness::analysis
