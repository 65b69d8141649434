#include "worker/tasks.h"

#include <algorithm>
#include <chrono>

#include "job/task.h"

namespace harness::worker {
namespace {

class ExecutableMemory final : public program::BufferAccess {
 public:
  explicit ExecutableMemory(backend::Executable& executable) : executable_(executable) {}
  void read(const program::View& view, std::span<std::byte> to) override { executable_.read(view, to); }
  void write(const program::View& view, std::span<const std::byte> from) override { executable_.write(view, from); }

 private:
  backend::Executable& executable_;
};

job::GradientSquares squares_of(const std::vector<workloads::GradientPart>& gradients,
                                backend::Executable& executable) {
  if (gradients.empty()) return {};
  constexpr std::int64_t at_once = 1 << 22;  // elements: of all gradients the host may not hold a copy
  std::vector<float> values;
  job::GradientSquares squares{0, 0};
  for (const workloads::GradientPart& part : gradients) {
    double sum = 0;
    for (std::int64_t from = 0; from < part.view.count; from += at_once) {
      values.resize(std::min(at_once, part.view.count - from));
      executable.read(part.view.part(from, std::ssize(values)), std::as_writable_bytes(std::span(values)));
      for (const float value : values) sum += static_cast<double>(value) * value;
    }
    (part.sharded ? squares.sharded : squares.replicated) += sum / (part.holders * part.scale * part.scale);
  }
  return squares;
}

}  // namespace

job::TimedSamples time_steps(Steps& steps, int warmup_steps, int timed_steps) {
  using Clock = std::chrono::steady_clock;
  job::TimedSamples samples;
  // Warm-up and timed steps in two calls: the clock around the second checks the sum of its steps.
  samples.step_s = steps.run(warmup_steps);
  const std::int64_t updates = steps.updates();
  steps.executable().begin_watch();
  const auto began = Clock::now();
  const std::vector<double> timed = steps.run(timed_steps);
  samples.timed_total_s = std::chrono::duration<double>(Clock::now() - began).count();
  samples.gpu = steps.executable().end_watch();
  samples.step_s.insert(samples.step_s.end(), timed.begin(), timed.end());
  samples.losses = steps.losses();
  samples.skipped_steps = static_cast<int>(timed_steps - (steps.updates() - updates));
  return samples;
}

job::TimelineSamples record_timeline(Steps& steps, int warmup_steps, int profiled_steps, bool keeps_intervals,
                                     int ranks, const std::vector<workloads::GradientPart>& gradients) {
  job::TimelineSamples samples;
  if (warmup_steps > 0) {
    steps.run(1);
    samples.gradient = squares_of(gradients, steps.executable());
    steps.run(warmup_steps - 1);
  }
  for (int i = 0; i < profiled_steps; ++i) {
    Steps::Profiled profiled = steps.run_profiled();
    if (warmup_steps == 0 && i == 0) samples.gradient = squares_of(gradients, steps.executable());
    job::ProfiledStep& step = samples.offered.emplace_back(job::sum_up(steps.program(), profiled.intervals, ranks));
    step.loading_s = profiled.loading_s;
    if (keeps_intervals) step.timeline = std::move(profiled.intervals);
  }
  return samples;
}

void check_outputs(const Steps& steps, const workloads::OutputCheck& check) {
  ExecutableMemory memory(steps.executable());
  check.prepare(memory);
  steps.executable().run(steps.done(), 1, steps.inputs());
  check.check(memory);
}

}  // namespace harness::worker
