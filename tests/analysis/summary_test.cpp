#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "summary_fixture.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;

TEST_F(SummaryTest, NumbersOfACase) {
  store::Result result = ordinary(1);
  const Summary summary = summarise(result);
  ASSERT_EQ(summary.cases.size(), 4u);
  const CaseSummary& fast = summary.cases[2];
  const double seconds = result.step_seconds[2][2];  // the median of the timed steps, without the warm-up step
  EXPECT_DOUBLE_EQ(fast.step_seconds, seconds);
  EXPECT_DOUBLE_EQ(fast.tokens_per_second, 1000 / seconds);
  EXPECT_DOUBLE_EQ(fast.flops_per_rank, 2e9 / seconds);
  EXPECT_DOUBLE_EQ(*fast.mfu, 0.5 / seconds);
  EXPECT_DOUBLE_EQ(*fast.mfu_noncausal, 9.0 / 16 / seconds);
  EXPECT_DOUBLE_EQ(*fast.hfu, 10.0 / 16 / seconds);
  EXPECT_EQ(fast.first_loss, 5);
  EXPECT_EQ(fast.last_loss, 2);
  EXPECT_EQ(fast.blocks, 1);
  EXPECT_EQ(fast.effect->verdict, Verdict::none);  // one round proves nothing
  EXPECT_TRUE(warns(summary, "--rounds 12"));
  EXPECT_FALSE(summary.cases[0].effect.has_value());
}

TEST_F(SummaryTest, RanksThatACaseDoesNotUseDoNotCountAgainstIt) {
  store::Result result = ordinary(2);
  result.cases[3].ranks = 2;
  const Summary summary = summarise(result);
  EXPECT_NEAR(*summary.cases[3].mfu / *summary.cases[0].mfu, 2, 0.02);
}

TEST_F(SummaryTest, StepTimeIsTheMedianOfBlockMediansAndMemoryTheHighest) {
  const Summary summary = summarise(sweep(3, {}, [](int, int round) { return round == 1 ? 40.0 : 1.0 + round; }));
  EXPECT_FLOAT_EQ(static_cast<float>(summary.cases[0].step_seconds), 3.0f);
  EXPECT_EQ(summary.cases[0].peak_memory_bytes, 3e6);
}

TEST_F(SummaryTest, VerdictsAgainstTheBaselineInItsRounds) {
  const Summary summary = summarise(ordinary());
  EXPECT_EQ(summary.cases[2].effect->verdict, Verdict::faster);
  EXPECT_NEAR(summary.cases[2].effect->ratio, 0.8, 0.002);
  EXPECT_EQ(summary.cases[3].effect->verdict, Verdict::same);
  EXPECT_EQ(summary.control->verdict, Verdict::same);
  EXPECT_FALSE(summary.unreliable);
  EXPECT_FALSE(summary.partial);
  EXPECT_GT(summary.noise, 0.0001);
  EXPECT_LT(summary.noise, 0.005);
  EXPECT_TRUE(summary.warnings.empty()) << summary.warnings[0];
  EXPECT_EQ(exit_code(summary), 0);
}

TEST_F(SummaryTest, AnUnknownPeakMakesMfuAbsent) {
  store::Result result = ordinary();
  for (auto& row : result.cases) row.peak_flops_per_rank = 0;
  const Summary summary = summarise(result);
  EXPECT_FALSE(summary.cases[0].mfu || summary.cases[0].mfu_noncausal || summary.cases[0].hfu);
  EXPECT_GT(summary.cases[0].flops_per_rank, 0);
}

TEST_F(SummaryTest, ALargerBatchIsComparedPerToken) {
  store::Result result = sweep(12, {"global_batch_size=32"}, [](int c, int round) {
    return (c == 2 ? 1.8 : 1.0) * (1 + 0.001 * ((3 * c + 5 * round) % 7 - 3));
  });
  result.cases[2].tokens_per_step = 2000;
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.cases[2].effect->verdict, Verdict::faster);
  EXPECT_NEAR(summary.cases[2].effect->ratio, 0.9, 0.002);
}

TEST_F(SummaryTest, BlocksOfDifferentSessionsAreNeverPaired) {
  store::Result result = ordinary(6);
  // Rounds 0-2 were measured in session 0, 3-5 in session 1; round 3 spans both.
  for (int round = 3; round < 6; ++round) {
    for (int c = 0; c < 4; ++c) block(result, round, c).session = 1;
  }
  block(result, 3, 0).session = 0;
  EXPECT_EQ(paired_log_ratios({finished_blocks(result), 0}, 2).size(), 5u);
}

TEST_F(SummaryTest, RoundsWithoutBothBlocksDoNotPair) {
  store::Result result = ordinary(6);
  block(result, 2, 2).status = store::BlockStatus::failed;
  block(result, 4, 0).status = store::BlockStatus::pending;
  const std::vector<double> log_ratios = paired_log_ratios({finished_blocks(result), 0}, 2);
  ASSERT_EQ(log_ratios.size(), 4u);
  for (const double log_ratio : log_ratios) EXPECT_NEAR(std::exp(log_ratio), 0.8, 0.005);
  EXPECT_EQ(summarise(result).cases[2].blocks, 5);
}

TEST_F(SummaryTest, StepsWithoutASampleDoNotCount) {
  store::Result result = ordinary(2);
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  result.step_seconds[0] = {1, 2, nothing, 4};
  result.step_seconds[1] = {1, nothing, nothing, nothing};
  EXPECT_EQ(*block_median(result, 0), 3);
  EXPECT_FALSE(block_median(result, 1).has_value());
}

TEST_F(SummaryTest, AControlThatMovesMakesTheSweepUnreliable) {
  const store::Result result = sweep(12, {"micro_batch_size=2"}, [](int c, int round) {
    return (c == 1 ? 1.05 : 1.0) * (1 + 0.001 * ((3 * c + 5 * round) % 7 - 3));
  });
  const Summary summary = summarise(result);
  EXPECT_TRUE(summary.unreliable);
  EXPECT_EQ(summary.control->verdict, Verdict::slower);
  EXPECT_TRUE(warns(summary, "unreliable: baseline_again repeats the baseline and came out 5.0 % slower"));
  EXPECT_EQ(exit_code(summary), 4);
}

// The declared cases share the error of 5 %.
TEST_F(SummaryTest, TheFamilyIsWhatWasDeclared) {
  const auto noisy = [](int c, int round) { return 1 + 0.01 * ((5 * c + 3 * round + c * round) % 7 - 3); };
  store::Result result = sweep(12, {"a=1", "b=1", "c=1"}, noisy);
  const auto width = [](const Summary& s, std::size_t c) { return s.cases[c].effect->high - s.cases[c].effect->low; };
  const double family_of_3 = width(summarise(result), 2);
  result.cases[3].status = store::CaseStatus::failed;  // declared nevertheless
  EXPECT_EQ(width(summarise(result), 2), family_of_3);
  result.cases[3].status = store::CaseStatus::impossible;  // known in advance: never declared
  EXPECT_LT(width(summarise(result), 2), family_of_3);
}

TEST_F(SummaryTest, FailedCasesAndMissingBlocks) {
  store::Result result = ordinary();
  result.cases[2].status = store::CaseStatus::failed;
  result.cases[2].reason = "rank 1 was killed";
  block(result, 11, 2).status = store::BlockStatus::pending;
  Summary summary = summarise(result);
  EXPECT_EQ(summary.failed_cases, 1);
  EXPECT_EQ(exit_code(summary), 4);
  EXPECT_FALSE(summary.partial);  // nothing more remained to be measured
  block(result, 11, 3).status = store::BlockStatus::pending;
  EXPECT_TRUE(summarise(result).partial);
}

// An ordinary sweep has no warning; each cause adds exactly its own.
TEST_F(SummaryTest, EachCauseHasItsWarning) {
  const auto nodes = [](store::Result& result, int threads_of_the_last) {
    for (int rank = 0; rank < 4; ++rank) {
      result.rank_table.push_back({rank, rank % 2, rank / 2, "host" + std::to_string(rank / 2), "", 4, 2, 0});
    }
    result.rank_table.back().threads = threads_of_the_last;
  };
  const std::vector<std::pair<std::string, std::function<void(store::Result&)>>> causes{
      {"micro_batch_size=2: the loss is not a finite number in 1 of its blocks",
       [](store::Result& r) {
         r.losses[2] = {5, std::numeric_limits<float>::infinity(), 3, 2};
       }},
      {"micro_batch_size=2: 3 of 36 timed steps were skipped by an overflow",
       [&](store::Result& r) {
         block(r, 1, 2).skipped_steps = 2;
         block(r, 3, 2).skipped_steps = 1;
       }},
      {"in 1 block the step times add up to less than the block took",
       [](store::Result& r) { r.blocks[5].timed_total_s *= 1.1; }},
      {"oversubscribed nodes: 1 (host1 runs 5 threads on 4 cores)", [&](store::Result& r) { nodes(r, 3); }}};
  for (const auto& [warning, happen] : causes) {
    store::Result result = ordinary();
    happen(result);
    EXPECT_THAT(summarise(result).warnings, ::testing::ElementsAre(HasSubstr(warning)));
  }
  store::Result full = ordinary();
  nodes(full, 2);
  EXPECT_THAT(summarise(full).warnings, ::testing::IsEmpty());
}

TEST_F(SummaryTest, OnlyChangesThatRunAreAReasonForMoreRounds) {
  const auto noisy = [&](int which) {
    return sweep(4, {"a=1"}, [&](int c, int round) {
      return (c == 2 ? 1.5 : 1.0) * (1 + (c == which ? 0.02 : 1e-4) * ((3 * c + 5 * round) % 7 - 3));
    });
  };
  const auto open = [](const Summary& summary) { return std::ranges::count_if(summary.cases, is_unresolved); };
  const Summary control = summarise(noisy(1));
  ASSERT_EQ(control.cases[1].judgement.verdict, Verdict::unresolved);
  ASSERT_EQ(control.cases[2].judgement.verdict, Verdict::slower);
  EXPECT_EQ(open(control), 0);
  EXPECT_FALSE(warns(control, "unresolved after"));

  store::Result change = open_after_four_rounds();
  EXPECT_EQ(open(summarise(change)), 1);
  EXPECT_TRUE(warns(summarise(change), "1 unresolved after 4 rounds: a=1."));
  EXPECT_TRUE(warns(summarise(change), fmt::format("About {} rounds would settle all of them",
                                                   summarise(change).cases[2].effect->rounds_needed)));
  change.cases[2].status = store::CaseStatus::failed;
  EXPECT_EQ(open(summarise(change)), 0);
  EXPECT_FALSE(warns(summarise(change), "unresolved after"));
}

TEST_F(SummaryTest, AnUnresolvedCaseMayStillBeProvenFasterOrSlower) {
  const auto with = [&](double seconds, double scatter, double tokens = 1000) {
    store::Result result = sweep(12, {"a=1"}, [&](int c, int round) {
      return c == 2 ? seconds * (1 + scatter * (5 * round % 7 - 3)) : 1 + 1e-4 * ((3 * c + round) % 5);
    });
    result.cases[2].tokens_per_step = tokens;
    return summarise(result);
  };
  const Summary slower = with(1.012, 0.003), faster = with(1 / 1.012, 0.003), neither = with(1.006, 0.01);
  for (const Summary* summary : {&slower, &faster, &neither}) {
    ASSERT_EQ(summary->cases[2].effect->verdict, Verdict::unresolved);
  }
  EXPECT_TRUE(warns(slower, "the direction is known at 95 %: a=1 takes more time. Whether the change exceeds +1 % or"));
  EXPECT_TRUE(warns(faster, "the direction is known at 95 %: a=1 takes less time."));
  EXPECT_FALSE(warns(neither, "the direction is known"));
  EXPECT_TRUE(warns(with(2 / 1.012, 0.003, 2000), "a=1 takes less time per token."));
}

TEST_F(SummaryTest, TheLastLossIsTheMeanOverBlocks) {
  store::Result result = ordinary(2);
  result.losses[0].back() = 2.5f;
  result.losses[result.cases.size()].back() = 3.5f;
  EXPECT_DOUBLE_EQ(summarise(result).cases[0].last_loss, 3);
}

TEST_F(SummaryTest, ARequestThatNcclDidNotFollowHasNoVerdict) {
  store::Result result = ordinary();
  result.nccl_facts.push_back({2, "not honoured", "nccl_algo=AllReduce:Tree: NCCL ran AllReduce with Ring"});
  result.nccl_facts.push_back({3, "not confirmed", "NCCL_CROSS_NIC=2: nothing in the log says"});
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.cases[2].effect->verdict, Verdict::not_honoured);
  EXPECT_THAT(summary.cases[2].reason, HasSubstr("NCCL ran AllReduce with Ring"));
  EXPECT_NE(summary.cases[3].effect->verdict, Verdict::not_honoured);
  EXPECT_TRUE(summary.cases[3].reason.empty());
}

TEST_F(SummaryTest, DeviceStatisticsAreMediansOverBlocksThatHaveThem) {
  store::Result result = ordinary(3);
  result.gpu.resize(result.blocks.size());
  for (int round = 0; round < 2; ++round) {  // the third round's statistics are missing
    store::ResultGpu& row = result.gpu[static_cast<std::size_t>(round) * result.cases.size() + 2];
    row.ranks = result.ranks;
    row.together.mean_utilisation = 0.9;
    row.together.mean_sm_clock_hz = 1.5e9;
    row.together.energy_j = 600;
  }
  const Summary summary = summarise(result);
  EXPECT_DOUBLE_EQ(summary.cases[2].gpu_utilisation, 0.9);
  EXPECT_DOUBLE_EQ(summary.cases[2].tokens_per_joule, 3 * 1000 / 600.0);
  EXPECT_TRUE(std::isnan(summary.cases[0].gpu_utilisation));
  EXPECT_TRUE(std::isnan(summary.cases[2].power_w));
  for (store::ResultGpu& row : result.gpu) row.ranks = result.ranks - 1;  // the energy of one GPU is missing
  EXPECT_TRUE(std::isnan(summarise(result).cases[2].tokens_per_joule));
}

TEST_F(SummaryTest, ThrottledRoundsAreNamedAndCount) {
  store::Result result = sweep(12, {"micro_batch_size=2"}, [](int c, int round) {
    return (c == 2 && round < 4 ? 1.03 : 1.0) * (1 + 0.004 * scatter(c, round));
  });
  EXPECT_TRUE(summarise(result).throttled_rounds.empty());
  result.gpu.resize(result.blocks.size());
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const int round = result.blocks[i].round;
    // Two rounds show throttling by their clock, two by NVML's reason. Neither a GPU at its power limit is unusual, nor
    // a case that draws more power than another and has lower clocks.
    const double usual = result.blocks[i].case_index == 2 ? 1.4e9 : 1.7e9;
    result.gpu[i].together.mean_sm_clock_hz = (round < 2 ? 0.8 : 1.0) * usual;
    result.gpu[i].throttling = round == 2 || round == 3 ? "power cap, software thermal slowdown" : "power cap";
  }
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.throttled_rounds, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(summary.cases[2].effect->rounds, 12);
  EXPECT_TRUE(warns(summary, "throttled"));
  EXPECT_TRUE(warns(summary, "in 4 of 12 rounds"));
  for (store::ResultBlock& block : result.blocks) {
    if (block.round >= 6) block.status = store::BlockStatus::pending;
  }
  result.state = store::RunState::partial;
  EXPECT_TRUE(warns(summarise(result), "in 4 of 6 rounds"));
}

TEST_F(SummaryTest, ALostBlockIsNamedAndCountsOnlyIfItCostAVerdict) {
  store::Result result = ordinary();
  EXPECT_TRUE(summarise(result).lost.empty());
  const auto lose = [&](int round, int of) {
    block(result, round, of).status = store::BlockStatus::failed;
    block(result, round, of).reason = "rank 1 on vm: worker killed by signal 9 (kill)";
  };
  lose(3, 2);
  Summary summary = summarise(result);
  ASSERT_EQ(summary.lost.size(), 1u);
  EXPECT_EQ(summary.lost[0].case_index, 2);
  EXPECT_EQ(summary.lost[0].round, 3);
  EXPECT_EQ(exit_code(summary), 0);
  for (int round = 4; round < 12; ++round) lose(round, 2);  // three rounds are left
  summary = summarise(result);
  EXPECT_EQ(exit_code(summary), 4);
  // Blocks lost by the baseline count for all cases. A failed case is reported as failed instead.
  result = ordinary(4);
  lose(0, 0);
  lose(0, 1);
  EXPECT_EQ(exit_code(summarise(result)), 4);
  result = ordinary();
  lose(3, 2);
  result.cases[2].status = store::CaseStatus::failed;
  EXPECT_TRUE(summarise(result).lost.empty());
}

// Steps of 10 all-reduces of 1000 bytes over 4 ranks: 1 s without drift, so 1.5 * 10 kB/s on the bus.
TEST_F(SummaryTest, CollectivesHaveRatesAndALimit) {
  store::Result result =
      sweep(12, {"message_size=2 kB", "nccl_algo=Tree"}, [](int c, int) { return c == 2 ? 1.5 : 1.0; });
  for (store::ResultCase& row : result.cases) row.tokens_per_step = row.model_flop_per_step = 0;
  for (int c = 0; c < 4; ++c) result.points.push_back({c, "all_reduce", 10, c == 2 ? 2000.0 : 1000.0, 1.5, 0, ""});
  const auto before = summarise(result);
  ASSERT_TRUE(before.cases[0].rates);
  EXPECT_NEAR(before.cases[0].rates->operation_seconds, 0.1, 1e-6);
  EXPECT_NEAR(before.cases[0].rates->algorithm_bytes_per_s, 10e3, 0.1);
  EXPECT_NEAR(*before.cases[0].rates->bus_bytes_per_s, 15e3, 0.1);
  EXPECT_FALSE(before.cases[0].rates->limit_bytes_per_s);
  // Twice the bytes in 1.5 times the time is faster.
  EXPECT_EQ(before.cases[2].effect->verdict, Verdict::faster);
  EXPECT_NEAR(before.cases[2].effect->ratio, 0.75, 1e-6);
  EXPECT_EQ(before.cases[3].effect->verdict, Verdict::same);

  for (store::ResultPoint& point : result.points) {
    point.limit_bytes_per_s = 16e3;
    point.limit_source = "the data sheet";
  }
  const auto after = summarise(result);
  EXPECT_FALSE(after.cases[0].rates->impossible);
  EXPECT_TRUE(after.cases[2].rates->impossible);  // 20 kB/s
  EXPECT_EQ(after.cases[2].effect->verdict, Verdict::none);
  EXPECT_TRUE(warns(after, "impossible: message_size=2 kB reaches"));
  EXPECT_TRUE(warns(after, "the data sheet"));
}

TEST_F(SummaryTest, OnlyAStatedPeakIsALimitOfProducts) {
  store::Result result = sweep(6, {"gemm=small"}, [](int, int) { return 0.1; });  // 20e9 FLOP/s of 4e9
  for (store::ResultCase& row : result.cases) row.tokens_per_step = 0;
  for (int c = 0; c < 3; ++c) result.points.push_back({c, "gemm", 10, 1000, 0, 0, ""});
  result.peak_source = "measured: once";
  EXPECT_FALSE(summarise(result).cases[2].rates->impossible);
  result.peak_source = "given in the configuration (peak_flops)";
  EXPECT_TRUE(summarise(result).cases[2].rates->impossible);
}

TEST_F(SummaryTest, AFileWithoutAnyBlockIsNotACrash) {
  store::Result result = ordinary();
  for (auto& row : result.blocks) row.status = store::BlockStatus::pending;
  const Summary summary = summarise(result);
  EXPECT_TRUE(summary.partial);
  EXPECT_TRUE(std::isnan(summary.cases[0].step_seconds));
  EXPECT_FALSE(summary.control.has_value());
  EXPECT_TRUE(std::isnan(summary.noise));
  EXPECT_TRUE(summarise(store::Result{}).cases.empty());
}

}  // namespace
}  // namespace harness::analysis
