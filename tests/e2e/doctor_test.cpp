// `harness doctor` under mpirun, as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(DoctorAsAUser, ChecksWhatIsThere) {
  const auto o = test::run(test::harness_job(2, "doctor"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("1 node, 2 ranks"), HasSubstr("node.answers")));
}

// Without a GPU, the CPUs are loaded.
TEST(DoctorAsAUser, LoadsWhatIsThere) {
  const auto o = test::run(test::harness_job(2, "doctor --stages nccl,load --all"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(
      o.out, AllOf(HasSubstr("products of 2 ranks: "), HasSubstr("all-reduce of 2 ranks within a node: "),
                   HasSubstr("skip     stage.nccl"), HasSubstr("pass     stage.load"), Not(HasSubstr("cpu.governor"))));
}

// Each of its products takes many times what any machine needs for one.
TEST(DoctorAsAUser, NamesTheRankThatIsSlowUnderLoad) {
  const auto o = test::run("HARNESS_TEST_FAULT='rank=1,case=products,kind=delay,stream=compute,seconds=0.3' " +
                           test::harness_job(2, "doctor --stages load --strict"));
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("warn     load.products"), HasSubstr("rank 1 reaches ")));
}

// The stage ends, says who held it up, and has what comes after.
TEST(DoctorAsAUser, AWorkerThatHangsEndsItsBlockAlone) {
  const auto o = test::run("HARNESS_TEST_FAULT='rank=1,case=products,kind=hang,step=0' " +
                           test::harness_job(2, "doctor --stages load"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("products did not end within the limit: rank 1"),
                           HasSubstr("all-reduce of 2 ranks within a node: ")));
}

TEST(DoctorAsAUser, AWorkerThatCrashesIsAFailure) {
  const auto o = test::run("HARNESS_TEST_FAULT='rank=1,case=node_all_reduce,kind=segfault,step=0' " +
                           test::harness_job(2, "doctor --stages load"));
  EXPECT_EQ(o.exit_code, 2) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("fail     stage.load"), HasSubstr("all-reduce in each node failed: rank 1"),
                           HasSubstr("products of 2 ranks: ")));
}

// Two ranks, each with a folder of its own: two nodes, of which one has another kernel.
TEST(DoctorAsAUser, NamesTheNodeThatDiffers) {
  const test::TemporaryFolder folder;
  for (const char* rank : {"0", "1"}) {
    const std::string root = std::string("root") + rank + "/";
    folder.write(root + "proc/sys/kernel/hostname", std::string("node") + rank);
    folder.write(root + "proc/driver/nvidia/version", std::string("NVRM version: NVIDIA UNIX 570.86.1") + rank);
  }
  const auto o = test::run(test::harness_job(2, "doctor --sysroot '" + (folder / "root{rank}") + "'"));
  EXPECT_EQ(o.exit_code, 2) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(StartsWith("2 failures (2 nodes, 2 ranks"), HasSubstr("same.driver   node1"),
                           HasSubstr("570.86.11; the nodes differ")));
}

TEST(DoctorAsAUser, AMistakeIsExitCodeThree) {
  const auto o = test::run(test::harness_job(1, "doctor --sysrot /"));
  EXPECT_EQ(o.exit_code, 3) << o.out << o.err;
  EXPECT_THAT(o.err, HasSubstr("did you mean --sysroot?"));
  const auto elsewhere = test::run(test::harness_job(1, "doctor --stages load --sysroot /tmp"));
  EXPECT_EQ(elsewhere.exit_code, 3) << elsewhere.out << elsewhere.err;
  EXPECT_THAT(elsewhere.err, HasSubstr("with --sysroot, give --stages static"));
}

}  // namespace
}  // namespace harness
