#include "backend/cuda/profile.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HARNESS_HAS_NVTX 1
#endif

#include <algorithm>
#include <limits>
#include <map>

#include "base/text.h"

namespace harness::cuda {
namespace {

#ifdef HARNESS_HAS_NVTX
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t own = nvtxDomainCreateA("harness");
  return own;
}

void push_range(const char* text) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  nvtxDomainRangePushEx(domain(), &event);
}

void pop_range() {
  nvtxDomainRangePop(domain());
}
#else  // built without NVTX's headers: ranges show nothing
void push_range(const char*) {}
void pop_range() {}
#endif

}  // namespace

std::vector<program::Interval> operation_intervals(std::span<const ActivityRecord> records,
                                                   std::span<const Launch> launches) {
  std::uint64_t begin_ns = std::numeric_limits<std::uint64_t>::max();
  for (const ActivityRecord& record : records) {
    if (record.external_id != 0) begin_ns = std::min(begin_ns, record.start_ns);
  }
  // Subtracts first: absolute times have more digits than a double.
  const auto seconds = [&](std::uint64_t time_ns) { return static_cast<double>(time_ns - begin_ns) * 1e-9; };
  std::map<program::OperationId, Extent> extents;
  for (const ActivityRecord& record : records) {
    if (record.external_id == 0) continue;
    const Extent own{seconds(record.start_ns), seconds(record.end_ns)};
    Extent& whole = extents.try_emplace(static_cast<program::OperationId>(record.external_id - 1), own).first->second;
    whole = {std::min(whole.start_s, own.start_s), std::max(whole.end_s, own.end_s)};
  }
  return operation_intervals(extents, launches);
}

std::vector<program::Interval> operation_intervals(const std::map<program::OperationId, Extent>& extents,
                                                   std::span<const Launch> launches) {
  std::vector<program::Interval> intervals;
  for (const Launch& launch : launches) {
    const auto whole = extents.find(launch.members.front());
    if (whole == extents.end()) continue;
    for (const program::OperationId i : launch.members) {
      intervals.push_back({i, launch.stream, whole->second.start_s, whole->second.end_s});
    }
  }
  std::ranges::sort(intervals, {}, &program::Interval::operation);
  return intervals;
}

RangePath range_path(const program::Label& label) {
  RangePath path = {"step", program::name_of(label.phase)};
  if (label.micro_batch >= 0) path.back() += fmt::format(" micro-batch {}", label.micro_batch);
  if (label.layer >= 0) path.push_back(fmt::format("layer {}", label.layer));
  return path;
}

Ranges::Ranges(std::span<const program::Operation> step) {
  for (const program::Operation& operation : step) paths_.push_back(range_path(operation.label));
}

void Ranges::go_to(const RangePath& path) {
  const auto common = static_cast<std::size_t>(std::ranges::mismatch(open_, path).in1 - open_.begin());
  for (; open_.size() > common; open_.pop_back()) pop_range();
  for (; open_.size() < path.size(); open_.push_back(path[open_.size()])) push_range(path[open_.size()].c_str());
}

}  // namespace harness::cuda
