// What replicas add up of each micro-batch, wherever the borders of buckets are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sharded_job.h"

namespace harness::workloads {
namespace {

using config::Sharding;

// Calls `check` with every sharding, few and many buckets and micro-batches, overlapped or not.
void each_job(const std::function<void(const Job&, const std::string& what)>& check) {
  constexpr std::int64_t in_one = 1 << 30, in_two = 400 << 10, in_many = 16 << 10;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    for (const std::int64_t bucket : {in_one, in_two, in_many}) {
      for (const int micro_batches : {1, 2, 5}) {
        for (const bool tied : {true, false}) {
          for (const bool overlap : {true, false}) {
            for (const program::DType wire : {program::DType::f32, program::DType::bf16}) {
              for (const int pipeline : {1, 2}) {
                if (pipeline > 1 && sharding > Sharding::optimizer) continue;  // refused
                Job j = sharded(1, pipeline, 2, micro_batches);
                j.model.tied_embeddings = tied;
                j.settings.sharding = sharding;
                j.settings.bucket_size_bytes = bucket;
                j.settings.overlap_grad_reduce = overlap;
                j.settings.overlap_optimizer = micro_batches == 2;
                j.settings.grad_reduce_type = wire;
                check(j, fmt::format("sharding {}, buckets of {} B, {} micro-batches, tied {}, overlap {}, {}, PP{}",
                                     static_cast<int>(sharding), bucket, micro_batches, tied, overlap,
                                     program::name_of(wire), pipeline));
              }
            }
          }
        }
      }
    }
  }
}

TEST(Sums, OfEveryShardingAndBucketAreRead) {
  std::set<std::int64_t> buckets;
  each_job([&](const Job& j, const std::string& what) {
    EXPECT_EQ(texts(program::verify(build(j))), "") << what;
    if (j.settings.sharding < Sharding::parameters) buckets.insert(elements_of(j).buckets);
  });
  EXPECT_TRUE(buckets.contains(1) && buckets.contains(2) && *buckets.rbegin() > 10);
}

// Takes an operation out of a step; who waited for it waits for what it waited for.
void take_out(program::Program& p, program::OperationId at) {
  const std::vector<program::OperationId> inherited = p.step[at].waits;
  p.step.erase(p.step.begin() + at);
  for (program::Operation& op : p.step) {
    if (std::erase(op.waits, at) > 0) op.waits.insert(op.waits.end(), inherited.begin(), inherited.end());
    for (program::OperationId& waited : op.waits) waited -= waited > at ? 1 : 0;
  }
}

// Where the sums of micro-batches are operations of their own, a step that lacks one is refused.
TEST(Sums, AreMissedWhereOneIsNotTaken) {
  int taken_out = 0;
  each_job([&](const Job& j, const std::string& what) {
    if (j.settings.sharding < Sharding::gradients || !j.settings.overlap_grad_reduce) return;
    const program::ProgramSet sound = build(j);
    const std::vector<program::Operation>& step = sound.roles[0].step;
    for (program::OperationId i = 0; std::cmp_less(i, step.size()); ++i) {
      const bool adds = std::holds_alternative<program::ResidualAdd>(step[i].action) ||
                        std::holds_alternative<program::Convert>(step[i].action);
      if (!adds || step[i].label.phase != program::Phase::gradient_sync) continue;
      program::ProgramSet lacking = sound;
      take_out(lacking.roles[0], i);
      EXPECT_NE(texts(program::verify(lacking, 1)), "") << what << ", without " << program::title(step[i]);
      ++taken_out;
    }
  });
  EXPECT_GT(taken_out, 1000);
}

}  // namespace
}  // namespace harness::workloads
