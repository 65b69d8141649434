#include "worker/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "worker/channel.h"
#include "workloads/gpt/gpt.h"

namespace harness::worker {
namespace {

// Completes step i after (i + 1) milliseconds of its own clock, with loss 100 + step.
class ScriptedExecutable final : public backend::Executable {
 public:
  std::vector<RendezvousMessage> publish() override { return {}; }
  void connect(const std::vector<RendezvousMessage>&, double) override {}
  void initialize() override {}
  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource&) override {
    calls.emplace_back(first_step, steps);
    std::vector<double> completions = {1000.0};
    for (int i = 0; i < steps; ++i) {
      completions.push_back(completions.back() + 1e-3 * static_cast<double>(first_step + i + 1));
      ring[static_cast<std::size_t>(first_step + i)] = 100 + static_cast<float>(first_step + i);
    }
    return completions;
  }
  std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) override {
    calls.emplace_back(step, -1);
    if (fills) inputs.fill("x", step, {});
    return {{0, 0, 0.0, 0.25}, {2, 1, 0.125, 0.5}, {1, 0, 0.25, 1.0}};
  }
  void read(const program::View& view, std::span<std::byte> to) override {
    EXPECT_EQ(view.buffer, 1);
    ASSERT_EQ(to.size(), static_cast<std::size_t>(view.count) * sizeof(float));
    std::memcpy(to.data(), ring.data() + view.offset, to.size());
  }
  void write(const program::View&, std::span<const std::byte>) override {}
  backend::Progress progress() const override { return {}; }

  std::vector<std::pair<std::int64_t, int>> calls;
  std::vector<float> ring = std::vector<float>(16, -1.0f);
  bool fills = false;
};

program::Program small_program() {
  program::Program program;
  program.streams = {"compute", "data"};
  program.buffers = {{"x", program::DType::f32, 4, program::BufferKind::persistent},
                     {workloads::losses_buffer, program::DType::f32, 16, program::BufferKind::output}};
  program.step = {
      {program::Matmul{}, 0, {}, -1, {}}, {program::Matmul{}, 0, {}, -1, {}}, {program::AllReduce{}, 1, {}, -1, {}}};
  return program;
}

// Steps of an executable, with the objects they need.
struct Rig {
  ScriptedExecutable executable;
  program::Program program = small_program();
  program::NoInputs inputs;
  Steps steps{executable, program, inputs};
};

TEST(Tasks, TimedStepsFollowTheWarmUpAndBringTheirLosses) {
  Rig rig;
  const job::TimedSamples samples = time_steps(rig.steps, 2, 3);
  using Calls = std::vector<std::pair<std::int64_t, int>>;
  EXPECT_EQ(rig.executable.calls, (Calls{{0, 2}, {2, 3}}));
  ASSERT_EQ(samples.step_s.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(samples.step_s[i], 1e-3 * static_cast<double>(i + 1), 1e-9);
  EXPECT_EQ(samples.losses, (std::vector<float>{100, 101, 102, 103, 104}));
  EXPECT_NEAR(rig.steps.first_step_s(), 1e-3, 1e-9);
}

class WaitingInputs final : public program::InputSource {
 public:
  explicit WaitingInputs(bool is_part) : is_part_(is_part) {}
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  bool is_part_of_step() const override { return is_part_; }

 private:
  bool is_part_;
};

// A device's clock starts with its first operation, after the wait for data.
TEST(Tasks, AProfiledStepBeginsWithItsWaitForData) {
  for (const bool is_part : {false, true}) {
    Rig rig;
    rig.executable.fills = true;
    const WaitingInputs inputs(is_part);
    const Steps::Profiled profiled = Steps(rig.executable, rig.program, inputs).run_profiled();
    EXPECT_GE(profiled.loading_s, 2e-3);
    EXPECT_DOUBLE_EQ(profiled.intervals[0].start_s, is_part ? profiled.loading_s : 0);
    EXPECT_DOUBLE_EQ(profiled.intervals[2].end_s, is_part ? 1 + profiled.loading_s : 1);
  }
}

TEST(Tasks, WithoutWarmUpTheFirstStepIsTimed) {
  Rig rig;
  EXPECT_EQ(time_steps(rig.steps, 0, 1).step_s.size(), 1u);
  EXPECT_NEAR(rig.steps.first_step_s(), 1e-3, 1e-9);
}

TEST(Tasks, ATimelineIsOfferedOfEveryProfiledStepAfterTheWarmUp) {
  Rig rig;
  const job::TimelineSamples all = record_timeline(rig.steps, 2, 3, true, 1, {});
  using Calls = std::vector<std::pair<std::int64_t, int>>;
  EXPECT_EQ(rig.executable.calls, (Calls{{0, 1}, {1, 1}, {2, -1}, {3, -1}, {4, -1}}));
  ASSERT_EQ(all.offered.size(), 3u);
  EXPECT_TRUE(std::isnan(all.gradient.sharded));
  const job::ProfiledStep& samples = all.offered[1];
  EXPECT_EQ(samples.timeline.size(), 3u);
  EXPECT_EQ(samples.step_s, 1.0);
  ASSERT_EQ(samples.totals.size(), 2u);
  EXPECT_EQ(samples.totals[0].kind, "all_reduce");
  EXPECT_EQ(samples.totals[0].stream, "data");
  EXPECT_EQ(samples.totals[0].seconds, 0.375);
  EXPECT_EQ(samples.totals[1].kind, "matmul");
  EXPECT_EQ(samples.totals[1].seconds, 1.0);
  EXPECT_EQ(samples.totals[1].operations, 2);
  EXPECT_EQ(samples.communication_s, (std::vector<float>{0.375F}));
}

// Each step of this executable writes a number that identifies it.
TEST(Tasks, GradientsAreSquaredAfterTheFirstStepOfAll) {
  const std::vector<workloads::GradientPart> gradients{
      {{1, 0, 2}, true, 1}, {{1, 2, 2}, false, 4}, {{1, 4, 1}, true, 2}};
  for (const int warmup : {2, 1}) {
    Rig rig;
    std::ranges::fill(rig.executable.ring, 3.0F);
    const job::GradientSquares squares = record_timeline(rig.steps, warmup, 1, false, 1, gradients).gradient;
    EXPECT_EQ(squares.sharded, 100 * 100 + 9 + 9 / 2.0) << "the second step would have written 101 over a 3";
    EXPECT_EQ(squares.replicated, 18 / 4.0);
  }
  Rig rig;
  std::ranges::fill(rig.executable.ring, 3.0F);
  EXPECT_EQ(record_timeline(rig.steps, 0, 1, false, 1, gradients).gradient.sharded, 9 + 9 + 9 / 2.0);
}

TEST(Tasks, ARankThatDoesNotKeepItsTimelineBringsItsTotals) {
  Rig rig;
  const job::ProfiledStep step = record_timeline(rig.steps, 0, 1, false, 1, {}).offered.at(0);
  EXPECT_TRUE(step.timeline.empty());
  EXPECT_EQ(step.totals.size(), 2u);
  EXPECT_TRUE(record_timeline(rig.steps, 0, 1, false, 1 << 27, {}).offered.at(0).communication_s.empty());
}

TEST(Tasks, MoreStepsThanLossesAreKeptIsAnError) {
  Rig rig;
  rig.executable.ring.resize(64);
  EXPECT_THROW(time_steps(rig.steps, 2, 20), Error);
}

// CPU ranks have no device memory to copy to: they report no rates, and build no step.
TEST(Tasks, CopiesWithTheHostNeedNoStep) {
  job::WorkerOrder order;
  order.request.backend = config::BackendKind::cpu;
  order.request.settings.workload = "gemm";
  order.request.task = job::CopyWithHost{0.01};
  const Work work = make_work(order, nullptr);
  EXPECT_EQ(work.executable, nullptr);
  const auto copied = std::get<job::HostCopySamples>(work.task(nullptr));
  EXPECT_EQ(copied.device, "");
  EXPECT_EQ(copied.rates.to_device_bytes_per_s, 0);
  EXPECT_EQ(copied.rates.from_device_bytes_per_s, 0);
  EXPECT_EQ(copied.rates.both_bytes_per_s, 0);
}

// Counts its calls, and finds a fault if `wrong`.
class ScriptedCheck final : public workloads::OutputCheck {
 public:
  explicit ScriptedCheck(bool wrong) : wrong_(wrong) {}
  void prepare(program::BufferAccess&) const override { ++prepared; }
  void check(program::BufferAccess&) const override {
    EXPECT_EQ(prepared, 1);
    if (wrong_) fail("all_reduce gives a wrong result");
  }
  mutable int prepared = 0;

 private:
  bool wrong_;
};

// A large block takes longer to look through than a step may.
TEST(Tasks, EveryAccessToABufferBetweenStepsIsProgress) {
  Rig rig;
  CountedAccess memory(rig.executable);
  const std::uint64_t before = worker_progress().pieces;
  std::array<std::byte, sizeof(float)> number{};
  memory.read({1, 0, 1}, number);
  memory.write({1, 0, 1}, number);
  EXPECT_EQ(worker_progress().pieces, before + 2);
  const std::vector<workloads::GradientPart> gradients{{{1, 0, 2}, true, 1}, {{1, 2, 2}, false, 4}};
  record_timeline(rig.steps, 0, 1, false, 1, gradients);
  EXPECT_EQ(worker_progress().pieces, before + 4);
}

TEST(Tasks, OutputsAreCheckedAfterOneMoreStep) {
  Rig rig;
  rig.steps.run(7);
  check_outputs(rig.steps, ScriptedCheck(false));
  EXPECT_EQ(rig.executable.calls.back(), (std::pair<std::int64_t, int>{7, 1}));
  EXPECT_THROW(check_outputs(rig.steps, ScriptedCheck(true)), Error);
}

}  // namespace
}  // namespace harness::worker
