// `harness doctor` under mpirun, as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DoctorAsAUser, ChecksWhatIsThere) {
  const auto o = test::run(test::harness_job(2, "doctor"));
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("1 node, 2 ranks"), HasSubstr("node.answers")));
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
}

}  // namespace
}  // namespace harness
