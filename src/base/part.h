#pragma once

#include <algorithm>
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
  tensor,         // exposed communication: no computation ran, and no waiting for others
  pipeline,
  data,
  embedding,      // the tied table's gradient between first and last stage
  world,          // the closing all-reduce of the loss
  communication,  // exposed, of any other group, or of all ranks before the end of the step
  waiting,        // in collectives, for members of the same stage that arrive later
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
struct PartWords {
  const char* key;
  const char* name;
};
inline constexpr std::array<PartWords, part_count> part_words{{{"matrix_products", "matrix products"},
                                                               {"attention", "attention"},
                                                               {"other_compute", "other computation"},
                                                               {"recomputation", "recomputation"},
                                                               {"tensor", "tensor communication"},
                                                               {"pipeline", "pipeline communication"},
                                                               {"data", "data communication"},
                                                               {"embedding", "embedding communication"},
                                                               {"world", "closing all-reduce"},
                                                               {"communication", "other communication"},
                                                               {"waiting", "waiting for slower ranks"},
                                                               {"bubble", "pipeline bubble"},
                                                               {"loading", "data loading"},
                                                               {"idle", "idle, host"}}};
/// For people: "matrix products", "tensor communication".
inline const char* name_of(Part part) {
  return part_words[index_of(part)].name;
}
/// For machines: "matrix_products".
inline const char* key_of(Part part) {
  return part_words[index_of(part)].key;
}
/// matrix_products … recomputation.
inline bool is_computation(Part part) {
  return part <= Part::recomputation;
}
/// tensor … communication.
inline bool is_exposed_communication(Part part) {
  return part >= Part::tensor && part <= Part::communication;
}
/// Returns the part of a computation, by its kind ("matmul", "attention_backward").
inline Part computation_part(std::string_view kind, bool recomputed) {
  if (recomputed) return Part::recomputation;
  if (kind == "matmul") return Part::matrix_products;
  return kind.starts_with("attention") ? Part::attention : Part::other_compute;
}
/// Returns the part of a communication, by its group. `closing`: it ends the step.
inline Part communication_part(std::string_view group, bool closing) {
  // Weight gathers have a group of their own, because they may run while gradients are reduced. The group "nodes"
  // reduces a node's shards of the gradients with those of other nodes.
  if (group == "gather" || group == "nodes") return Part::data;
  for (const Part part : {Part::tensor, Part::pipeline, Part::data, Part::embedding}) {
    if (group == key_of(part)) return part;
  }
  // All ranks communicate at the end of every step, and in the repetitions of a step of one collective.
  return closing && group == key_of(Part::world) ? Part::world : Part::communication;
}

/// The half-open interval [start_s, end_s).
struct Stretch {
  double start_s = 0, end_s = 0;
  bool operator==(const Stretch&) const = default;
};
/// Sorted stretches that do not touch: united() returns them, and the other functions take them.
using Stretches = std::vector<Stretch>;

/// Returns the union. Empty and reversed stretches cover nothing.
inline Stretches united(std::vector<Stretch> stretches) {
  std::erase_if(stretches, [](const Stretch& s) { return !(s.start_s < s.end_s); });
  const auto start = &Stretch::start_s;
  if (!std::ranges::is_sorted(stretches, {}, start)) std::ranges::sort(stretches, {}, start);  // mostly sorted already
  Stretches whole;
  for (const Stretch& next : stretches) {
    if (whole.empty() || next.start_s > whole.back().end_s) {
      whole.push_back(next);
    } else {
      whole.back().end_s = std::max(whole.back().end_s, next.end_s);
    }
  }
  return whole;
}
/// Returns the points of `a` that are not in `b`.
inline Stretches without(const Stretches& a, const Stretches& b) {
  Stretches left;
  auto hole = b.begin();
  for (const Stretch& stretch : a) {
    double at = stretch.start_s;
    while (hole != b.end() && hole->end_s <= at) ++hole;
    for (auto h = hole; h != b.end() && h->start_s < stretch.end_s; ++h) {
      if (at < h->start_s) left.push_back({at, h->start_s});
      at = h->end_s;
    }
    if (at < stretch.end_s) left.push_back({at, stretch.end_s});
  }
  return left;
}
inline double length(const Stretches& stretches) {
  double sum = 0;
  for (const Stretch& s : stretches) sum += s.end_s - s.start_s;
  return sum;
}

}  // namespace harness
