#include "launch/environment.h"
#include "config/case_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/registry.h"
#include "launch/identity.h"
#include "launch/launcher.h"
#include "support/errors.h"

namespace harness::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

Lookup lookup_in(Map map) {
  return [map = std::move(map)](const char* name) -> std::optional<std::string> {
    const auto at = map.find(name);
    return at == map.end() ? std::nullopt : std::optional(at->second);
  };
}

TEST(Environment, WhatIsRecordedIsAnAllowList) {
  const NameValues all = {{"NCCL_ALGO", "Ring"},
                          {"HOME", "/root"},
                          {"AWS_SECRET_ACCESS_KEY", "x"},
                          {"OMPI_MCA_btl", "tcp,self"},
                          {"OMPI_MCA_orte_hnp_uri", "1.2.3.4"},
                          {"SLURM_JOB_ID", "7"},
                          {"SLURM_JOB_USER", "me"},
                          {"OMP_PLACES", "cores"},
                          {"HARNESS_RANK", "3"}};
  EXPECT_EQ(recorded_environment(all),
            (NameValues{
                {"NCCL_ALGO", "Ring"}, {"OMPI_MCA_btl", "tcp,self"}, {"OMP_PLACES", "cores"}, {"SLURM_JOB_ID", "7"}}));
}

TEST(Environment, AWorkerGetsRankZerosTuningAndNoLauncher) {
  const NameValues own = {{"PATH", "/bin"},         {"NCCL_ALGO", "Tree"},         {"NCCL_DEBUG", "INFO"},
                          {"PMIX_RANK", "3"},       {"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_PROCID", "3"},
                          {"MPI_LOCALRANKID", "1"}, {"CUDA_VISIBLE_DEVICES", "1"}};
  const NameValues rank0 = {
      {"NCCL_ALGO", "Ring"}, {"OMP_NUM_THREADS", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_JOB_ID", "9"}};
  const NameValues got = worker_environment(own, rank0, {{"OMP_NUM_THREADS", "4"}}, {{"NCCL_PROTO", "LL"}});
  const Map expected = {{"PATH", "/bin"},
                        {"NCCL_ALGO", "Ring"},
                        {"CUDA_VISIBLE_DEVICES", "1"},
                        {"OMP_NUM_THREADS", "4"},
                        {"NCCL_PROTO", "LL"}};
  EXPECT_EQ(Map(got.begin(), got.end()), expected);
}

const config::Variable* variable_with_environment() {
  for (const config::Variable& v : config::registry()) {
    if (!v.environment_name.empty()) return &v;
  }
  return nullptr;
}

TEST(Environment, ContradictionsWithTheConfigurationAreFound) {
  const config::Variable* v = variable_with_environment();
  ASSERT_NE(v, nullptr);
  const NameValues environment = {{v->environment_name, "Ring"}};
  config::Experiment experiment;
  EXPECT_TRUE(contradictions(environment, experiment).empty());
  experiment.baseline.nccl[v->name] = "Ring";
  EXPECT_TRUE(contradictions(environment, experiment).empty());
  experiment.baseline.nccl[v->name] = "Tree";
  ASSERT_EQ(contradictions(environment, experiment).size(), 1u);
  EXPECT_THAT(contradictions(environment, experiment)[0], HasSubstr(v->environment_name + "=Ring"));
  EXPECT_TRUE(contradictions({}, experiment).empty());
  experiment.baseline.nccl.clear();
  config::Change change{v->name, "Tree", {}};
  change.settings.nccl[v->name] = "Tree";
  experiment.changes = {change};
  EXPECT_EQ(contradictions(environment, experiment).size(), 1u);
  experiment.changes[0].variable = "combine";  // together with others
  EXPECT_EQ(contradictions(environment, experiment).size(), 1u);
  EXPECT_EQ(config::environment_of(config::Settings{}), NameValues{});
  config::Settings settings;
  settings.nccl[v->name] = "Tree";
  EXPECT_EQ(config::environment_of(settings), (NameValues{{v->environment_name, "Tree"}}));
}

TEST(Environment, TheFreeMapIsGivenAndCompared) {
  config::Settings settings;
  settings.nccl["nccl_algo"] = "Ring";
  settings.env = {{"NCCL_IB_TIMEOUT", "22"}, {"ZED", ""}};
  EXPECT_EQ(config::environment_of(settings),
            (NameValues{{"NCCL_ALGO", "Ring"}, {"NCCL_IB_TIMEOUT", "22"}, {"ZED", ""}}));

  config::Experiment experiment;
  const NameValues environment = {{"NCCL_IB_TIMEOUT", "20"}};
  EXPECT_TRUE(contradictions(environment, experiment).empty());
  experiment.baseline.env = {{"NCCL_IB_TIMEOUT", "20"}};
  EXPECT_TRUE(contradictions(environment, experiment).empty());
  experiment.baseline.env = {{"NCCL_IB_TIMEOUT", "22"}};
  ASSERT_EQ(contradictions(environment, experiment).size(), 1u);
  EXPECT_THAT(contradictions(environment, experiment)[0], HasSubstr("the baseline says env.NCCL_IB_TIMEOUT: 22"));
  experiment.baseline.env.clear();
  config::Change change{"env", "{NCCL_IB_TIMEOUT: 22}", {}};
  change.settings.env = {{"NCCL_IB_TIMEOUT", "22"}};
  experiment.changes.push_back(change);
  ASSERT_EQ(contradictions(environment, experiment).size(), 1u);
  EXPECT_THAT(contradictions(environment, experiment)[0], HasSubstr("env.NCCL_IB_TIMEOUT is swept"));
}

TEST(Environment, ContradictionsCompareWhatTheLibraryReads) {
  config::Experiment experiment;
  experiment.baseline.nccl = {{"nccl_buffsize", "4 MiB"}, {"nccl_pxn", "false"}};
  EXPECT_TRUE(contradictions({{"NCCL_BUFFSIZE", "4194304"}, {"NCCL_PXN_DISABLE", "1"}}, experiment).empty());
  const auto lines = contradictions({{"NCCL_PXN_DISABLE", "0"}}, experiment);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("nccl_pxn: false"));
}

TEST(Launcher, ManyProcessesThatAreEachAloneAreAMistake) {
  const auto claim = launcher_claim(lookup_in({{"PMI_SIZE", "8"}, {"PMI_RANK", "0"}}));
  ASSERT_TRUE(claim);
  EXPECT_THAT(test::error_of([&] { check_launch(claim, 1, "Some MPI 1.0"); }),
              AllOf(HasSubstr("8 processes"), HasSubstr("Some MPI 1.0")));
  EXPECT_NO_THROW(check_launch(claim, 8, ""));
  EXPECT_NO_THROW(check_launch(std::nullopt, 1, ""));
  EXPECT_NO_THROW(
      check_launch(launcher_claim(lookup_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}})), 1, ""));
}

TEST(Launcher, OnlyTheFirstOfThemSpeaks) {
  const auto claim = launcher_claim(lookup_in({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}}));
  ASSERT_TRUE(claim);
  try {
    check_launch(claim, 1, "");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "");
  }
}

TEST(Launcher, ABatchScriptWithoutSrunIsOneProcess) {
  EXPECT_FALSE(launcher_claim(lookup_in({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}})));
}

TEST(Launcher, ShowsTheGpusOfEachTask) {
  const machine::GpuEnvironment none = gpu_environment(lookup_in({}));
  EXPECT_FALSE(none.restricted);
  const machine::GpuEnvironment own =
      gpu_environment(lookup_in({{"CUDA_VISIBLE_DEVICES", ""}, {"SLURM_LOCALID", "3"}}));
  EXPECT_TRUE(own.restricted);
  EXPECT_EQ(own.visible + own.own_task, "3");
}

TEST(Launcher, OpenMpiGivesASecondUnlessToldOtherwise) {
  EXPECT_EQ(seconds_until_sigkill(lookup_in({})), 0);
  EXPECT_EQ(seconds_until_sigkill(lookup_in({{"OMPI_COMM_WORLD_SIZE", "2"}})), 1);
  EXPECT_EQ(
      seconds_until_sigkill(lookup_in({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_odls_base_sigkill_timeout", "60"}})),
      60);
}

TEST(Identity, WhoDiffersIsNamed) {
  std::vector<RankPlace> places(4);
  for (std::size_t i = 0; i < 4; ++i) places[i].host = "node" + std::to_string(i / 2);
  const NameValues usual = {{"oneDNN", "3.1"}, {"CPU", "x"}};
  EXPECT_TRUE(compare_identities({usual, usual, usual, usual}, places).empty());
  EXPECT_TRUE(compare_identities({}, places).empty());
  const auto lines = compare_identities({usual, usual, usual, {{"oneDNN", "2.6.3"}}}, places);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "CPU: x on 3 ranks, but absent on rank 3 (node1)");
  EXPECT_EQ(lines[1], "oneDNN: 3.1 on 3 ranks, but 2.6.3 on rank 3 (node1)");
}

TEST(Identity, RankZeroWinsATieAndLongListsAreCut) {
  const auto tie = compare_identities({{{"a", "2"}}, {{"a", "1"}}}, std::vector<RankPlace>(2));
  ASSERT_EQ(tie.size(), 1u);
  EXPECT_EQ(tie[0].substr(0, 17), "a: 2 on 1 ranks, ");
  std::vector<NameValues> many(40, NameValues{{"a", "1"}});
  for (std::size_t i = 25; i < 40; ++i) many[i][0].second = "2";
  const auto lines = compare_identities(many, std::vector<RankPlace>(40));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("rank 32"));
  EXPECT_THAT(lines[0], HasSubstr("and 7 more"));
}

}  // namespace
}  // namespace harness::launch
