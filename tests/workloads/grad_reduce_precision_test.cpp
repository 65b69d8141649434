#include <gtest/gtest.h>

#include "sharded_job.h"

namespace harness::workloads {
namespace {

// Half the bytes; what is exchanged within a replica stays what it is.
TEST(GradReducePrecision, HalvesWhatReplicasSend) {
  for (const auto sharding : {config::Sharding::none, config::Sharding::optimizer}) {
    const bool whole = sharding == config::Sharding::none;
    const char* kind = whole ? "all_reduce" : "reduce_scatter";
    Job j = sharded(2, 2, 2);
    j.settings.sharding = sharding;
    j.settings.sequence_parallel = true;
    const program::ProgramSet full = build(j);
    j.settings.grad_reduce_type = program::DType::bf16;
    const program::ProgramSet half = build(j);
    for (int stage = 0; stage < 2; ++stage) {
      EXPECT_EQ(traffic_of(half, stage, "data", kind).messages, traffic_of(full, stage, "data", kind).messages);
      EXPECT_EQ(traffic_of(half, stage, "data", kind).bytes, traffic_of(full, stage, "data", kind).bytes / 2);
      EXPECT_EQ(traffic_of(half, stage, "data", kind).bytes, static_cast<double>(2 * elements_of(j, stage).flat));
      for (const char* group : {"tensor", "embedding"}) {
        EXPECT_EQ(traffic_of(half, stage, group, "all_reduce").bytes,
                  traffic_of(full, stage, group, "all_reduce").bytes);
      }
    }
  }
}

TEST(GradReducePrecision, VerifiesAndIsRefusedWithoutAnyOneOfItsWaits) {
  for (const auto sharding : {config::Sharding::none, config::Sharding::optimizer}) {
    for (const bool beside : {false, true}) {
      for (const bool overlap : {false, true}) {
        Job j = sharded(1, 2, 2);
        j.settings.sharding = sharding;
        j.settings.overlap_optimizer = beside;
        j.settings.overlap_grad_reduce = overlap;
        j.settings.grad_reduce_type = program::DType::bf16;
        const auto sound = build(j);
        EXPECT_EQ(texts(program::verify(sound)), "");
        EXPECT_EQ(texts(program::verify(program::expand(sound))), "");
        const auto of_conversion = [](const program::Operation& op, const program::Operation& /*awaited*/) {
          return std::holds_alternative<program::Convert>(op.action);
        };
        EXPECT_GE(needed_waits(sound, 0, of_conversion), 2);
      }
    }
  }
}

}  // namespace
}  // namespace harness::workloads
