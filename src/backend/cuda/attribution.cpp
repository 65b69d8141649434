#include "backend/cuda/attribution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

constexpr double seconds_per_ns = 1e-9;

double since(std::uint64_t time_ns, std::uint64_t begin_ns) {
  // Differences first: absolute times have more digits than a double.
  return time_ns >= begin_ns ? static_cast<double>(time_ns - begin_ns) * seconds_per_ns
                             : -static_cast<double>(begin_ns - time_ns) * seconds_per_ns;
}

// A graph may clear memory by a kernel where a stream does by a memset.
bool may_be_one(const ActivityRecord& a, const ActivityRecord& b) {
  const auto clears = [](const ActivityRecord& r) { return r.kind == ActivityKind::memset; };
  if (clears(a) || clears(b)) return a.kind != ActivityKind::memcpy && b.kind != ActivityKind::memcpy;
  return a.kind == b.kind && a.name == b.name;
}

bool of_operation(const ActivityRecord& record, std::size_t operations) {
  return record.external_id != 0 && record.external_id <= operations;
}

// Pairs of a replay and an eager step are in the order of node ids, which CUDA promises only for nodes that follow each
// other in a graph. What one stream ran after the other follows in the graph as well, and so must run later. "": it
// did.
std::string out_of_order(std::span<const ActivityRecord> replay, std::span<const ActivityRecord> eager) {
  std::map<std::uint32_t, std::size_t> last;  // by the stream of the eager step
  for (std::size_t i = 0; i < std::min(replay.size(), eager.size()); ++i) {
    const auto [at, first] = last.try_emplace(eager[i].stream_id, i);
    if (!first && replay[i].start_ns < replay[at->second].start_ns) {
      return fmt::format("{} and {} ran in another order in the graph than on their stream",
                         quote(replay[at->second].name), quote(replay[i].name));
    }
    at->second = i;
  }
  return "";
}

}  // namespace

std::vector<program::Interval> operation_intervals(std::span<const ActivityRecord> records,
                                                   std::span<const program::Operation> step, std::uint64_t begin_ns) {
  struct Extent {
    std::uint64_t start_ns, end_ns;
  };
  std::map<program::OperationId, Extent> extents;
  const auto add = [&](program::OperationId id, Extent extent) {
    const auto [at, fresh] = extents.try_emplace(id, extent);
    at->second.start_ns = std::min(at->second.start_ns, extent.start_ns);
    at->second.end_ns = std::max(at->second.end_ns, extent.end_ns);
  };
  for (const ActivityRecord& record : records) {
    if (of_operation(record, step.size())) {
      add(static_cast<program::OperationId>(record.external_id - 1), {record.start_ns, record.end_ns});
    }
  }
  // Groups are numbered per stream, and a number may come again later: members are neighbours.
  std::map<program::StreamId, std::vector<program::OperationId>> group;
  const auto close_group = [&](std::vector<program::OperationId>& members) {
    std::optional<Extent> whole;
    for (const program::OperationId id : members) {
      const auto found = extents.find(id);
      if (found == extents.end()) continue;
      if (!whole) whole = found->second;
      whole->start_ns = std::min(whole->start_ns, found->second.start_ns);
      whole->end_ns = std::max(whole->end_ns, found->second.end_ns);
    }
    if (whole) {
      for (const program::OperationId id : members) add(id, *whole);
    }
    members.clear();
  };
  for (std::size_t i = 0; i < step.size(); ++i) {
    auto& members = group[step[i].stream];
    if (!members.empty() && step[members.back()].fused_group != step[i].fused_group) {
      close_group(members);
    }
    if (step[i].fused_group >= 0) members.push_back(static_cast<program::OperationId>(i));
  }
  for (auto& [stream, members] : group) close_group(members);

  std::vector<program::Interval> intervals;
  intervals.reserve(extents.size());
  for (const auto& [id, extent] : extents) {
    intervals.push_back({id, step[id].stream, since(extent.start_ns, begin_ns), since(extent.end_ns, begin_ns)});
  }
  return intervals;
}

std::optional<std::vector<ActivityRecord>> label_replay(std::vector<ActivityRecord> replay,
                                                        std::vector<ActivityRecord> eager, std::string& why) {
  why.clear();
  std::ranges::stable_sort(replay, {}, &ActivityRecord::graph_node_id);
  std::ranges::stable_sort(eager, {}, &ActivityRecord::correlation_id);
  for (std::size_t i = 0; i < std::min(replay.size(), eager.size()); ++i) {
    if (replay[i].graph_node_id == 0) {
      why = fmt::format("{} was not launched by the graph", quote(replay[i].name));
      return std::nullopt;
    }
    if (i > 0 && replay[i].graph_node_id == replay[i - 1].graph_node_id) {
      why = fmt::format("graph node {} ran twice: this is more than one replay", replay[i].graph_node_id);
      return std::nullopt;
    }
    if (!may_be_one(replay[i], eager[i])) {
      why = fmt::format("number {} in launch order is {} in the graph and {} in the eager step", i + 1,
                        quote(replay[i].name), quote(eager[i].name));
      return std::nullopt;
    }
    replay[i].external_id = eager[i].external_id;
  }
  if (std::string late = out_of_order(replay, eager); !late.empty()) {
    why = std::move(late);
    return std::nullopt;
  }
  if (replay.size() != eager.size()) {
    why = fmt::format("the graph's replay has {} kernels and copies, the eager step {}", replay.size(), eager.size());
    return std::nullopt;
  }
  return replay;
}

}  // namespace harness::cuda
