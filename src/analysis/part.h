#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace harness::analysis {

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
  communication,  // exposed, of a group that is none of these, or of all ranks before the end of the step
  waiting,        // in collectives, for members of the same stage that came later
  bubble,         // for other pipeline stages
  loading,        // input data
  idle,           // nothing ran on the device: host, launch, scheduling; by place in Breakdown::idle
};
inline constexpr std::size_t part_count = 14;
inline constexpr std::array<Part, part_count> all_parts = [] {
  std::array<Part, part_count> parts{};
  for (std::size_t i = 0; i < part_count; ++i) parts[i] = static_cast<Part>(i);
  return parts;
}();
inline constexpr std::size_t index_of(Part part) {
  return static_cast<std::size_t>(part);
}
const char* name_of(Part part);            // for people: "matrix products", "tensor communication"
const char* key_of(Part part);             // for machines: "matrix_products"
bool is_computation(Part part);            // matrix_products … recomputation
bool is_exposed_communication(Part part);  // tensor … communication

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
  double sum() const;                      // of all that are there
  double sum(bool (*wanted)(Part)) const;  // of those
  double computation() const;
  double exposed() const;  // without waiting and bubble
};

}  // namespace harness::analysis
