#include "analysis/profiled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace harness::analysis {

bool is_collective(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kinds{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(std::string_view kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

double Parts::sum(bool (*wanted)(Part)) const {
  double total = 0;
  for (const Part part : all_parts) {
    if (wanted(part)) total += (*this)[part].value_or(0);
  }
  return total;
}

namespace {

constexpr std::string_view closing_stream = "world";

bool drawable(const store::ResultInterval& row) {
  return std::isfinite(row.start_s) && std::isfinite(row.end_s) && row.end_s >= row.start_s;
}

// By rank: what to add to its times. Empty if some rank has no closing all-reduce.
std::map<std::int32_t, double> shifts_of(const std::vector<DrawnInterval>& intervals) {
  std::map<std::int32_t, double> closed_s;  // NaN until it is found
  for (const DrawnInterval& x : intervals) {
    double& end_s = closed_s.emplace(x.row->rank, NAN).first->second;
    if (x.row->stream == closing_stream && is_collective(x.row->kind)) end_s = std::fmax(end_s, x.end_s);
  }
  double last_s = 0;
  for (const auto& [rank, end_s] : closed_s) {
    if (std::isnan(end_s)) return {};
    last_s = std::max(last_s, end_s);
  }
  for (auto& [rank, end_s] : closed_s) end_s = last_s - end_s;
  return closed_s;
}

bool starts_earlier(const DrawnInterval& a, const DrawnInterval& b) {
  return std::tie(a.row->rank, a.start_s, b.end_s) < std::tie(b.row->rank, b.start_s, a.end_s);  // the longer one first
}

std::string track_of(const store::ResultInterval& row) {
  const bool directed = row.kind == "send" || row.kind == "receive";
  return directed ? row.stream + " " + row.kind : row.stream;
}

// Each interval takes the first track of its name that is free when it starts. They are in the order of their starts.
void part_overlaps(std::vector<DrawnInterval>& intervals) {
  std::map<std::pair<std::int32_t, std::string>, std::vector<double>> free_from_s;
  for (DrawnInterval& x : intervals) {
    std::vector<double>& tracks = free_from_s[{x.row->rank, x.track}];
    const auto free = std::ranges::find_if(tracks, [&](double from_s) { return from_s <= x.start_s; });
    const auto number = free - tracks.begin() + 1;
    if (free == tracks.end()) {
      tracks.push_back(x.end_s);
    } else {
      *free = x.end_s;
    }
    if (number > 1) x.track += fmt::format(" ({})", number);
  }
}

}  // namespace

// Files without /timeline_operations do not name the group of an operation. There its stream does, which is named for
// it, and this label of the GPT step.
constexpr std::string_view tied_embedding = "tied embedding";

GroupsOf::GroupsOf(const store::Result& result, std::int32_t case_index) {
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index == case_index) groups_[{row.role, row.stream, row.kind, row.what}] = row.group;
  }
}

std::string GroupsOf::operator()(const store::ResultInterval& x) const {
  if (!is_communication(x.kind)) return "";
  const auto found = groups_.find({x.role, x.stream, x.kind, x.what});
  if (found != groups_.end() && !found->second.empty()) return std::string(found->second);
  return x.what == tied_embedding ? key_of(Part::embedding) : x.stream;
}

DrawnStep drawn_step(const store::Result& result, std::int32_t case_index) {
  DrawnStep step;
  for (const store::ResultInterval& row : result.timeline) {
    if (row.case_index != case_index || !drawable(row)) continue;
    step.intervals.push_back({&row, row.start_s, row.end_s, track_of(row)});
  }
  const std::map<std::int32_t, double> shifts = shifts_of(step.intervals);
  step.one_clock = !shifts.empty();
  for (DrawnInterval& x : step.intervals) {
    const double shift_s = step.one_clock ? shifts.at(x.row->rank) : 0;
    x.start_s += shift_s;
    x.end_s += shift_s;
  }
  std::ranges::stable_sort(step.intervals, starts_earlier);
  part_overlaps(step.intervals);
  return step;
}

}  // namespace harness::analysis
