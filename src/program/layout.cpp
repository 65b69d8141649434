#include "program/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace harness::program {

const AxisRow& row_of(Axis axis) {
  static constexpr std::array<AxisRow, axis_count> rows{
      {{"tensor", "tensor_parallel", "TP", "size of a tensor-parallel group"},
       {"context", "context_parallel", "CP", "size of a context-parallel group"},
       {"data", "data_parallel", "DP", "number of data-parallel replicas"},
       {"pipeline", "pipeline_parallel", "PP", "number of pipeline stages"}}};
  return rows[static_cast<std::size_t>(axis)];
}

const char* name_of(Axis axis) {
  return row_of(axis).name;
}

std::string text_of(const Layout& layout) {
  std::vector<std::string> sizes;
  for (const Axis axis : {Axis::tensor, Axis::pipeline, Axis::context, Axis::data}) {
    if (axis == Axis::context && layout[axis] == 1) continue;
    sizes.push_back(fmt::format("{}{}", row_of(axis).short_name, layout[axis]));
  }
  return fmt::format("{}", fmt::join(sizes, " "));
}

std::string label_of(const Layout& layout) {
  std::vector<std::string> cut, all;
  for (const Axis axis : configurable_axes) {
    all.push_back(fmt::format("{}{}", row_of(axis).short_name, layout[axis]));
    if (layout[axis] > 1) cut.push_back(all.back());
  }
  if (layout[Axis::context] > 1) cut.push_back(fmt::format("CP{}", layout[Axis::context]));
  return fmt::format("{}", fmt::join(cut.empty() ? all : cut, " "));
}

Coordinates Layout::coordinates(int rank) const {
  Coordinates at;
  for (const Axis axis : order) {
    at[axis] = rank % (*this)[axis];
    rank /= (*this)[axis];
  }
  return at;
}

int Layout::rank(const Coordinates& at) const {
  int rank = 0;
  for (std::size_t a = axis_count; a-- > 0;) rank = rank * (*this)[order[a]] + at[order[a]];
  return rank;
}

int Layout::neighbour(int rank_, Axis axis, int offset) const {
  Coordinates at = coordinates(rank_);
  const int n = (*this)[axis];
  at[axis] = ((at[axis] + offset) % n + n) % n;
  return rank(at);
}

bool Group::contains(const Coordinates& at) const {
  return pipeline_stages.empty() ||
         std::binary_search(pipeline_stages.begin(), pipeline_stages.end(), at[Axis::pipeline]);
}

Group::Range Group::range(const Layout& layout, const Coordinates& at, Axis axis) const {
  if (!axes.has(axis)) return {at[axis], at[axis] + 1, 1};
  const int node = layout.replicas_of_node;
  if (axis == Axis::data && replicas == Replicas::of_node)
    return {at[axis] / node * node, at[axis] / node * node + node, 1};
  if (axis == Axis::data && replicas == Replicas::across_nodes) return {at[axis] % node, layout[axis], node};
  return {0, layout[axis], 1};
}

Coordinates Group::first(const Layout& layout, const Coordinates& at) const {
  Coordinates c;
  for (const Axis axis : usual_order) {
    const bool of_stages = axis == Axis::pipeline && axes.has(axis) && !pipeline_stages.empty();
    c[axis] = of_stages ? pipeline_stages.front() : range(layout, at, axis).first;
  }
  return c;
}

std::vector<int> Group::members(const Layout& layout, const Coordinates& at) const {
  std::vector<int> ranks;
  if (!contains(at)) return ranks;
  const Range tensor = range(layout, at, Axis::tensor), context = range(layout, at, Axis::context),
              data = range(layout, at, Axis::data), pipeline = range(layout, at, Axis::pipeline);
  Coordinates c;
  for (int p = pipeline.first; p < pipeline.end; p += pipeline.step) {
    c[Axis::pipeline] = p;
    if (!contains(c)) continue;
    for (int d = data.first; d < data.end; d += data.step) {
      for (int x = context.first; x < context.end; x += context.step) {
        for (int t = tensor.first; t < tensor.end; t += tensor.step) {
          c[Axis::data] = d;
          c[Axis::context] = x;
          c[Axis::tensor] = t;
          ranks.push_back(layout.rank(c));
        }
      }
    }
  }
  return ranks;
}

int Group::size(const Layout& layout) const {
  int n = 1;
  for (const Axis axis : usual_order) {
    if (!axes.has(axis)) continue;
    if (axis == Axis::pipeline && !pipeline_stages.empty()) {
      n *= static_cast<int>(pipeline_stages.size());
    } else {
      const Range r = range(layout, {}, axis);
      n *= (r.end - r.first) / r.step;
    }
  }
  return n;
}

}  // namespace harness::program
