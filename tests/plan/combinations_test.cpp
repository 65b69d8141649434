#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/experiment.h"
#include "support/files.h"

namespace harness::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CombinationsTest : public ::testing::Test {
 protected:
  Plan planned(const std::string& rest, int ranks = 8, const std::vector<std::string>& overrides = {}) {
    const std::string path = folder_.write("combinations.yaml", R"(name: combinations
backend: sim
hardware: h100-sxm
model: gpt3-125m
baseline: {precision: bf16, micro_batch_size: 1, global_batch_size: 64}
)" + rest);
    return make_plan(config::load_experiment(path, overrides), ranks);
  }

  test::TemporaryFolder folder_;
};

std::vector<std::string> names_of(const Combinations& combinations) {
  std::vector<std::string> names;
  for (const Values& v : combinations.variables()) names.push_back(v.variable->name);
  return names;
}

TEST_F(CombinationsTest, AreAllOfTheValuesThatCasesGive) {
  const Plan plan = planned(
      "sweep: {nccl_proto: [AllReduce:Simple], micro_batch_size: [2, 4], ranks: [4], global_batch_size: [128]}\n"
      "combine: [{overlap_grad_reduce: false, micro_batch_size: 8}]\n");
  const Combinations combinations(plan);
  // What the environment alone hears of changes fastest, and follows.
  EXPECT_THAT(names_of(combinations), ElementsAre("micro_batch_size", "overlap_grad_reduce", "nccl_proto"));
  EXPECT_THAT(combinations.variables()[0].values, ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(combinations.left_out(), ElementsAre("global_batch_size", "ranks"));
  EXPECT_EQ(combinations.count(), 16);
  std::set<std::string> names;
  Choice choice = combinations.first();
  do names.insert(combinations.planned(choice).name);
  while (combinations.next(choice));
  EXPECT_EQ(names.size(), 16);
  EXPECT_TRUE(names.contains("baseline"));
  EXPECT_TRUE(names.contains("micro_batch_size=8 + overlap_grad_reduce=false + nccl_proto=AllReduce:Simple"));
}

TEST_F(CombinationsTest, TakeTheSettingsOfFixesApartAndAddUpWhatTheyMend) {
  const Plan plan = planned(
      "faults: {socket_fallback: true, no_gpudirect: true}\n"
      "ladder:\n"
      "  - network: {mended: socket_fallback}\n"
      "  - GPUDirect: {mended: no_gpudirect}\n"
      "  - overlap: {overlap_grad_reduce: false, bucket_size: 100 MiB}\n");
  const Combinations combinations(plan);
  EXPECT_THAT(names_of(combinations), ElementsAre("overlap_grad_reduce", "bucket_size", "mended"));
  EXPECT_THAT(combinations.variables()[2].values,
              ElementsAre("none", "socket_fallback", "no_gpudirect", "socket_fallback, no_gpudirect"));
  EXPECT_EQ(combinations.planned({0, 0, 3}).settings.mended.size(), 2);
}

TEST_F(CombinationsTest, SayWhatCannotRunAndWhatIsInVain) {
  const Plan plan = planned("sweep: {layout: [{tensor_parallel: 4}, {tensor_parallel: 8}], rank_order: [dp-tp-pp]}\n");
  const Combinations combinations(plan);
  ASSERT_THAT(names_of(combinations), ElementsAre("layout", "rank_order"));
  EXPECT_TRUE(combinations.planned({1, 1}).is_possible());
  EXPECT_THAT(combinations.planned({1, 1}).notes, ElementsAre());
  EXPECT_THAT(combinations.planned({0, 1}).notes, ElementsAre(HasSubstr("rank_order has no effect")));
  EXPECT_TRUE(combinations.planned({0, 1}).is_alike);
  EXPECT_THAT(combinations.planned({2, 0}).impossible, HasSubstr("12"));  // heads are not divided by 8
}

// A value that does nothing by itself is still another step where the baseline's value does something.
TEST_F(CombinationsTest, ToTakeAnEffectAwayIsOne) {
  const Plan plan = planned("sweep: {recompute: [selective]}\n", 8, {"baseline.recompute=full"});
  const Combinations combinations(plan);
  const PlannedCase selective = combinations.planned({1});
  EXPECT_FALSE(selective.is_alike);
  EXPECT_THAT(selective.notes, ElementsAre(HasSubstr("recompute=selective does nothing here, unlike full: ")));
}

}  // namespace
}  // namespace harness::plan
