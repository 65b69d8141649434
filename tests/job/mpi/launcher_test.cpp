#include "job/mpi/mpi_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "support/errors.h"

namespace harness::mpi {
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

TEST(Launcher, SaysHowManyRanksShareANodeIfItKnows) {
  EXPECT_EQ(launcher_claim(lookup_in({{"OMPI_COMM_WORLD_SIZE", "16"},
                                      {"OMPI_COMM_WORLD_RANK", "0"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}))
                ->ranks_per_node,
            8);
  EXPECT_EQ(launcher_claim(lookup_in({{"PMI_SIZE", "16"}, {"PMI_RANK", "0"}}))->ranks_per_node, 0);
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

}  // namespace
}  // namespace harness::mpi
