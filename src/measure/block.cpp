#include "measure/block.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>

#include "base/error.h"
#include "measure/waiting.h"
#include "workloads/step.h"

namespace harness::measure {
namespace {

// The whole ring of losses of the steps [0, steps), read once after them.
std::vector<float> read_losses(backend::Executable& executable, const program::Program& program, int steps) {
  const auto ring = std::ranges::find(program.buffers, workloads::losses_buffer, &program::Buffer::name);
  if (ring == program.buffers.end()) {
    fail("the Program has no buffer '{}', so there are no losses to read", workloads::losses_buffer);
  }
  if (steps > ring->count) fail("a block of {} steps does not fit in the buffer of {} losses", steps, ring->count);
  std::vector<float> losses(steps);
  const program::View view{static_cast<program::BufferId>(ring - program.buffers.begin()), 0, steps};
  executable.read(view, std::as_writable_bytes(std::span(losses)));
  return losses;
}

void append_durations(const std::vector<double>& completions, std::vector<double>& durations) {
  for (std::size_t i = 1; i < completions.size(); ++i) durations.push_back(completions[i] - completions[i - 1]);
}

void add_totals(const program::Program& program, const std::vector<backend::Interval>& intervals,
                std::vector<KindTotal>& totals) {
  std::map<std::pair<std::string_view, program::StreamId>, KindTotal> by_kind;
  for (const backend::Interval& interval : intervals) {
    const program::Operation& operation = program.step.at(interval.operation);
    KindTotal& total = by_kind[{program::name_of(operation.action), interval.stream}];
    total.seconds += interval.end_s - interval.start_s;
    ++total.operations;
  }
  for (auto& [key, total] : by_kind) {
    total.kind = key.first;
    total.stream = program.streams.at(key.second);
    totals.push_back(std::move(total));
  }
}

// What filling the inputs takes the host.
class TimedInputs final : public program::InputSource {
 public:
  explicit TimedInputs(const program::InputSource& inner) : inner_(inner) {}
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    const auto began = std::chrono::steady_clock::now();
    inner_.fill(buffer, step, to);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  double seconds() const { return seconds_; }

 private:
  const program::InputSource& inner_;
  mutable double seconds_ = 0;  // one thread fills
};

class ExecutableMemory : public program::BufferAccess {
 public:
  explicit ExecutableMemory(backend::Executable& executable) : executable_(executable) {}
  void read(const program::View& view, std::span<std::byte> to) override { executable_.read(view, to); }
  void write(const program::View& view, std::span<const std::byte> from) override { executable_.write(view, from); }

 private:
  backend::Executable& executable_;
};

}  // namespace

void check_outputs(backend::Executable& executable, const program::InputSource& inputs,
                   const workloads::OutputCheck& check, std::int64_t step) {
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

void run_block(backend::Executable& executable, const program::Program& program, const program::InputSource& inputs,
               BlockMode mode, int warmup_steps, int steps, BlockSamples& samples) {
  using Clock = std::chrono::steady_clock;
  const int timed_steps = mode == BlockMode::timed ? steps : 0;
  // Warm-up and timed steps in two calls: the clock around the second checks the sum of its steps.
  int done = 0;
  const auto run = [&](int count) {
    if (count <= 0) return;
    const std::vector<double> completions = executable.run(done, count, inputs);
    if (std::ssize(completions) != count + 1) {
      fail("the backend timed {} of {} steps", std::ssize(completions) - 1, count);
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
    for (const backend::Interval& interval : samples.timeline) {
      samples.profiled_step_seconds = std::max(samples.profiled_step_seconds, interval.end_s);
    }
    add_totals(program, samples.timeline, samples.totals);
    samples.communication_s = communication_durations(program, samples.timeline);
    const auto communicates = [&](program::OperationId id) {
      return program::is_communication(program.step.at(id).action);
    };
    samples.split = split_step(samples.timeline, communicates, samples.profiled_step_seconds);
  }
  if (!samples.step_seconds.empty()) {
    samples.losses = read_losses(executable, program, static_cast<int>(samples.step_seconds.size()));
  }
}

}  // namespace harness::measure
