#include "backend/cuda/profile.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HARNESS_HAS_NVTX 1
#endif

#include <algorithm>
#include <limits>
#include <map>

#include "backend/cuda/cuda_backend.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

// By operation, with which of them it was launched: the first of its fused group, or itself. Groups are numbered per
// stream, and a number may come again later: members are neighbours.
std::vector<program::OperationId> leaders_of(std::span<const program::Operation> step) {
  std::vector<program::OperationId> leaders;
  std::map<program::StreamId, program::OperationId> last;
  for (const program::Operation& op : step) {
    const auto id = static_cast<program::OperationId>(leaders.size());
    const auto [before, is_first] = last.try_emplace(op.stream, id);
    const bool joins = !is_first && op.fused_group >= 0 && step[before->second].fused_group == op.fused_group;
    leaders.push_back(joins ? leaders[before->second] : id);
    before->second = id;
  }
  return leaders;
}

// An event before and after each operation of a step. Events cost time on the device, so short operations look longer
// than they are.
class OperationEvents {
 public:
  OperationEvents(const program::Program& program, Stream origin) : program_(program) {
    for (std::size_t i = 0; i < 2 * program.step.size(); ++i) events_.emplace_back(OwnedEvent::Timing::on);
    begin_.record(origin);
  }

  void record(program::OperationId operation, Stream on, bool before) const {
    events_[2 * operation + (before ? 0 : 1)].record(on);
  }

  /// Once all is done.
  std::vector<program::Interval> intervals() const {
    std::vector<program::Interval> intervals;
    for (const program::OperationId leader : leaders_of(program_.step)) {
      const auto id = static_cast<program::OperationId>(intervals.size());
      intervals.push_back({id, program_.step[id].stream, events_[2 * leader].seconds_since(begin_),
                           events_[2 * leader + 1].seconds_since(begin_)});
    }
    return intervals;
  }

 private:
  const program::Program& program_;
  OwnedEvent begin_{OwnedEvent::Timing::on};
  std::vector<OwnedEvent> events_;  // two of each operation
};

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
                                                   std::span<const program::Operation> step) {
  struct Extent {
    std::uint64_t start_ns, end_ns;
  };
  std::map<program::OperationId, Extent> extents;
  std::uint64_t begin_ns = std::numeric_limits<std::uint64_t>::max();
  for (const ActivityRecord& record : records) {
    if (record.external_id == 0 || record.external_id > step.size()) continue;
    const Extent own{record.start_ns, record.end_ns};
    Extent& whole = extents.try_emplace(static_cast<program::OperationId>(record.external_id - 1), own).first->second;
    whole = {std::min(whole.start_ns, own.start_ns), std::max(whole.end_ns, own.end_ns)};
    begin_ns = std::min(begin_ns, own.start_ns);
  }
  // Differences first: absolute times have more digits than a double.
  const auto seconds = [&](std::uint64_t time_ns) { return static_cast<double>(time_ns - begin_ns) * 1e-9; };
  std::vector<program::Interval> intervals;
  const std::vector<program::OperationId> leaders = leaders_of(step);
  for (std::size_t i = 0; i < step.size(); ++i) {
    const auto found = extents.find(leaders[i]);
    if (found == extents.end()) continue;
    intervals.push_back({static_cast<program::OperationId>(i), step[i].stream, seconds(found->second.start_ns),
                         seconds(found->second.end_ns)});
  }
  return intervals;
}

// The step is launched operation by operation, with cuda_graph too: CUPTI tells of a graph's kernels that they are of
// the graph, not whose they are. Events go along: there may be no CUPTI, or it may come back empty-handed, and by then
// another step would be one that other ranks do not run.
std::vector<program::Interval> CudaExecutable::run_profiled(std::int64_t step, const program::InputSource& inputs) {
  State& s = *state_;
  set_device(s.device.ordinal);
  const Stream origin = stream(0);
  try {
    steps_begun_ = step;
    current_step_ = step;
    ActivityRecorder recorder;
    std::string why = recorder.start();
    s.staging->fill(step, inputs);
    s.staging->copy(step, origin);
    OperationEvents events(program_, origin);
    enqueue(s.step, [&](program::OperationId operation, Stream on, bool before) {
      if (before) events.record(operation, on, true);
      before ? recorder.push(static_cast<std::uint64_t>(operation) + 1) : recorder.pop();
      if (!before) events.record(operation, on, false);
    });
    const OwnedEvent end(OwnedEvent::Timing::off);
    end.record(origin);
    await(end, "the profiled step");
    synchronize_device();  // nothing is left to wait for, but CUPTI promises its records only after this
    if (why.empty()) {
      std::string problem;
      std::vector<program::Interval> intervals = operation_intervals(recorder.stop(problem), program_.step);
      if (!problem.empty()) s.warnings.push_back("the timeline is incomplete: " + problem);
      if (!intervals.empty()) return intervals;
      why = "CUPTI recorded nothing of the step";
    }
    s.warnings.push_back("the timeline was taken with CUDA events, which make short operations look longer: " + why);
    return events.intervals();
  } catch (...) {
    s.broken = true;
    throw;
  }
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

Range::Range(const char* name) {
  push_range(name);
}

Range::~Range() {
  pop_range();
}

}  // namespace harness::cuda
