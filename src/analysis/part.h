#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/part.h"

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

}  // namespace harness::analysis
