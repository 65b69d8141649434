#include <algorithm>

#include "backend/cuda/attribution.h"
#include "backend/cuda/executable_state.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

std::uint64_t first_start_ns(const std::vector<ActivityRecord>& records) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const ActivityRecord& r : records) first = std::min(first, r.start_ns);
  return first;
}

}  // namespace

// Without CUPTI: an event before and after each operation. Events cost time on the device, so short operations look
// longer than they are.
std::vector<backend::Interval> CudaExecutable::timed_by_events(std::int64_t step, const program::InputSource& inputs) {
  State& s = *state_;
  const Stream origin = stream(0);
  const std::size_t count = program_.step.size();
  std::vector<OwnedEvent> before, after;
  for (std::size_t i = 0; i < count; ++i) {
    before.emplace_back(OwnedEvent::Timing::on);
    after.emplace_back(OwnedEvent::Timing::on);
  }
  std::vector<char> timed(count, 0);
  const OwnedEvent begin(OwnedEvent::Timing::on), end(OwnedEvent::Timing::on);
  s.staging->stage(step, inputs, origin);
  begin.record(origin);
  enqueue(s.step, [&](program::OperationId operation, Stream on, bool is_before) {
    (is_before ? before : after)[operation].record(on);
    timed[operation] = 1;
  });
  end.record(origin);
  await(end, "the profiled step");
  std::vector<backend::Interval> intervals;
  std::vector<std::size_t> leader(program_.streams.size(), 0);  // per stream: the first of the last group
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t on = program_.step[i].stream;
    if (timed[i] != 0) leader[on] = i;
    const std::size_t from = leader[on];
    intervals.push_back({static_cast<program::OperationId>(i), program_.step[i].stream,
                         before[from].seconds_since(begin), after[from].seconds_since(begin)});
  }
  return intervals;
}

// The eager step tells which kernel belongs to which operation; with a graph, the replay after it tells when each runs.
std::vector<backend::Interval> CudaExecutable::recorded(ActivityRecorder& recorder, std::int64_t step,
                                                        const program::InputSource& inputs) {
  State& s = *state_;
  const Stream origin = stream(0);
  const OwnedEvent end(OwnedEvent::Timing::off);
  const auto note = [&](const std::string& problem) {
    if (!problem.empty()) s.warnings.push_back("the timeline is incomplete: " + problem);
  };
  std::string problem;
  s.staging->stage(step, inputs, origin);
  enqueue(s.step, [&](program::OperationId operation, Stream, bool before) {
    before ? recorder.push(static_cast<std::uint64_t>(operation) + 1) : recorder.pop();
  });
  end.record(origin);
  await(end, "the profiled step");
  std::vector<ActivityRecord> eager = recorder.stop(problem);
  note(problem);
  std::erase_if(eager, [](const ActivityRecord& r) { return r.external_id == 0; });
  std::vector<ActivityRecord> shown = eager;
  if (s.graph) {
    const std::string refused = recorder.start();
    note(refused);
    s.staging->stage(step, inputs, origin);
    launch_step();
    end.record(origin);
    await(end, "the profiled step");
    std::vector<ActivityRecord> replay = refused.empty() ? recorder.stop(problem) : std::vector<ActivityRecord>{};
    std::erase_if(replay, [](const ActivityRecord& r) { return r.graph_node_id == 0; });
    std::string why;
    if (auto labelled = label_replay(std::move(replay), std::move(eager), why)) {
      shown = std::move(*labelled);
    } else {
      s.warnings.push_back("the timeline is of a step without cuda_graph, whose kernels could not be told apart: " +
                           why);
    }
  }
  if (shown.empty()) fail("CUPTI recorded nothing of the profiled step");
  return operation_intervals(shown, program_.step, first_start_ns(shown));
}

std::vector<backend::Interval> CudaExecutable::run_profiled(std::int64_t step, const program::InputSource& inputs) {
  State& s = *state_;
  set_device(s.device.ordinal);
  try {
    steps_begun_ = step;
    current_step_ = step;
    ActivityRecorder recorder;
    std::string why = ActivityRecorder::unavailable();
    if (why.empty()) why = recorder.start();
    if (why.empty()) return recorded(recorder, step, inputs);
    s.warnings.push_back("the timeline was taken with CUDA events, which make short operations look longer: " + why);
    auto intervals = timed_by_events(step, inputs);
    if (s.graph) {  // other ranks may have CUPTI and run a replay
      const OwnedEvent end(OwnedEvent::Timing::off);
      s.staging->stage(step, inputs, stream(0));
      launch_step();
      end.record(stream(0));
      await(end, "the profiled step");
    }
    return intervals;
  } catch (...) {
    s.broken = true;
    throw;
  }
}

}  // namespace harness::cuda
