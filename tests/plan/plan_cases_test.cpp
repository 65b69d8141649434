// Cases of an operation as a grid of sizes and settings, and the blocks of a round that share a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "plan/plan.h"
#include "small_experiment.h"
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

TEST_F(CombinationsTest, HaveThePeakOfTheirPrecision) {
  const config::Experiment stated = planned("", 8, {"peak_flops=5 TFLOP/s"}).experiment;
  EXPECT_EQ(configured_peak(stated, config::Precision::bf16).flops, 5e12);
  EXPECT_EQ(configured_peak(stated, config::Precision::fp8).source.find("hardware file"), 0U);
  const config::Experiment without =
      planned("", 8, {"peak_flops=5 TFLOP/s", "backend=cuda", "hardware=none"}).experiment;
  EXPECT_EQ(configured_peak(without, config::Precision::bf16).flops, 5e12);
  EXPECT_EQ(configured_peak(without, config::Precision::fp8).flops, 0);
}

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
  // Variables that only affect the environment come last and change fastest.
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
  EXPECT_THAT(combinations.planned({2, 0}).impossible, HasSubstr("12"));  // 8 does not divide the number of heads
}

// A value without effect is still a different step if the baseline's value has an effect.
TEST_F(CombinationsTest, ToTakeAnEffectAwayIsOne) {
  const Plan plan = planned("sweep: {recompute: [selective]}\n", 8, {"baseline.recompute=full"});
  const Combinations combinations(plan);
  const PlannedCase selective = combinations.planned({1});
  EXPECT_FALSE(selective.is_alike);
  EXPECT_THAT(selective.notes, ElementsAre(HasSubstr("recompute=selective does nothing here, unlike full: ")));
}

// What has no effect depends on the number of ranks and on the other changes.
TEST_F(CombinationsTest, WhatBothValuesLackHereIsAlike) {
  const PlannedCase alone = planned("sweep: {bucket_size: [100 MiB]}\n", 1).cases.back();
  EXPECT_TRUE(alone.is_alike);
  EXPECT_THAT(alone.notes, ElementsAre(HasSubstr("bucket_size has no effect: data_parallel is 1")));
  const Plan divided = planned("sweep: {layout: [{tensor_parallel: 4}], bucket_size: [100 MiB]}\n", 4);
  EXPECT_FALSE(Combinations(divided).planned({0, 1}).is_alike);
  EXPECT_TRUE(Combinations(divided).planned({1, 1}).is_alike);
  // Without the second change, the first would be impossible: no other combination has this step.
  const Plan gathers = planned("sweep: {sharding: [none], overlap_param_gather: [false]}\n", 8,
                               {"baseline.sharding=optimizer", "baseline.overlap_param_gather=true"});
  EXPECT_TRUE(Combinations(gathers).planned({1, 1}).is_possible());
  EXPECT_FALSE(Combinations(gathers).planned({1, 1}).is_alike);
}

using test::add_change;
using test::names_of;
using test::small_experiment;
using Names = std::vector<std::string>;

config::Experiment collective() {
  config::Experiment e = small_experiment();
  e.baseline.workload = "collective";
  return e;
}

config::Experiment grid() {
  config::Experiment e = collective();
  add_change(e, "precision", "bf16");
  add_change(e, "message_size", "1 MiB");
  add_change(e, "threads", "2");
  add_change(e, "message_size", "2 MiB");
  return e;
}

int processes_of(const Plan& plan) {
  std::set<int> processes;
  for (const Slot& slot : plan.schedule) processes.insert(slot.process);
  return static_cast<int>(processes.size());
}

// Returns the names of the cases that share each process of a plan.
std::set<std::set<std::string>> sets_of_blocks(const Plan& plan) {
  std::map<int, std::set<std::string>> by_process;
  for (const Slot& slot : plan.schedule) by_process[slot.process].insert(plan.cases[slot.case_index].name);
  std::set<std::set<std::string>> sets;
  for (const auto& [process, set] : by_process) sets.insert(set);
  return sets;
}

std::set<std::string> at_all_sizes(const std::string& setting) {
  return {setting, setting + " at message_size=1 MiB", setting + " at message_size=2 MiB"};
}

TEST(Grid, EverySettingIsMeasuredAtEverySizeAndComparedThere) {
  const Plan plan = make_plan(grid(), 4);
  ASSERT_EQ(names_of(plan),
            (Names{"baseline", "baseline_again", "message_size=1 MiB", "message_size=2 MiB",
                   "baseline_again at message_size=1 MiB", "baseline_again at message_size=2 MiB", "precision=bf16",
                   "precision=bf16 at message_size=1 MiB", "precision=bf16 at message_size=2 MiB", "threads=2",
                   "threads=2 at message_size=1 MiB", "threads=2 at message_size=2 MiB"}));
  std::vector<std::size_t> references;
  for (const PlannedCase& planned : plan.cases) references.push_back(planned.reference);
  EXPECT_EQ(references, (std::vector<std::size_t>{0, 0, 2, 3, 2, 3, 0, 2, 3, 0, 2, 3}));
  EXPECT_EQ(plan.cases[8].settings.message_bytes, 2 << 20);
  EXPECT_EQ(plan.cases[8].settings.precision, config::Precision::bf16);
  EXPECT_EQ(plan.cases[8].variable, "precision");
  EXPECT_EQ(plan.cases[8].value, "bf16");
  EXPECT_EQ(plan.cases[5].settings.message_bytes, 2 << 20);
  EXPECT_TRUE(plan.cases[5].is_copy);
  EXPECT_FALSE(plan.cases[5].is_change());
}

TEST(Grid, ASettingIsAWorkerSetThatRunsAllSizes) {
  const Plan plan = make_plan(grid(), 4);
  EXPECT_EQ(processes_of(plan), 4 * 4);
  EXPECT_EQ(sets_of_blocks(plan),
            (std::set<std::set<std::string>>{{"baseline", "message_size=1 MiB", "message_size=2 MiB"},
                                             at_all_sizes("baseline_again"),
                                             at_all_sizes("precision=bf16"),
                                             at_all_sizes("threads=2")}));
  // The blocks of a process are consecutive. The first one gives the process its number.
  for (std::size_t i = 0; i < plan.schedule.size(); ++i) {
    const bool first = plan.schedule[i].process == static_cast<int>(i);
    EXPECT_TRUE(first || plan.schedule[i].process == plan.schedule[i - 1].process) << i;
  }
}

// Each set runs once at every position, over as many rounds as there are sets; each size likewise within its set.
TEST(Grid, SetsAndTheSizesInThemAreBalanced) {
  config::Experiment e = grid();
  e.measure.rounds = 12;  // four sets with three sizes each
  const Plan plan = make_plan(e, 4);
  std::map<std::string, std::map<int, int>> places, within;
  std::map<int, std::map<int, int>> next;  // round → process → blocks so far
  for (const Slot& slot : plan.schedule) {
    auto& processes = next[slot.round];
    ++within[plan.cases[slot.case_index].name][processes[slot.process]++];
    ++places[plan.cases[slot.case_index].name][static_cast<int>(processes.size())];
  }
  for (const auto& [name, of_case] : places)
    EXPECT_THAT(of_case, ::testing::ElementsAre(std::pair(1, 3), std::pair(2, 3), std::pair(3, 3), std::pair(4, 3)))
        << name;
  for (const auto& [name, of_case] : within)
    EXPECT_THAT(of_case, ::testing::ElementsAre(std::pair(0, 4), std::pair(1, 4), std::pair(2, 4))) << name;
}

TEST(Grid, HasAsManyProcessesAsSettingsUnlessEachBlockNeedsItsOwn) {
  config::Experiment sizes = collective(), settings = collective(), training = small_experiment();
  add_change(sizes, "message_size", "1 MiB");
  EXPECT_EQ(names_of(make_plan(sizes, 4)), (Names{"baseline", "message_size=1 MiB"}));  // no comparison
  EXPECT_EQ(make_plan(sizes, 4).cases[1].reference, 1u);
  EXPECT_EQ(processes_of(make_plan(sizes, 4)), 4);
  add_change(settings, "threads", "2");
  EXPECT_EQ(names_of(make_plan(settings, 4)), (Names{"baseline", "baseline_again", "threads=2"}));
  EXPECT_EQ(processes_of(make_plan(settings, 4)), 4 * 3);
  EXPECT_EQ(processes_of(make_plan(grid(), 4, {}, Processes::one_per_block)), 4 * 12);
  add_change(training, "precision", "bf16");
  add_change(training, "threads", "2");
  EXPECT_EQ(processes_of(make_plan(training, 1)), 4 * 4);
  EXPECT_EQ(names_of(make_plan(training, 1)), (Names{"baseline", "baseline_again", "precision=bf16", "threads=2"}));
}

TEST(Grid, ASelectionChoosesSizesAndSettings) {
  EXPECT_EQ(names_of(make_plan(grid(), 4, {"message_size"})),
            (Names{"baseline", "message_size=1 MiB", "message_size=2 MiB"}));
  EXPECT_EQ(names_of(make_plan(grid(), 4, {"threads"})), (Names{"baseline", "baseline_again", "threads=2"}));
  EXPECT_EQ(names_of(make_plan(grid(), 4, {"message_size=2 MiB", "precision"})),
            (Names{"baseline", "baseline_again", "message_size=2 MiB", "baseline_again at message_size=2 MiB",
                   "precision=bf16", "precision=bf16 at message_size=2 MiB"}));
}

TEST(Grid, ASizeAtWhichTheBaselineCannotRunIsNotMeasured) {
  Plan plan = make_plan(grid(), 4);
  plan.cases[3].impossible = "it does not fit";
  schedule_blocks(plan);
  for (const std::size_t at_2_mib : {5u, 8u, 11u})
    EXPECT_EQ(plan.cases[at_2_mib].impossible, "message_size=2 MiB cannot run: it does not fit");
  EXPECT_EQ(plan.schedule.size(), 4u * 8);
}

}  // namespace
}  // namespace harness::plan
