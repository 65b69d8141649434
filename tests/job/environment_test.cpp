#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "config/registry.h"
#include "job/job.h"

namespace harness::job {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

TEST(Environment, TheFreeMapIsGiven) {
  config::Settings settings;
  settings.nccl["nccl_algo"] = "Ring";
  settings.env = {{"NCCL_IB_TIMEOUT", "22"}, {"ZED", ""}};
  EXPECT_EQ(config::environment_of(settings),
            (NameValues{{"NCCL_ALGO", "Ring"}, {"NCCL_IB_TIMEOUT", "22"}, {"ZED", ""}}));
}

std::vector<std::string> lines_of(const NameValues& environment, const config::Settings& baseline,
                                  const std::vector<config::Change>& changes = {}) {
  config::Experiment experiment;
  experiment.baseline = baseline;
  experiment.changes = changes;
  return contradictions(environment, experiment);
}

TEST(Environment, ContradictionsWithTheConfigurationAreFound) {
  config::Settings none, ring, tree, timeout_20, timeout_22;
  ring.nccl["nccl_algo"] = "Ring";
  tree.nccl["nccl_algo"] = "Tree";
  timeout_20.env = {{"NCCL_IB_TIMEOUT", "20"}};
  timeout_22.env = {{"NCCL_IB_TIMEOUT", "22"}};
  const NameValues algorithm = {{"NCCL_ALGO", "Ring"}}, timeout = {{"NCCL_IB_TIMEOUT", "20"}};
  EXPECT_THAT(lines_of({}, tree), IsEmpty());
  for (const config::Settings& settings : {none, ring}) EXPECT_THAT(lines_of(algorithm, settings), IsEmpty());
  for (const config::Settings& settings : {none, timeout_20}) EXPECT_THAT(lines_of(timeout, settings), IsEmpty());
  EXPECT_THAT(lines_of(algorithm, tree), ElementsAre(HasSubstr("NCCL_ALGO=Ring")));
  EXPECT_THAT(lines_of(timeout, timeout_22), ElementsAre(HasSubstr("the baseline says env.NCCL_IB_TIMEOUT: 22")));
  for (const char* variable : {"nccl_algo", "combine"})  // alone, or combined with others
    EXPECT_THAT(lines_of(algorithm, none, {{variable, "Tree", tree}}), ::testing::SizeIs(1)) << variable;
  EXPECT_THAT(lines_of(timeout, none, {{"env", "{NCCL_IB_TIMEOUT: 22}", timeout_22}}),
              ElementsAre(HasSubstr("env.NCCL_IB_TIMEOUT is swept")));
}

TEST(Environment, ContradictionsCompareWhatTheLibraryReads) {
  config::Settings settings;
  settings.nccl = {{"nccl_buffsize", "4 MiB"}, {"nccl_collnet", "false"}};
  EXPECT_THAT(lines_of({{"NCCL_BUFFSIZE", "4194304"}, {"NCCL_COLLNET_ENABLE", "0"}}, settings), IsEmpty());
  EXPECT_THAT(lines_of({{"NCCL_COLLNET_ENABLE", "1"}}, settings), ElementsAre(HasSubstr("nccl_collnet: false")));
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Expectation {
  std::string environment_name;
  Pairs given;    // as written in a configuration, and the resulting value in the worker's environment
  Pairs refused;  // and the expected message
};

const std::map<std::string, Expectation> table{
    {"nccl_algo",
     {"NCCL_ALGO",
      {{"ring", "Ring"}, {"allreduce:tree,ring;allgather:ring", "AllReduce:Tree,Ring;AllGather:Ring"}},
      {{"Rign", "did you mean Ring?"}, {"1", "allowed, besides default:"}, {"Ring;Tree", "only the first entry"}}}},
    {"nccl_proto", {"NCCL_PROTO", {{"simple", "Simple"}, {"^LL128", "^LL128"}}, {{"LL182", "did you mean LL128?"}}}},
    {"nccl_min_ctas", {"NCCL_MIN_CTAS", {{"8", "8"}, {"0x10", "16"}}, {{"0", "1 to 64"}, {"010", "read this as 8"}}}},
    {"nccl_max_ctas", {"NCCL_MAX_CTAS", {{"64", "64"}}, {{"128", "1 to 64"}, {"4M", "read this as 4"}}}},
    {"nccl_buffsize",
     {"NCCL_BUFFSIZE",
      {{"4 MiB", "4194304"}, {"8388608", "8388608"}},
      {{"4M", "read this as 4"}, {"4 MB", "not a power of two"}, {"1 KiB", "from 64 KiB"}, {"2 GiB", "to 1 GiB"}}}},
    {"nccl_nvls", {"NCCL_NVLS_ENABLE", {{"0", "0"}, {"2", "2"}}, {{"3", "0 to 2"}, {"on", "read this as 0"}}}},
    {"nccl_collnet", {"NCCL_COLLNET_ENABLE", {{"true", "1"}, {"0", "0"}}, {{"2", "true, false"}}}},
    {"nccl_p2p_level",
     {"NCCL_P2P_LEVEL",
      {{"NVL", "NVL"}, {"sys", "SYS"}},
      {{"PBX", "silently ignore"}, {"PHBB", "did you mean PHB?"}, {"5", "older scale"}}}},
    {"nccl_net_gdr_level",
     {"NCCL_NET_GDR_LEVEL", {{"pxb", "PXB"}, {"LOC", "LOC"}}, {{"on", "ignore"}, {"3", "older scale"}}}}};

TEST(NcclVariables, TheTableHasEveryRow) {
  for (const config::Variable& v : config::registry()) {
    EXPECT_EQ(table.contains(v.name), v.name.starts_with("nccl_")) << v.name;
  }
}

TEST(NcclVariables, TheWorkersEnvironmentGetsWhatWasAsked) {
  for (const auto& [name, expected] : table) {
    const config::Variable* v = config::find_variable(name);
    ASSERT_NE(v, nullptr) << name;
    EXPECT_EQ(v->backends, (std::vector<config::BackendKind>{config::BackendKind::cuda})) << name;
    for (const auto& [written, text] : expected.given) {
      config::Settings s;
      v->parse(s, written);
      const NameValues wanted = config::environment_of(s);
      EXPECT_EQ(wanted, (NameValues{{expected.environment_name, text}})) << name << ": " << written;
      // The supervisor's own value does not override it.
      const NameValues own{{expected.environment_name, "inherited"}};
      EXPECT_EQ(worker_environment(own, own, {}, wanted), wanted) << name;
      v->parse(s, "Default");
      EXPECT_TRUE(config::environment_of(s).empty()) << name;
    }
  }
}

TEST(NcclVariables, WhatNcclWouldMisreadIsRefused) {
  for (const auto& [name, expected] : table) {
    for (const auto& [written, reason] : expected.refused) {
      config::Settings s;
      try {
        config::find_variable(name)->parse(s, written);
        ADD_FAILURE() << name << " took " << written << " as " << config::find_variable(name)->print(s);
      } catch (const Error& e) {
        EXPECT_THAT(std::string(e.what()), HasSubstr(reason)) << name << ": " << written << ": " << e.what();
      }
      EXPECT_EQ(s, config::Settings()) << name << ": " << written;
    }
  }
}

}  // namespace

}  // namespace harness::job
