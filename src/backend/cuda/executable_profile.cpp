#include <algorithm>
#include <iterator>

#include "backend/cuda/attribution.h"
#include "backend/cuda/executable.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

// An event before and after each operation of a step. Events cost time on the device, so short operations look longer
// than they are.
class OperationEvents {
 public:
  OperationEvents(const program::Program& program, Stream origin) : program_(program) {
    const std::size_t count = program.step.size();
    for (std::size_t i = 0; i < 2 * count; ++i) events_.emplace_back(OwnedEvent::Timing::on);
    timed_.assign(count, 0);
    begin_.record(origin);
  }

  void record(program::OperationId operation, Stream on, bool before) {
    events_[2 * operation + (before ? 0 : 1)].record(on);
    timed_[operation] = 1;
  }

  /// Once all is done.
  std::vector<program::Interval> intervals() const {
    std::vector<program::Interval> intervals;
    std::vector<std::size_t> leader(program_.streams.size(), 0);  // per stream: the first of the last group
    for (std::size_t i = 0; i < timed_.size(); ++i) {
      const program::StreamId on = program_.step[i].stream;
      if (timed_[i] != 0) leader[on] = i;
      const std::size_t from = 2 * leader[on];
      intervals.push_back({static_cast<program::OperationId>(i), on, events_[from].seconds_since(begin_),
                           events_[from + 1].seconds_since(begin_)});
    }
    return intervals;
  }

 private:
  const program::Program& program_;
  OwnedEvent begin_{OwnedEvent::Timing::on};
  std::vector<OwnedEvent> events_;  // two of each operation
  std::vector<char> timed_;         // by operation
};

}  // namespace

// A step of the graph; everything that it launched is done, and CUPTI may be asked for it.
void CudaExecutable::replay(std::int64_t step, const program::InputSource& inputs) {
  state_->staging->stage(step, inputs, stream(0));
  launch_step();
  await_profiled_step();
}

void CudaExecutable::await_profiled_step() {
  const OwnedEvent end(OwnedEvent::Timing::off);
  end.record(stream(0));
  await(end, "the profiled step");
  synchronize_device();  // nothing is left to wait for, but CUPTI promises its records only after this
}

// The eager step tells which kernel belongs to which operation; with a graph, the replay after it tells when each runs.
// Both in one recording: of a process's later ones, CUPTI of CUDA 13.0 gets ids of graph launches wrong (fixed in 13.1
// Update 1, say its release notes).
// Events go along with the eager step: there may be no CUPTI, or it may come back empty-handed, and by then another
// step would be one that other ranks do not run.
std::vector<program::Interval> CudaExecutable::run_profiled(std::int64_t step, const program::InputSource& inputs) {
  State& s = *state_;
  set_device(s.device.ordinal);
  try {
    steps_begun_ = step;
    current_step_ = step;
    ActivityRecorder recorder;
    const std::string refusal = recorder.start();
    s.staging->stage(step, inputs, stream(0));
    OperationEvents events(program_, stream(0));
    enqueue(s.step, [&](program::OperationId operation, Stream on, bool before) {
      if (before) events.record(operation, on, true);
      before ? recorder.push(static_cast<std::uint64_t>(operation) + 1) : recorder.pop();
      if (!before) events.record(operation, on, false);
    });
    await_profiled_step();
    if (s.graph) replay(step, inputs);  // also without a recording: other ranks may have one
    std::vector<program::Interval> intervals;
    std::string why = refusal;
    if (refusal.empty()) {
      intervals = recorded(recorder);
      why = "CUPTI recorded nothing of the step";
    }
    if (!intervals.empty()) return intervals;
    s.warnings.push_back("the timeline was taken with CUDA events, which make short operations look longer: " + why);
    return events.intervals();
  } catch (...) {
    s.broken = true;
    throw;
  }
}

std::vector<program::Interval> CudaExecutable::recorded(ActivityRecorder& recorder) {
  State& s = *state_;
  std::string problem;
  std::vector<ActivityRecord> eager = recorder.stop(problem), replayed;
  if (!problem.empty()) s.warnings.push_back("the timeline is incomplete: " + problem);
  std::ranges::copy_if(eager, std::back_inserter(replayed),
                       [](const ActivityRecord& r) { return r.graph_node_id != 0; });
  std::erase_if(eager, [](const ActivityRecord& r) { return r.graph_node_id != 0 || r.external_id == 0; });
  if (eager.empty()) return {};
  std::vector<ActivityRecord> shown = eager;
  if (s.graph) {
    std::string why;
    if (auto labelled = label_replay(std::move(replayed), std::move(eager), why)) {
      shown = std::move(*labelled);
    } else {
      s.warnings.push_back("the timeline is of a step without cuda_graph, whose kernels could not be told apart: " +
                           why);
    }
  }
  return operation_intervals(shown, program_.step, std::ranges::min(shown, {}, &ActivityRecord::start_ns).start_ns);
}

}  // namespace harness::cuda
