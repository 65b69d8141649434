#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace harness::program {

/// The axes along which a job is divided.
enum class Axis : std::uint8_t { tensor, context, data, pipeline };
inline constexpr int axis_count = 4;

/// The words for an axis, and what its size is.
struct AxisRow {
  const char* name;        // of groups, streams and coordinates: "tensor"
  const char* key;         // of the size, in configurations, results and messages: "tensor_parallel"
  const char* short_name;  // of the size, in labels: "TP"
  const char* help;
};
const AxisRow& row_of(Axis axis);
const char* name_of(Axis axis);

/// The axes in the order in which people read them. `context` joins them with the workload that uses it.
inline constexpr std::array<Axis, 3> visible_axes{Axis::tensor, Axis::pipeline, Axis::data};
/// The axes whose size a configuration sets. Data parallelism is what remains of the ranks.
inline constexpr std::array<Axis, 2> configurable_axes{Axis::tensor, Axis::pipeline};
/// Where a rank stands on each axis.
struct Coordinates {
  std::array<int, axis_count> at{};
  int& operator[](Axis axis) { return at[static_cast<std::size_t>(axis)]; }
  const int& operator[](Axis axis) const { return at[static_cast<std::size_t>(axis)]; }
  bool operator==(const Coordinates&) const = default;
};

/// A set of axes, one bit each.
struct AxisSet {
  std::uint8_t bits = 0;
  bool has(Axis axis) const { return (bits >> static_cast<int>(axis)) & 1; }
  static AxisSet of(std::initializer_list<Axis> axes) {
    AxisSet set;
    for (const Axis a : axes) set.bits = static_cast<std::uint8_t>(set.bits | (1u << static_cast<int>(a)));
    return set;
  }
  static AxisSet all() { return {0x0f}; }
  bool operator==(const AxisSet&) const = default;
};

/// The axes from the one along which rank numbers grow fastest to the slowest.
using AxisOrder = std::array<Axis, axis_count>;
/// Megatron-LM's default, "tp-cp-dp-pp": ranks that share a node share the tensor axis first.
inline constexpr AxisOrder usual_order{Axis::tensor, Axis::context, Axis::data, Axis::pipeline};

/// How many ranks stand along each axis, and in which order ranks are numbered. In the usual order,
/// rank = tensor + T * (context + C * (data + D * pipeline)).
struct Layout {
  static constexpr int uneven = -1;

  std::array<int, axis_count> size{1, 1, 1, 1};
  AxisOrder order = usual_order;
  /// How many ranks that follow each other along the data axis share a node, the same everywhere (replicas_of_node() in
  /// program/links.h). 0: it is not known where ranks stand; uneven: there is no such number.
  int replicas_of_node = 0;
  Layout() = default;
  /// {{Axis::tensor, 2}, {Axis::data, 4}}: the sizes of some axes, 1 along the others.
  Layout(std::initializer_list<std::pair<Axis, int>> sizes) {
    for (const auto& [axis, n] : sizes) (*this)[axis] = n;
  }
  int& operator[](Axis axis) { return size[static_cast<std::size_t>(axis)]; }
  const int& operator[](Axis axis) const { return size[static_cast<std::size_t>(axis)]; }
  int ranks() const { return size[0] * size[1] * size[2] * size[3]; }
  Coordinates coordinates(int rank) const;
  int rank(const Coordinates& at) const;
  /// The rank `offset` places further along `axis`, wrapping at the ends.
  int neighbour(int rank, Axis axis, int offset) const;
  bool operator==(const Layout&) const = default;
};
/// "TP2 PP1 DP4": of visible_axes.
std::string text_of(const Layout& layout);
/// Short, of what a configuration sets: "TP2", "TP2 PP4", or "TP1 PP1" where nothing is cut.
std::string label_of(const Layout& layout);

/// Which ranks along the data axis talk together: all, those of a node (Layout::replicas_of_node follow each other), or
/// those that have the same place among the ones of their node.
enum class Replicas : std::uint8_t { all, of_node, across_nodes };

/// A set of ranks that talk together, seen from any of its members: all ranks whose coordinates differ only along
/// `axes`, and, when `pipeline_stages` is not empty, only those on the named pipeline coordinates.
struct Group {
  std::string name;
  AxisSet axes;
  std::vector<int> pipeline_stages;  // ascending; empty: all
  Replicas replicas = Replicas::all;

  bool contains(const Coordinates& at) const;
  /// The first of the members of the instance that `at`, which must be in one, belongs to.
  Coordinates first(const Layout& layout, const Coordinates& at) const;
  /// Whether it is the first of its instance's members.
  bool begins_with(const Layout& layout, const Coordinates& at) const {
    return contains(at) && first(layout, at) == at;
  }
  /// The members of the instance that `at` belongs to, in the order of their coordinates, tensor first, then context,
  /// data and pipeline: the same on all members, and for each rank order the same coordinates. Ascending in the usual
  /// order. Empty if `at` is in none.
  std::vector<int> members(const Layout& layout, const Coordinates& at) const;
  int size(const Layout& layout) const;
  bool operator==(const Group&) const = default;

 private:
  struct Range {
    int first, end, step;
  };
  // The coordinates on an axis that members of the instance of `at` have.
  Range range(const Layout& layout, const Coordinates& at, Axis axis) const;
};

}  // namespace harness::program
