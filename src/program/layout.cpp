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

std::string set_axis_keys(std::string_view between) {
  std::vector<const char*> keys;
  for (const Axis axis : set_axes) keys.push_back(row_of(axis).key);
  return fmt::format("{}", fmt::join(keys, between));
}

std::string text_of(const Layout& layout) {
  std::vector<std::string> sizes;
  for (const Axis axis : told_axes) sizes.push_back(fmt::format("{}{}", row_of(axis).short_name, layout[axis]));
  return fmt::format("{}", fmt::join(sizes, " "));
}

std::string label_of(const Layout& layout) {
  std::vector<std::string> cut, all;
  for (const Axis axis : set_axes) {
    all.push_back(fmt::format("{}{}", row_of(axis).short_name, layout[axis]));
    if (layout[axis] > 1) cut.push_back(all.back());
  }
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

std::vector<int> Group::members(const Layout& layout, const Coordinates& at) const {
  std::vector<int> ranks;
  if (!contains(at)) return ranks;
  std::array<int, axis_count> low{}, high{};
  for (std::size_t a = 0; a < axis_count; ++a) {
    const bool free = axes.has(static_cast<Axis>(a));
    low[a] = free ? 0 : at.at[a];
    high[a] = free ? layout.size[a] : at.at[a] + 1;
  }
  Coordinates c;
  for (c.at[3] = low[3]; c.at[3] < high[3]; ++c.at[3]) {
    if (!contains(c)) continue;
    for (c.at[2] = low[2]; c.at[2] < high[2]; ++c.at[2]) {
      for (c.at[1] = low[1]; c.at[1] < high[1]; ++c.at[1]) {
        for (c.at[0] = low[0]; c.at[0] < high[0]; ++c.at[0]) ranks.push_back(layout.rank(c));
      }
    }
  }
  return ranks;
}

int Group::size(const Layout& layout) const {
  int n = 1;
  for (int a = 0; a < axis_count; ++a) {
    if (!axes.has(static_cast<Axis>(a))) continue;
    const bool narrowed = static_cast<Axis>(a) == Axis::pipeline && !pipeline_stages.empty();
    n *= narrowed ? static_cast<int>(pipeline_stages.size()) : layout.size[a];
  }
  return n;
}

}  // namespace harness::program
