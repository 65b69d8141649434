#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace harness {

/// The parts of a step. Each moment of a rank's step belongs to exactly one.
enum class Part : std::uint8_t {
  matrix_products,
  attention,
  other_compute,  // norms, additions, loss, optimizer …; by kind in a breakdown
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
  idle,           // nothing ran on the device: host, launch, scheduling; by place in a breakdown
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
/// The part of an operation that computes, by its kind ("matmul", "attention_backward").
Part computation_part(std::string_view kind, bool recomputed);
/// The part of an operation that communicates, by its group. `closing`: it ends the step.
Part communication_part(std::string_view group, bool closing);

/// From start_s up to, not including, end_s.
struct Stretch {
  double start_s = 0, end_s = 0;
  bool operator==(const Stretch&) const = default;
};
/// Stretches in order that do not touch: what united() gives, and what the others take.
using Stretches = std::vector<Stretch>;

/// The points covered by any of them. Empty and reversed ones cover nothing.
Stretches united(std::vector<Stretch> stretches);
/// The points of `a` that are not in `b`.
Stretches without(const Stretches& a, const Stretches& b);
double length(const Stretches& stretches);

}  // namespace harness
