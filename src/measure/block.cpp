#include "measure/block.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.h"
#include "measure/waiting.h"
#include "workloads/step.h"

namespace harness {
namespace {

// The whole ring of losses of the steps [0, steps), read once after them.
std::vector<float> read_losses(Executable& executable, const Program& program, int steps) {
  const auto ring = std::ranges::find(program.buffers, losses_buffer, &Buffer::name);
  if (ring == program.buffers.end()) fail("the Program has no buffer '{}' to read losses from", losses_buffer);
  if (steps > ring->count) fail("a block of {} steps is longer than the {} losses that are kept", steps, ring->count);
  std::vector<float> losses(static_cast<std::size_t>(steps));
  const View view{static_cast<BufferId>(ring - program.buffers.begin()), 0, steps};
  executable.read(view, std::as_writable_bytes(std::span(losses)));
  return losses;
}

void append_durations(const std::vector<double>& completions, std::vector<double>& durations) {
  for (std::size_t i = 1; i < completions.size(); ++i) durations.push_back(completions[i] - completions[i - 1]);
}

void add_totals(const Program& program, const std::vector<Interval>& intervals, std::vector<KindTotal>& totals) {
  std::map<std::pair<std::string_view, StreamId>, KindTotal> by_kind;
  for (const Interval& interval : intervals) {
    const Operation& operation = program.step.at(static_cast<std::size_t>(interval.operation));
    KindTotal& total = by_kind[{name_of(operation.action), interval.stream}];
    total.seconds += interval.end_s - interval.start_s;
    ++total.operations;
  }
  for (auto& [key, total] : by_kind) {
    total.kind = key.first;
    total.stream = program.streams.at(static_cast<std::size_t>(key.second));
    totals.push_back(std::move(total));
  }
}

// What filling the inputs takes the host.
class TimedInputs final : public InputSource {
 public:
  explicit TimedInputs(const InputSource& inner) : inner_(inner) {}
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    const auto began = std::chrono::steady_clock::now();
    inner_.fill(buffer, step, to);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  double seconds() const { return seconds_; }

 private:
  const InputSource& inner_;
  mutable double seconds_ = 0;  // one thread fills
};

class ExecutableMemory : public BufferAccess {
 public:
  explicit ExecutableMemory(Executable& executable) : executable_(executable) {}
  void read(const View& view, std::span<std::byte> to) override { executable_.read(view, to); }
  void write(const View& view, std::span<const std::byte> from) override { executable_.write(view, from); }

 private:
  Executable& executable_;
};

}  // namespace

void check_outputs(Executable& executable, const InputSource& inputs, const OutputCheck& check, std::int64_t step) {
  ExecutableMemory memory(executable);
  check.prepare(memory);
  executable.run(step, 1, inputs);
  check.check(memory);
}

const char* name_of(BlockMode mode) {
  switch (mode) {
    case BlockMode::probe:
      return "probe";
    case BlockMode::tuning:
      return "tuning";
    case BlockMode::observe:
      return "observe";
    case BlockMode::timeline:
      return "timeline";
    case BlockMode::timed:
      return "timed";
  }
  return "?";
}

void run_block(Executable& executable, const Program& program, const InputSource& inputs, BlockMode mode,
               int warmup_steps, int steps, BlockSamples& samples) {
  using Clock = std::chrono::steady_clock;
  const int timed_steps = mode == BlockMode::timed ? steps : 0;
  // Warm-up and timed steps in two calls: the clock around the second checks the sum of its steps.
  int done = 0;
  const auto run = [&](int count) {
    if (count <= 0) return;
    const std::vector<double> completions = executable.run(done, count, inputs);
    if (completions.size() != static_cast<std::size_t>(count) + 1) {
      fail("the backend timed {} of {} steps", completions.size() - 1, count);
    }
    append_durations(completions, samples.step_seconds);
    done += count;
  };
  run(mode == BlockMode::observe ? 1 : warmup_steps);
  if (mode == BlockMode::timed) executable.begin_watch();
  const auto began = Clock::now();
  run(timed_steps);
  samples.timed_total_seconds = std::chrono::duration<double>(Clock::now() - began).count();
  if (mode == BlockMode::timed) samples.gpu = executable.end_watch();
  if (!samples.step_seconds.empty()) samples.first_step_seconds += samples.step_seconds.front();
  if (mode == BlockMode::timeline) {
    samples.timed_total_seconds = 0;
    const TimedInputs timed(inputs);
    samples.timeline = executable.run_profiled(done, timed);
    samples.loading_s = timed.seconds();
    ++done;
    for (const Interval& interval : samples.timeline) {
      samples.profiled_step_seconds = std::max(samples.profiled_step_seconds, interval.end_s);
    }
    add_totals(program, samples.timeline, samples.totals);
    samples.communication_s = communication_durations(program, samples.timeline);
    const auto communicates = [&](OperationId id) {
      return is_communication(program.step.at(static_cast<std::size_t>(id)).action);
    };
    samples.split = split_step(samples.timeline, communicates, samples.profiled_step_seconds);
  }
  if (!samples.step_seconds.empty()) {
    samples.losses = read_losses(executable, program, static_cast<int>(samples.step_seconds.size()));
  }
}

}  // namespace harness
