#include <unistd.h>

#include <sstream>

#include "config/registry.h"
#include "doctor/node_fixture.h"
#include "plan/plan.h"
#include "said.h"

// doctor's findings before the first round of a sweep, and the code that `--resume FILE` may make a file from elsewhere
// run.

namespace harness::cli {
namespace {

// A plan of 16 ranks that sweeps two adapter lists, one of which fits no DGX.
plan::Plan planned(const std::string& backend) {
  const config::Experiment experiment = config::load_experiment(
      shipped("16node.yaml"), {"backend=" + backend, "sweep.env=[{NCCL_IB_HCA: mlx4}, {NCCL_IB_HCA: =mlx5_0:1}]"});
  return plan::prepare(experiment, 16, {"env"});
}

struct Examined {
  Said said;
  store::DoctorRecord record;
};

// doctor's findings are printed even without progress output.
Examined examined(const plan::Plan& plan, const std::string& root, bool require_healthy, int silent = -1) {
  test::AnsweringJob job(2, 8);
  job.silent = silent;
  Examined examined;
  examined.said = outcome_of([&](std::ostream& /*out*/, std::ostream& err) {
    sweep::ProgressLine progress(err, sweep::ProgressStyle::none);
    examined.record = examine_nodes(job, plan, root, require_healthy, progress);
    return 0;
  });
  return examined;
}

TEST(SweepDoctor, HoldsEachCaseAgainstTheNodes) {
  test::Dgx tree;
  const plan::Plan plan = planned("cuda");
  const Examined healthy = examined(plan, tree.path(), true);
  EXPECT_EQ(healthy.said.err, "");
  std::vector<std::string> of_cases;
  for (const store::ResultFinding& row : healthy.record.findings) {
    if (!row.is_of_nodes())
      of_cases.push_back(plan.cases.at(static_cast<std::size_t>(row.case_index)).name + " " + row.check);
  }
  EXPECT_THAT(of_cases, ::testing::ElementsAre("env={NCCL_IB_HCA: mlx4} env.devices"));
  EXPECT_NE(healthy.record.facts, "");
}

TEST(SweepDoctor, AFailureStopsASweepOnlyWhereItIsAsked) {
  test::Dgx tree;
  tree.write("sys/devices/" + test::hca_place(2) + "/current_link_width", "8");
  const plan::Plan plan = planned("cuda");
  EXPECT_THAT(examined(plan, tree.path(), false).said.err, HasSubstr("doctor: fail ib.pcie on dgx01: adapter mlx5_2"));
  const Said refused = examined(plan, tree.path(), true).said;
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("nothing was measured"),
                                 HasSubstr("fail pcie.width on dgx01: adapter mlx5_2 runs on 8 of 16 PCIe lanes")));
}

// A node that does not answer is not known to be healthy.
TEST(SweepDoctor, ARankThatDoesNotAnswerIsNotHealthy) {
  test::Dgx tree;
  const plan::Plan plan = planned("cuda");
  EXPECT_THAT(examined(plan, tree.path(), false, 9).said.err,
              HasSubstr("fail node.answers on dgx01: rank 9 gave no answer"));
  EXPECT_EQ(examined(plan, tree.path(), true, 9).said.code, 2);
}

// A misspelt folder must not pass for healthy nodes.
TEST(SweepDoctor, AFolderWithoutANodeIsNotHealthy) {
  const plan::Plan plan = planned("cuda");
  const Examined any = examined(plan, "/nonexistent", false);
  EXPECT_TRUE(any.record.findings.empty());
  EXPECT_THAT(any.said.err, HasSubstr("doctor could not look at the nodes: nothing could be checked"));
  const Said refused = examined(plan, "/nonexistent", true).said;
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("below '/nonexistent' no file of a node can be read"));
}

TEST(SweepDoctor, APredictionHasNoNodes) {
  test::NodeTree tree("dgx01");
  tree.write("etc/nccl.conf", "NCCL_ALGO=Tree");
  const Examined predicted = examined(planned("sim"), tree.path(), true);
  EXPECT_TRUE(predicted.record.findings.empty());
  EXPECT_EQ(predicted.record.facts, "");
}

TEST(SweepVerb, AConfigurationBehindOnlyIsMissed) {
  test::AnsweringJob job(2, 8);
  SweepOptions options;
  options.only = {"baseline", "job.yaml"};
  const auto run = [&](std::ostream& out, std::ostream& err) { return sweep(job, options, out, err); };
  EXPECT_THAT(outcome_of(run).err, HasSubstr("give it before --only"));
}

TEST(RecordedEnvironment, NamesThatMakeOthersCodeRun) {
  for (const char* name :
       {"LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN",
        "NCCL_NET", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV",
        "UCX_MODULE_DIR", "GCONV_PATH", "OMP_TOOL_LIBRARIES", "FI_PROVIDER_PATH", "IBV_DRIVERS", "ld_preload"}) {
    EXPECT_TRUE(config::runs_foreign_code(name)) << name;
  }
  for (const char* name : {"NCCL_TOPO_FILE", "NCCL_IB_TIMEOUT", "NCCL_ALGO", "CUDA_DEVICE_MAX_CONNECTIONS",
                           "CUDA_MODULE_LOADING", "OMP_PROC_BIND", "TZ", "NCCL_SOCKET_IFNAME", "UCX_TLS", "TMPDIR"}) {
    EXPECT_FALSE(config::runs_foreign_code(name)) << name;
  }
}

plan::Plan plan_with(const std::string& name) {
  plan::Plan plan;
  plan.cases.resize(2);
  plan.cases[1].settings.env = {{name, "/tmp/x.so"}};
  return plan;
}

TEST(RecordedEnvironment, OfAnotherUsersFileIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("r.h5", "");
  EXPECT_NO_THROW(require_own_code(plan_with("LD_PRELOAD"), path));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_NO_THROW(require_own_code(plan_with("NCCL_IB_TIMEOUT"), path));
  EXPECT_THAT(test::error_of([&] { require_own_code(plan_with("LD_PRELOAD"), path); }),
              AllOf(HasSubstr(path), HasSubstr("another user"), HasSubstr("LD_PRELOAD=/tmp/x.so")));
}

}  // namespace

}  // namespace harness::cli
