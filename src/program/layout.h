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

/// Names of an axis and of its size.
struct AxisRow {
  const char* name;        // of groups, streams and coordinates: "tensor"
  const char* key;         // of the size, in configurations, results and messages: "tensor_parallel"
  const char* short_name;  // of the size, in labels: "TP"
  const char* help;
};
const AxisRow& row_of(Axis axis);
const char* name_of(Axis axis);

/// The axes shown to users, in reading order. `context` is left out until a workload uses it.
inline constexpr std::array<Axis, 3> visible_axes{Axis::tensor, Axis::pipeline, Axis::data};
/// The axes whose size a configuration sets. Data parallelism takes the remaining ranks.
inline constexpr std::array<Axis, 2> configurable_axes{Axis::tensor, Axis::pipeline};
/// Coordinates of a rank, one on each axis.
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

/// Axes in the order in which the rank number varies, fastest first.
using AxisOrder = std::array<Axis, axis_count>;
/// Megatron-LM's default, "tp-cp-dp-pp": ranks that share a node share the tensor axis first.
inline constexpr AxisOrder usual_order{Axis::tensor, Axis::context, Axis::data, Axis::pipeline};

/// Number of ranks along each axis, and the order in which ranks are numbered. In the usual order,
/// rank = tensor + T * (context + C * (data + D * pipeline)).
struct Layout {
  static constexpr int uneven = -1;

  std::array<int, axis_count> size{1, 1, 1, 1};
  AxisOrder order = usual_order;
  /// Number of consecutive ranks along the data axis that share a node, the same everywhere (replicas_of_node() in
  /// program/links.h). 0: the ranks' nodes are not known; uneven: there is no such number.
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
/// "TP2 PP1 DP4", with "CP2" before the last where ranks share sequences.
std::string text_of(const Layout& layout);
/// Short form, with the configured axes that are divided: "TP2", "TP2 PP4"; "TP1 PP1" if none is.
std::string label_of(const Layout& layout);

/// Which ranks along the data axis communicate: all, those of a node (Layout::replicas_of_node consecutive ranks), or
/// those with the same index within their node.
enum class Replicas : std::uint8_t { all, of_node, across_nodes };

/// A set of ranks that communicate, seen from any member: all ranks whose coordinates differ only along `axes` and, if
/// `pipeline_stages` is not empty, only those at these pipeline coordinates.
struct Group {
  std::string name;
  AxisSet axes;
  std::vector<int> pipeline_stages;  // ascending; empty: all
  Replicas replicas = Replicas::all;

  bool contains(const Coordinates& at) const;
  /// Returns the first member of the instance of `at`, which must be in one.
  Coordinates first(const Layout& layout, const Coordinates& at) const;
  /// Whether `at` is the first member of its instance.
  bool begins_with(const Layout& layout, const Coordinates& at) const {
    return contains(at) && first(layout, at) == at;
  }
  /// Returns the members of the instance of `at`, in the order of their coordinates, tensor first, then context, data
  /// and pipeline: the same on all members, and the same coordinates for each rank order. Ascending in the usual order.
  /// Empty if `at` is in none.
  std::vector<int> members(const Layout& layout, const Coordinates& at) const;
  int size(const Layout& layout) const;
  bool operator==(const Group&) const = default;

 private:
  struct Range {
    int first, end, step;
  };
  // Coordinates on an axis of the members of the instance of `at`.
  Range range(const Layout& layout, const Coordinates& at, Axis axis) const;
};

}  // namespace harness::program
