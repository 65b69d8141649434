#include "traces/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::traces {
namespace {

using ::testing::IsEmpty;

constexpr std::int64_t us = 1000;

// All-reduces that end every 10 ms. Each rank's start is later by its delay.
std::vector<std::vector<Collective>> job(const std::vector<std::int64_t>& delays_us, std::int64_t clock_us, int count) {
  std::vector<std::vector<Collective>> ranks;
  for (std::size_t r = 0; r < delays_us.size(); ++r) {
    std::vector<Collective>& own = ranks.emplace_back();
    for (int i = 0; i < count; ++i) {
      const std::int64_t end = (10'000 * i + 9000 + static_cast<std::int64_t>(r)) * us;
      const std::int64_t shift = r >= 2 ? clock_us * us : 0;
      own.push_back({end - (5000 - delays_us[r]) * us + shift, end + shift, static_cast<std::uint32_t>(20 + r),
                     class_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL")});
    }
  }
  return ranks;
}

TEST(Meetings, WhoComesLastWaitsForNobody) {
  const Meetings found = find_meetings(job({0, 1000, 3000}, 0, 5));
  ASSERT_EQ(found.all.size(), 5u);
  const Meeting& m = found.all[2];
  EXPECT_EQ(m.last, 2u);
  EXPECT_NEAR(m.transfer_s, 2e-3, 1e-9);
  EXPECT_NEAR(m.longest_s, 5e-3, 1e-9);
  ASSERT_EQ(m.members.size(), 3u);
  EXPECT_NEAR(m.members[0].waiting_s, 3e-3, 1e-9);
  EXPECT_NEAR(m.members[1].waiting_s, 2e-3, 1e-9);
  EXPECT_EQ(m.members[2].waiting_s, 0);
  EXPECT_NEAR(m.end_spread_s, 2e-6, 1e-9);
}

TEST(Meetings, ADifferenceOfClocksIsEstimatedFromManyAndNeverFromFew) {
  const Meetings many = find_meetings(job({0, 1000, 3000}, 1500, 25));
  ASSERT_EQ(many.all.size(), 25u);
  EXPECT_THAT(many.all[7].members, ::testing::SizeIs(3));
  EXPECT_NEAR(many.clock_s[2], 1.5e-3, 1e-5);
  const Meetings few = find_meetings(job({0, 1000, 3000}, 1500, 5));
  ASSERT_EQ(few.all.size(), 5u);
  EXPECT_THAT(few.all[0].members, ::testing::SizeIs(2));  // only the first two ranks, whose clocks agree
}

TEST(Meetings, WhatDoesNotEndTogetherIsNoMeeting) {
  std::vector<std::vector<Collective>> ranks = job({0, 1000}, 0, 30);
  for (std::size_t i = 0; i < ranks[1].size(); ++i) {
    ranks[1][i].start_ns += static_cast<std::int64_t>(i % 5) * 700 * us;
    ranks[1][i].end_ns += static_cast<std::int64_t>(i % 5) * 700 * us;
  }
  EXPECT_THAT(find_meetings(ranks).all, IsEmpty());
}

TEST(Meetings, ACaptureMayBeginOneCollectiveLater) {
  std::vector<std::vector<Collective>> ranks = job({0, 1000}, 0, 12);
  ranks[1].erase(ranks[1].begin());
  const Meetings found = find_meetings(ranks);
  ASSERT_EQ(found.all.size(), 11u);
  EXPECT_NEAR(found.all[0].end_spread_s, 1e-6, 1e-9);
}

// PyTorch runs the collectives of all groups on the stream of the computation, unless they are asynchronous. Here each
// of four ranks meets its neighbour and then its replica; the last rank comes 1 ms late to both.
TEST(Meetings, GroupsOnOneStreamAreTold) {
  std::vector<std::vector<Collective>> ranks(4);
  for (std::int64_t at = 0; at < 100'000 * us; at += 10'000 * us) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::int64_t late = rank >= 2 ? 1000 * us : 0, own = rank == 3 ? 1000 * us : 0;
      const Class kind = class_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
      ranks[rank].push_back({at + own, at + 2000 * us + late, 7, kind, 1});
      ranks[rank].push_back({at + 2000 * us + late, at + 6000 * us, 7, kind, 2});
    }
  }
  const Meetings found = find_meetings(ranks);
  double waited_s = 0;
  for (const Meeting& meeting : found.all) {
    for (const Meeting::Member& member : meeting.members) waited_s += member.waiting_s;
  }
  EXPECT_NEAR(waited_s, 10 * 3e-3, 1e-9);  // rank 2 for rank 3, ranks 0 and 1 for their replicas
}

// Two all-reduces a step that take 1 and 2 ms, and wait in four of six steps. Without sizes, only their position in the
// step identifies them.
TEST(Meetings, OneRankTellsTheLeastOfItsWaiting) {
  std::vector<Collective> all;
  std::vector<Window> steps;
  const auto add = [&](std::int64_t start_us, std::int64_t length_us) {
    all.push_back(
        {start_us * us, (start_us + length_us) * us, 20, class_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL")});
  };
  for (int s = 0; s < 6; ++s) {
    const std::int64_t waits_us = s % 3 == 0 ? 0 : 500 * s;
    steps.push_back({"s", 20'000 * s * us, 20'000 * (s + 1) * us});
    add(20'000 * s + 1000, 1000 + waits_us);
    add(20'000 * s + 9000, 2000 + 2 * waits_us);
  }
  EXPECT_NEAR(least_waiting_s(all, steps, steps[2]).value(), 3e-3, 1e-9);
  EXPECT_NEAR(least_waiting_s(all, steps, steps[3]).value(), 0, 1e-9);
  EXPECT_FALSE(least_waiting_s(all, {}, steps[2]));  // neither sizes nor steps
  for (Collective& c : all) c.bytes = 4;             // equal sizes, but the two shortest differ
  EXPECT_NEAR(least_waiting_s(all, {}, steps[2]).value(), 4e-3, 1e-9);
  for (std::size_t i = 0; i < 6; ++i) all[2 * i].end_ns += static_cast<std::int64_t>(i) * 1000 * us;
  EXPECT_FALSE(least_waiting_s(all, {}, steps[2]));  // the shortest has no equal
  EXPECT_FALSE(least_waiting_s({all.begin(), all.begin() + 3}, steps, steps[0]));
}

// ---- the parts of a step

TEST(TimedStep, PartsAddUpToTheStep) {
  StepWork work;
  work.step_s = 10e-3;
  const auto add = [&](double from, double to, std::optional<Part> part, bool main) -> analysis::StepOperation& {
    return work.operations.emplace_back(analysis::StepOperation{from, to, part, main, {}, {}, {}});
  };
  add(1e-3, 4e-3, Part::matrix_products, true).phase = "forward";
  add(4e-3, 5e-3, Part::attention, true).phase = "forward";
  add(4.5e-3, 5.5e-3, Part::other_compute, false).kind = "norm";
  add(3e-3, 8e-3, Part::data, false).waiting_s = 3e-3;
  add(7e-3, 9e-3, std::nullopt, false);
  add(9.5e-3, 9.5e-3, Part::other_compute, true);
  work.idle_s[Cause::loading] = 0.5e-3;
  const TimedStep step = time_step(work);
  const analysis::Breakdown& b = step.breakdown;
  EXPECT_NEAR(*b[Part::matrix_products], 3e-3, 1e-12);
  EXPECT_NEAR(*b[Part::attention], 1e-3, 1e-12);  // overlapped time counts for the main stream
  EXPECT_NEAR(*b[Part::other_compute], 0.5e-3, 1e-12);
  EXPECT_NEAR(*b[Part::data], 2e-3, 1e-12);
  EXPECT_NEAR(*b[Part::waiting], 0.5e-3, 1e-12);
  EXPECT_NEAR(b.hidden_s(Part::data), 2.5e-3, 1e-12);
  EXPECT_NEAR(step.copies_s, 1e-3, 1e-12);
  EXPECT_NEAR(*b[Part::loading], 0.5e-3, 1e-12);
  EXPECT_NEAR(b.parts.sum() + step.copies_s, work.step_s, 1e-12);
  EXPECT_FALSE(b[Part::bubble]);
  work.operations[3].waiting_s = NAN;
  EXPECT_FALSE(time_step(work).breakdown[Part::waiting]);  // unknown: absent, not zero
}

TEST(Classes, NamesOfManyMakers) {
  const auto name = [](const char* kernel) { return class_names()[class_of(kernel)]; };
  EXPECT_EQ(name("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"), "comm.sendrecv");
  EXPECT_EQ(name("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"), "comm.generic");
  EXPECT_EQ(name("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90>>"), "attention");
  EXPECT_EQ(name("Cijk_Ailk_Bljk_HHS_BH_MT256x128x32"), "matrix_products");
  EXPECT_EQ(name("void rotary_embedding_kernel<float>"), "rotary_embedding");
  EXPECT_EQ(name("void fbgemm_gpu::split_embedding_backward"), "embedding");
  EXPECT_EQ(name("bf16xmxfp4_matmul"), "matrix_products");
  EXPECT_EQ(name("multi_tensor_apply_kernel<AdamFunctor<float>>"), "optimizer");
  EXPECT_EQ(name("multi_tensor_apply_kernel<CopyFunctor<float, BFloat16>, Copy<float, BFloat16>>"), "copies_on_SMs");
  EXPECT_EQ(name("void my_project::odd<float>"), "without_a_class");
  EXPECT_EQ(axis_of("INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP"), Part::data);
  EXPECT_EQ(axis_of("EXPERT_MODEL_PARALLEL_GROUP"), Part::communication);
}

}  // namespace
}  // namespace harness::traces
