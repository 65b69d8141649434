#include "job/environment.h"
#include "config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/registry.h"

namespace harness::job {
namespace {

using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

TEST(Environment, WhatIsRecordedIsAnAllowList) {
  const NameValues all = {{"NCCL_ALGO", "Ring"},
                          {"HOME", "/root"},
                          {"AWS_SECRET_ACCESS_KEY", "x"},
                          {"OMPI_MCA_btl", "tcp,self"},
                          {"OMPI_MCA_orte_hnp_uri", "1.2.3.4"},
                          {"SLURM_JOB_ID", "7"},
                          {"SLURM_JOB_USER", "me"},
                          {"OMP_PLACES", "cores"},
                          {"HARNESS_RANK", "3"},
                          {"HARNESS_CALLED", "./harness"}};
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
  experiment.baseline.nccl = {{"nccl_buffsize", "4 MiB"}, {"nccl_collnet", "false"}};
  EXPECT_TRUE(contradictions({{"NCCL_BUFFSIZE", "4194304"}, {"NCCL_COLLNET_ENABLE", "0"}}, experiment).empty());
  const auto lines = contradictions({{"NCCL_COLLNET_ENABLE", "1"}}, experiment);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("nccl_collnet: false"));
}

}  // namespace
}  // namespace harness::job
