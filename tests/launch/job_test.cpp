#include "launch/job.h"

#include <gtest/gtest.h>

#include "launched.h"

namespace harness {
namespace {

using testing::Launched;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Job, BlocksRunAndSamplesComeHome) {
  Launched job(3, "blocks=2 steps=4");
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0);
  const std::string out = job.output();
  EXPECT_TRUE(has(out, "block 0 ok true stopped false culprit -1 samples 3")) << out;
  EXPECT_TRUE(has(out, "block 1 ok true stopped false culprit -1 samples 3")) << out;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_TRUE(has(out, std::string("sample ") + rank + " steps 5 losses 5 last 6 timeline 0 totals 0 setup true"))
        << out;
    EXPECT_TRUE(has(out, std::string("place ") + rank + " local " + rank + "/3 node 0 ")) << out;
  }
  EXPECT_TRUE(has(out, "end stop 0"));
}

TEST(Job, TheLastRanksMaySitABlockOut) {
  Launched job(3, "ranks=2");
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_TRUE(has(job.output(), "block 0 ok true stopped false culprit -1 samples 2")) << job.output();
}

TEST(Job, ATimelineIsKeptOncePerRoleAndItsTotalsByAll) {
  Launched job(2, fmt::format("mode={}", static_cast<int>(BlockMode::timeline)));
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_TRUE(has(job.output(), "sample 0 steps 1 losses 1 last 10 timeline 2 totals 2")) << job.output();
  EXPECT_TRUE(has(job.output(), "sample 1 steps 1 losses 1 last 10 timeline 0 totals 2")) << job.output();
}

TEST(Job, WorkersSeeOneCleanEnvironment) {
  Launched job(2, "mode=0", "NCCL_ALGO=Ring OMP_NUM_THREADS=77 OMP_WAIT_POLICY=active SLURM_PROCID=0");
  ASSERT_TRUE(job.wait()) << job.output();
  const std::string out = job.output();
  for (const char* line :
       {"identity 0 NCCL_ALGO=Ring", "identity 1 NCCL_ALGO=Ring", "identity 1 OMP_WAIT_POLICY=passive",
        "identity 1 OMPI_COMM_WORLD_RANK=unset", "identity 1 PMIX_RANK=unset", "identity 1 SLURM_PROCID=unset",
        "identity 0 HARNESS_RANK=0", "identity 1 HARNESS_RANK=1"}) {
    EXPECT_TRUE(has(out, line)) << line << "\n" << out;
  }
  EXPECT_FALSE(has(out, "OMP_NUM_THREADS=77")) << out;
}

TEST(Job, DifferentProgramsAreNotRunTogether) {
  Launched job(3, "", "FAKE_ODD_RANK=2");
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_TRUE(has(job.output(), "ok false")) << job.output();
  EXPECT_TRUE(has(job.output(), "different Programs")) << job.output();
}

}  // namespace
}  // namespace harness
