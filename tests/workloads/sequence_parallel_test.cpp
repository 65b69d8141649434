#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpt_jobs.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/lower.h"
#include "program/saved.h"
#include "small_gpt.h"
#include "workloads/gpt/parameters.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

Job dividing(int tp, int pp, int dp = 1, int micro_batches = 3) {
  Job j = job(small_gpt, tp, pp, dp, micro_batches, small_batch);
  j.settings.precision = config::Precision::bf16;
  j.settings.sequence_parallel = true;
  return j;
}

// Korthikanti et al. 2022, section 4.2.2: where an all-reduce stood in a layer's forward or backward pass stand a
// reduce-scatter and an all-gather, and a product gathers its input once more for its weight gradient. The embedding
// scatters its sum and gathers its gradient; the head gathers its input twice and scatters its input gradient. The loss
// still sums three numbers per row.
TEST(SequenceParallel, TrafficEqualsClosedFormula) {
  const int m = 3, l = 4;
  for (const int t : {2, 4}) {
    const auto set = build(dividing(t, 1, 1, m));
    const auto gather = traffic_of(set, 0, "tensor", "all_gather"),
               scatter = traffic_of(set, 0, "tensor", "reduce_scatter");
    EXPECT_EQ(gather.messages, m * (6 * l + 3));
    EXPECT_EQ(scatter.messages, m * (4 * l + 2));
    EXPECT_EQ(gather.bytes, static_cast<double>(gather.messages * small_stream));
    EXPECT_EQ(scatter.bytes, static_cast<double>(scatter.messages * small_stream));
  }
}

TEST(SequenceParallel, FullRecomputationRepeatsTheCollectivesOfALayersForwardPass) {
  const int m = 3, l = 4;
  Job j = dividing(2, 1, 1, m);
  j.settings.recompute = config::Recompute::full;
  const auto set = build(j);
  EXPECT_EQ(traffic_of(set, 0, "tensor", "all_gather").messages, m * (8 * l + 3));
  EXPECT_EQ(traffic_of(set, 0, "tensor", "reduce_scatter").messages, m * (6 * l + 2));
}

// Of a layer two norms with two vectors each and two biases; of the final norm two vectors. Once per step, whatever the
// number of micro-batches, in one message for each layer and bucket that has some.
TEST(SequenceParallel, TheGradientsOfReplicatedVectorsAreSummedOncePerStep) {
  for (const int m : {1, 3}) {
    Job j = dividing(2, 1, 2, m);
    const auto of_the_loss = [&] { return 3 * m * 4.0 * small_rows; };
    const double vectors = (6 * 4 + 2) * 64 * 4.0;
    auto sums = traffic_of(build(j), 0, "tensor", "all_reduce");
    EXPECT_EQ(sums.messages, 3 * m + 4 + 1);
    EXPECT_EQ(sums.bytes, of_the_loss() + vectors);
    j.settings.bucket_size_bytes = 1024;  // buckets cut what lies side by side
    sums = traffic_of(build(j), 0, "tensor", "all_reduce");
    EXPECT_GT(sums.messages, 3 * m + 4 + 1);
    EXPECT_EQ(sums.bytes, of_the_loss() + vectors);
  }
}

// They are final before the replicas' reduction of their bucket reads them, and before an update does.
TEST(SequenceParallel, NoBucketIsReducedOrUpdatedBeforeTheTensorRanksSummedItsGradients) {
  for (const bool overlap : {true, false}) {
    Job j = dividing(2, 1, 2);
    j.settings.bucket_size_bytes = 16 << 10;
    j.settings.overlap_grad_reduce = overlap;
    j.settings.overlap_optimizer = true;
    const program::Program p = build(j).roles[0];
    int sums = 0;
    std::vector<program::View> reduced;
    for (const program::Operation& op : p.step) {
      if (op.label.phase != program::Phase::gradient_sync) continue;
      const program::View& data = std::get<program::AllReduce>(op.action).data;
      if (op.stream == tensor_stream) {
        ++sums;
        for (const program::View& v : reduced) EXPECT_FALSE(program::overlap(v, data));
      } else {
        reduced.push_back(data);
      }
    }
    EXPECT_GT(sums, 4);
    EXPECT_GT(reduced.size(), 2u);
  }
}

TEST(SequenceParallel, StagesExchangeTheirOwnRows) {
  const auto set = build(dividing(2, 2));
  const auto up = traffic_of(set, 0, "pipeline+1", "send");
  EXPECT_EQ(up.messages, 3);
  EXPECT_EQ(up.bytes, 3.0 * small_stream / 2);
}

// Korthikanti et al. 2022, equation 4 without scores and without dropout masks: 32 s b h / t for each layer. What they
// leave out as small is here: mean and deviation of each own row for two norms, and a number per row and head.
TEST(SequenceParallel, DividesAllThatALayerKeeps) {
  for (const int t : {2, 4}) {
    const auto bytes = program::saved_bytes(build(dividing(t, 1)).roles[0]);
    const std::int64_t stats = 4 * small_rows * (2 * 2 + small_gpt.heads) / t;
    for (int layer = 1; layer < 4; ++layer) {
      EXPECT_EQ(bytes.at({0, layer}), 32 * small_rows * small_gpt.hidden / t + stats) << t;
    }
    Job j = dividing(t, 1);
    j.settings.recompute = config::Recompute::full;
    EXPECT_EQ(program::saved_bytes(build(j).roles[0]).at({0, 1}), small_stream / t);
  }
}

// What is short-lived has other sizes than what is kept, and runs on two streams: neither may leave holes that nothing
// fits into.
TEST(SequenceParallel, TheArenaShrinksByWhatIsDivided) {
  const auto bytes = [](bool divided, config::Recompute recompute) {
    Job j = dividing(2, 1, 1, 1);
    j.model.layers = 16;
    j.settings.sequence_parallel = divided;
    j.settings.recompute = recompute;
    const program::Program p = build(j).roles[0];
    std::int64_t kept = 0;
    for (const auto& [pass, n] : program::saved_bytes(p)) kept += n;
    return std::pair(program::plan_arena(p).transient_bytes, kept);
  };
  for (const config::Recompute recompute : {config::Recompute::none, config::Recompute::full}) {
    const auto [whole, kept_whole] = bytes(false, recompute);
    const auto [own, kept_own] = bytes(true, recompute);
    EXPECT_GT(static_cast<double>(whole - own), 0.8 * static_cast<double>(kept_whole - kept_own));
  }
}

TEST(SequenceParallel, OnOneTensorRankTheProgramIsTheSame) {
  Job j = dividing(1, 2, 2);
  const auto with = program::hash(build(j));
  j.settings.sequence_parallel = false;
  EXPECT_EQ(program::hash(build(j)), with);
}

TEST(SequenceParallel, FirstValuesDoNotDependOnIt) {
  Job j = dividing(2, 2);
  std::map<std::string, std::int64_t> first_index;
  for (const auto& p : gpt::parameters(j.model, j.settings, j.layout, 1)) first_index[p.name] = p.first_index;
  j.settings.sequence_parallel = false;
  for (const auto& p : gpt::parameters(j.model, j.settings, j.layout, 1)) {
    EXPECT_EQ(first_index.at(p.name), p.first_index) << p.name;
  }
}

TEST(SequenceParallel, VerifiesByRoleAndByRank) {
  for (const auto& [tp, pp, dp] : {std::array{2, 1, 1}, std::array{2, 2, 2}, std::array{4, 4, 1}}) {
    for (const config::Recompute recompute : {config::Recompute::none, config::Recompute::full}) {
      Job j = dividing(tp, pp, dp);
      j.settings.recompute = recompute;
      j.settings.overlap_optimizer = true;
      const auto set = build(j);
      EXPECT_EQ(texts(program::verify(set)), "");
      EXPECT_EQ(texts(program::verify(program::expand(set))), "");
      EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
    }
  }
}

TEST(SequenceParallel, RowsThatDoNotDivideAreRefused) {
  Job j = dividing(4, 1);
  const Workload& gpt = workload_of(j.settings);
  EXPECT_EQ(gpt.why_impossible(j.model, j.settings), "");
  j.model.sequence = 31;
  EXPECT_THAT(gpt.why_impossible(j.model, j.settings),
              HasSubstr("sequence_parallel: tensor_parallel 4 does not divide the 62 rows of a micro-batch"));
  j.settings.sequence_parallel = false;
  EXPECT_EQ(gpt.why_impossible(j.model, j.settings), "");
}

}  // namespace
}  // namespace harness::workloads
