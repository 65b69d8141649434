// Which blocks of a round share a process, and what those are compared with that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "small_experiment.h"

namespace harness::plan {
namespace {

using test::add_change;
using test::small_experiment;

int processes_of(const Plan& plan) {
  std::set<int> processes;
  for (const Slot& slot : plan.schedule) processes.insert(slot.process);
  return static_cast<int>(processes.size());
}

config::Experiment sizes() {
  config::Experiment e = small_experiment();
  e.baseline.workload = "collective";
  add_change(e, "message_size", "1 MiB");
  add_change(e, "precision", "bf16");
  return e;
}

// The names of the cases that share each process of a plan.
std::vector<std::set<std::string>> sets_of_blocks(const Plan& plan) {
  std::map<int, std::set<std::string>> by_process;
  for (const Slot& slot : plan.schedule) by_process[slot.process].insert(plan.cases[slot.case_index].name);
  std::vector<std::set<std::string>> sets;
  for (const auto& [process, set] : by_process) sets.push_back(set);
  return sets;
}

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedCase& planned : plan.cases) names.push_back(planned.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Processes, OfAnOperationARoundHasOne) {
  const Plan shared = make_plan(sizes(), 4);
  EXPECT_EQ(processes_of(shared), 4);
  for (const Slot& slot : shared.schedule) EXPECT_EQ(slot.process, slot.round * 4);
  EXPECT_EQ(names_of(shared), (Names{"baseline", "baseline_again", "message_size=1 MiB", "precision=bf16"}));
}

TEST(Processes, CasesThatNeedTheirOwnAreSetsOfTheirOwnWithABaseline) {
  for (const auto& [variable, value] : {std::pair("layout", "{tensor_parallel: 2}"), std::pair("threads", "2")}) {
    config::Experiment e = sizes();
    add_change(e, variable, value);
    const Plan plan = make_plan(e, 4);
    const std::string alone = config::case_name(e.changes.back());
    EXPECT_EQ(names_of(plan),
              (Names{"baseline", "baseline_again", "baseline_alone", "message_size=1 MiB", "precision=bf16", alone}));
    std::vector<std::size_t> references;
    for (const PlannedCase& planned : plan.cases) references.push_back(planned.reference);
    EXPECT_EQ(references, (std::vector<std::size_t>{0, 0, 2, 0, 0, 2}));
    EXPECT_EQ(plan.cases[2].settings.workload, "collective");
    EXPECT_EQ(processes_of(plan), 4 * 3) << variable;
    const std::set<std::string> company{"baseline", "baseline_again", "message_size=1 MiB", "precision=bf16"};
    for (const std::set<std::string>& set : sets_of_blocks(plan))
      EXPECT_THAT(set, ::testing::AnyOf(company, std::set{alone}, std::set<std::string>{"baseline_alone"}));
    // The blocks of a process follow each other, and it is numbered by the first.
    for (std::size_t i = 0; i < plan.schedule.size(); ++i) {
      const bool first = plan.schedule[i].process == static_cast<int>(i);
      EXPECT_TRUE(first || plan.schedule[i].process == plan.schedule[i - 1].process) << i;
    }
  }
}

// Each set once at every place, over as many rounds as there are sets; within its set each case likewise.
TEST(Processes, SetsAndTheCasesInThemAreBalanced) {
  config::Experiment e = sizes();
  add_change(e, "threads", "2");
  add_change(e, "threads", "3");
  e.measure.rounds = 4;  // of four sets, one of which has four cases
  const Plan plan = make_plan(e, 4);
  std::map<std::string, std::set<int>> places, within;
  std::map<int, std::map<int, int>> next;  // round → process → blocks so far
  for (const Slot& slot : plan.schedule) {
    auto& processes = next[slot.round];
    const int in_process = processes[slot.process]++;
    places[plan.cases[slot.case_index].name].insert(static_cast<int>(processes.size()));
    within[plan.cases[slot.case_index].name].insert(in_process);
  }
  for (const auto& [name, of_case] : places) EXPECT_EQ(of_case.size(), 4u) << name;
  for (const char* name : {"baseline", "baseline_again", "precision=bf16"}) EXPECT_EQ(within[name].size(), 4u) << name;
}

TEST(Processes, OneForEachBlockWhereAllCasesNeedOneOrACommandDoes) {
  config::Experiment e = small_experiment();
  e.baseline.workload = "collective";
  add_change(e, "threads", "2");
  EXPECT_EQ(names_of(make_plan(e, 4)), (Names{"baseline", "baseline_again", "threads=2"}));
  EXPECT_EQ(processes_of(make_plan(e, 4)), 4 * 3);
  e = sizes();
  EXPECT_EQ(processes_of(make_plan(e, 4, {}, Processes::one_per_block)), 4 * 4);
  add_change(e, "threads", "2");
  EXPECT_EQ(processes_of(make_plan(e, 4, {}, Processes::one_per_block)), 4 * 5);
  // The fixes of a ladder are compared with each other, whatever they need.
  e.ladder = {{"message_size=1 MiB", "message_size=1 MiB"}, {"threads=2", "threads=2"}};
  EXPECT_EQ(processes_of(make_plan(e, 4)), 4 * 5);
}

TEST(Processes, ABaselineAloneIsOnlyThereForCasesThatRun) {
  config::Experiment e = sizes();
  add_change(e, "threads", "2");
  EXPECT_EQ(names_of(make_plan(e, 4, {"message_size"})), (Names{"baseline", "baseline_again", "message_size=1 MiB"}));
  EXPECT_EQ(names_of(make_plan(e, 4, {"threads"})), (Names{"baseline", "baseline_again", "threads=2"}));
  EXPECT_EQ(names_of(make_plan(e, 4, {"baseline_alone", "message_size", "threads"})).size(), 5u);
  Plan plan = make_plan(e, 4);
  plan.cases.back().impossible = "it does not fit";
  schedule_blocks(plan);
  EXPECT_FALSE(plan.cases[2].is_possible());
  EXPECT_EQ(processes_of(plan), 4);
}

TEST(Processes, OfATrainingStepEveryBlockHasItsOwn) {
  config::Experiment e = small_experiment();
  add_change(e, "precision", "bf16");
  add_change(e, "threads", "2");
  EXPECT_EQ(processes_of(make_plan(e, 1)), 4 * 4);
  EXPECT_EQ(names_of(make_plan(e, 1)), (Names{"baseline", "baseline_again", "precision=bf16", "threads=2"}));
}

}  // namespace
}  // namespace harness::plan
