#include "job/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.h"
#include "config/registry.h"
#include "job/job.h"
#include "support/row_values.h"
#include "support/soak.h"

namespace harness::job {
namespace {

BlockRequest some_request() {
  BlockRequest r;
  r.case_name = "bucket_size=3 MiB";
  r.model = {"tiny", 2, 64, 4, 512, 32};
  r.model.kv_heads = 2;
  r.model.activation = config::Activation::swiglu;
  r.model.rope_theta = 500000;
  r.model.biases = false;
  r.settings.precision = config::Precision::bf16;
  r.settings.bucket_size_bytes = 3 << 20;
  r.settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  r.settings.overlap_grad_reduce = false;
  r.settings.threads = 3;
  r.layout[program::Axis::tensor] = 2;
  r.layout[program::Axis::pipeline] = 2;
  r.task = RecordTimeline{config::Timelines::all};
  r.warmup_steps = 7;
  r.seed = 0xfedcba9876543210ull;
  r.deadlines = {12.5, 0.1};
  r.memory_limit_bytes = 123456789.0;
  r.share_gpus = true;
  r.tuning = {{"matmul 1x2x3", "fused 0a 1"}};
  r.wrap = "nsys profile -o 'a b'";
  r.settings.nccl = {{"nccl_buffsize", "4 MiB"}, {"nccl_collnet", "false"}};
  r.settings.env = {{"NCCL_IB_TIMEOUT", "22"}, {"ODD", "a, {b}: \"c\" \\"}};
  r.environment = {{"NCCL_ALGO", "Ring"}, {"ODD", "a=b \"c\" \n ü"}};
  return r;
}

// Encodes and decodes an order to run this block.
BlockOnSet block_back(const BlockOnSet& on) {
  return std::get<RunBlock>(decode<JobOrder>(encode(JobOrder(RunBlock{3, {}, on})))).on;
}

TEST(Messages, NumbersOfATaskComeBack) {
  BlockRequest r = some_request();
  r.task = Observe{512};
  EXPECT_EQ(std::get<Observe>(block_back({{}, r, true}).request.task).logs, 512);
  r.task = CopyWithHost{1.25};
  EXPECT_EQ(std::get<CopyWithHost>(block_back({{}, r, true}).request.task).seconds, 1.25);
}

TEST(Messages, ARequestComesBackAsItWas) {
  const BlockRequest r = some_request();
  const BlockOnSet on{{8, {1, 4, 5, 7}}, r, false};
  const BlockOnSet carried = block_back(on);
  EXPECT_EQ(carried.set.number, 8);
  EXPECT_EQ(carried.set.ranks, on.set.ranks);
  EXPECT_FALSE(carried.last);
  const BlockRequest& back = carried.request;
  EXPECT_EQ(back.case_name, r.case_name);
  EXPECT_EQ(back.model, r.model);
  EXPECT_EQ(back.settings, r.settings);
  EXPECT_EQ(back.layout, r.layout);
  ASSERT_TRUE(std::holds_alternative<RecordTimeline>(back.task));
  EXPECT_EQ(std::get<RecordTimeline>(back.task).ranks, config::Timelines::all);
  EXPECT_EQ(back.warmup_steps, r.warmup_steps);
  EXPECT_EQ(back.seed, r.seed);
  EXPECT_EQ(back.deadlines.start_s, r.deadlines.start_s);
  EXPECT_EQ(back.deadlines.step_s, r.deadlines.step_s);
  EXPECT_EQ(back.memory_limit_bytes, r.memory_limit_bytes);
  EXPECT_EQ(back.environment, r.environment);
  EXPECT_TRUE(back.share_gpus);
  EXPECT_EQ(back.tuning, r.tuning);
  EXPECT_EQ(back.wrap, r.wrap);
}

// Any settings that a configuration may contain.
TEST(Messages, SettingsOfAnyValuesComeBackAsTheyWere) {
  std::mt19937_64 random(4);
  for (int i = 0; i < test::draws(100, 5000); ++i) {
    BlockRequest r = some_request();
    r.settings = {};
    for (const config::Variable& row : config::registry()) test::set_at_random(row, r.settings, random);
    EXPECT_EQ(block_back({{}, r, true}).request.settings, r.settings);
  }
}

TEST(Messages, AnOrderComesBackAsItWas) {
  const WorkerOrder back = decode<WorkerOrder>(encode(WorkerOrder{some_request(), 5, 6, 7e9, 2, 4}));
  EXPECT_EQ(back.rank, 5);
  EXPECT_EQ(back.threads, 6);
  EXPECT_EQ(back.memory_limit_bytes, 7e9);
  EXPECT_EQ(back.local_rank, 2);
  EXPECT_EQ(back.local_ranks, 4);
  EXPECT_EQ(back.request.settings, some_request().settings);
}

TEST(Messages, DamagedOrdersAreErrors) {
  const std::string bytes = encode(WorkerOrder{some_request(), 5, 6, 7e9, 2, 4});
  EXPECT_THROW(decode<WorkerOrder>(""), Error);
  EXPECT_THROW(decode<WorkerOrder>(bytes.substr(0, bytes.size() - 1)), Error);
  EXPECT_THROW(decode<WorkerOrder>(bytes + "x"), Error);
}

template <class T>
Samples samples_of(T task) {
  return {std::move(task), 0.4, 42, {"warm"}};
}

// Encodes and decodes a rank's samples. The task must be the same.
template <class T>
T task_back(const Samples& samples) {
  const Samples back = decode<Samples>(encode(samples));
  EXPECT_EQ(back.first_step_s, 0.4);
  EXPECT_EQ(back.peak_memory_bytes, 42);
  EXPECT_EQ(back.warnings, samples.warnings);
  return std::get<T>(back.task);
}

TEST(Messages, TimedSamplesComeBackAsTheyWere) {
  TimedSamples s{{0.1, 0.2}, {7.5f, 7.25f}, 0.3, 1, {}};
  s.gpu.samples = 7;
  s.gpu.energy_j = 1234.5;
  const auto back = task_back<TimedSamples>(samples_of(s));
  EXPECT_EQ(back.step_s, s.step_s);
  EXPECT_EQ(back.losses, s.losses);
  EXPECT_EQ(back.timed_total_s, s.timed_total_s);
  EXPECT_EQ(back.skipped_steps, 1);
  EXPECT_EQ(back.gpu.samples, 7);
  EXPECT_EQ(back.gpu.energy_j, 1234.5);
  EXPECT_TRUE(std::isnan(back.gpu.mean_power_w));
  EXPECT_THROW(decode<Samples>(encode(samples_of(s)).substr(0, 40)), Error);
}

TEST(Messages, WhatUntimedTasksFoundComesBack) {
  const ProbeSamples probe{{{"oneDNN", "2.6.3"}}, "0000:1B:00.0 NVIDIA H200", 1e12};
  const auto back = task_back<ProbeSamples>(samples_of(probe));
  EXPECT_EQ(back.identity, probe.identity);
  EXPECT_EQ(back.device, probe.device);
  EXPECT_EQ(back.peak_flops, 1e12);
  const TuneSamples tune{{{"matmul 1x2x3", "fused 0a 1"}}};
  EXPECT_EQ(task_back<TuneSamples>(samples_of(tune)).tuning, tune.tuning);
  const HostCopySamples copies{"0000:1B:00.0 NVIDIA H200", {55e9, 52e9, 90e9}};
  const auto copied = task_back<HostCopySamples>(samples_of(copies));
  EXPECT_EQ(copied.device, copies.device);
  EXPECT_EQ(copied.rates.to_device_bytes_per_s, 55e9);
  EXPECT_EQ(copied.rates.from_device_bytes_per_s, 52e9);
  EXPECT_EQ(copied.rates.both_bytes_per_s, 90e9);
  const ObserveSamples observe{std::string("a\nb\0c", 5)};
  EXPECT_EQ(task_back<ObserveSamples>(samples_of(observe)).nccl_log, observe.nccl_log);
}

TEST(Messages, ATaskThatThisProgramDoesNotKnowIsDamage) {
  std::string bytes = encode(samples_of(TuneSamples{}));
  bytes[0] = 17;
  EXPECT_THROW(decode<Samples>(bytes), Error);
}

TEST(Frames, ArriveWholeHoweverTheyAreCut) {
  const std::string bytes = frame_bytes(FrameType::samples, "hello") + frame_bytes(FrameType::go, "");
  FrameReader reader;
  std::vector<Frame> frames;
  for (const char c : bytes) {
    reader.append({&c, 1});
    while (auto frame = reader.next()) frames.push_back(*frame);
  }
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].type, FrameType::samples);
  EXPECT_EQ(frames[0].payload, "hello");
  EXPECT_EQ(frames[1].type, FrameType::go);
  EXPECT_FALSE(reader.damaged());
}

TEST(Frames, WhatIsNoFrameIsNoticed) {
  FrameReader reader;
  reader.append("this is a library's greeting");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.damaged());
}

// Otherwise a flood that looks like a frame of gigabytes would be buffered until the supervisor runs out of memory.
TEST(Frames, NoneIsLargerThanAnyMessage) {
  for (const FrameType type : {FrameType::ready, FrameType::progress, FrameType::failure, FrameType::samples}) {
    std::string header = frame_bytes(type, "");
    const std::uint64_t length = max_payload_bytes(type) + 1;
    header.replace(sizeof(std::uint32_t), sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
    FrameReader reader;
    reader.append(header);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.damaged()) << static_cast<int>(type);
  }
}

// Up to half of the steps may have a hiccup without one of them being kept. All ranks keep the same step.
TEST(ChooseStep, KeepsTheMedianOfAnyNumberOfSteps) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + random() % 9;
    std::vector<double> step_s(n);
    for (double& s : step_s) s = 1 + 1e-3 * static_cast<double>(random() % 100);
    for (std::size_t hiccup = 0; 2 * (hiccup + 1) <= n; ++hiccup) step_s[hiccup] = 100;
    std::ranges::shuffle(step_s, random);
    TimelineSamples samples;
    for (std::size_t i = 0; i < n; ++i) {
      samples.offered.emplace_back().step_s = 0.5 * step_s[i];  // this rank's time, not the slowest rank's
      samples.offered.back().loading_s = static_cast<double>(i);
    }
    choose_step(samples, step_s);
    const double kept = step_s[static_cast<std::size_t>(samples.loading_s)];
    EXPECT_EQ(samples.step_s, 0.5 * kept);
    EXPECT_LT(kept, 2);
    const auto below = std::ranges::count_if(step_s, [&](double s) { return s < kept; });
    const auto above = std::ranges::count_if(step_s, [&](double s) { return s > kept; });
    EXPECT_LE(std::max(below, above), std::ssize(step_s) / 2);
    EXPECT_TRUE(samples.offered.empty());
  }
}

}  // namespace
}  // namespace harness::job
