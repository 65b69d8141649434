// What `--resume FILE` of a file from elsewhere may make this program run.
#include "cli/one_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "config/environment.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST(RecordedEnvironment, OfAnotherUsersFileIsRefusedUnlessItIsTrusted) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("r.h5", "");
  EXPECT_EQ(foreign_code_in(plan_with("NCCL_IB_TIMEOUT"), path, false), "");
  EXPECT_THAT(foreign_code_in(plan_with("LD_PRELOAD"), path, false), HasSubstr("LD_PRELOAD=/tmp/x.so"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(foreign_code_in(plan_with("NCCL_IB_TIMEOUT"), path, false), "");
  EXPECT_THAT(
      test::error_of([&] { foreign_code_in(plan_with("LD_PRELOAD"), path, false); }),
      AllOf(HasSubstr(path), HasSubstr("another user"), HasSubstr("LD_PRELOAD=/tmp/x.so"), HasSubstr("--trust-file")));
  EXPECT_THAT(foreign_code_in(plan_with("LD_PRELOAD"), path, true), HasSubstr("LD_PRELOAD=/tmp/x.so"));
}

}  // namespace
}  // namespace harness::cli
