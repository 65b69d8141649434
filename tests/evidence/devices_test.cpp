#include <fmt/format.h>
#include <gmock/gmock.h>

#include "evidence/expectations.h"

namespace harness::test {
namespace {

TEST(Devices, OfHostfilesAndTopologies) {
  expect_answers({
      {"node1 max-slots=8 slots=8 # spare\nnode2 slots=8 port=2222\n", "hosts: 2\nranks: 16\n"},
      {"node1 slots=8\nnode2 slots=0\n", "hosts: 1\nranks: 8\n"},
      // Containers hide the affinity: with tabs, and copied without them.
      {"\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV4\tPIX\t\t\tN/A\n"
       "GPU1\tNV4\t X \tSYS\t\t\tN/A\nNIC0\tPIX\tSYS\t X \n",
       "gpus: 2\nnics: NIC0\nproblem: GPU1\n"},
      {"       GPU0   GPU1   CPU Affinity   NUMA Affinity\nGPU0    X     NV4\nGPU1   NV4     X\n",
       "gpus: 2\nnics: none\n"},
      // `topo -p2p r` behind it has the same names
      {"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tNV4\nGPU1\tNV4\t X \tSYS\nGPU2\tNV4\tSYS\t X \n"
       " \tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tOK\n GPU1\tOK\tX\tOK\n GPU2\tOK\tOK\tX\n",
       "gpus: 3\nproblem: GPU1-GPU2: no NVLink where other pairs have 4\n"},
      {"GPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t\nGPU1\tSYS\t X \t\n",  // without the leading blanks
       "gpus: 2\nnics: none\n"},
      {"  GPU0  NIC0  NIC1  CPU Affinity\nGPU0  X  PIX  SYS  0-31\nNIC0  PIX  X  SYS\nNIC1  SYS  SYS  X\n",
       "gpus: 1\nnics: NIC0, NIC1\n"},
      {"  GPU0  mlx5_0  CPU Affinity\nGPU0  X  PIX  0-31\nmlx5_0  PIX  X\n", "gpus: 1\nnics: mlx5_0\n"},
  });
}

// A workstation with a bridge between two of its GPUs; the third hangs off another processor, or one of theirs.
TEST(Devices, ABridgeBetweenTwoGpusIsNoProblem) {
  for (const char* near : {"SYS", "PHB"}) {
    const auto answer = answer_to(
        fmt::format("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\t{0}\nGPU1\tNV4\t X \tSYS\nGPU2\t{0}\tSYS\t X \n", near));
    EXPECT_EQ(answer.headline, "3 GPUs and 0 adapters") << near;
    EXPECT_THAT(answer.problems, testing::IsEmpty()) << near;
    EXPECT_THAT(answer.notes, testing::ElementsAre(testing::HasSubstr("GPU0-GPU1: 4 NVLinks"))) << near;
  }
}

TEST(Devices, ARowThatIsCutIsNotJudged) {
  const auto answer = answer_to(
      "        GPU0    GPU1    GPU2    NIC0    CPU Affinity\nGPU0     X      NV4     NV4     PIX     0-31\n"
      "GPU1    NV4      X      NV4     PIX     0-31\nGPU2    NV4     NV4      X\n");
  EXPECT_EQ(answer.headline, "2 GPUs and 1 adapters, all alike");
  EXPECT_THAT(answer.problems, testing::IsEmpty());
  EXPECT_THAT(answer.notes, testing::ElementsAre(testing::HasSubstr("the matrix is cut")));
}

TEST(Devices, ATopologyIsReadBehindAFenceOrASentence) {
  const std::string file =
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\"><pci busid=\"1\"><gpu dev=\"0\" "
      "sm=\"80\" gdr=\"1\"/></pci></cpu></system>\n";
  for (const char* before : {"", "```xml\n", "Here is what NCCL wrote:\n\n"})
    EXPECT_EQ(answer_to(before + file + "```\n").kind, "nccl topology") << before;
}

}  // namespace
}  // namespace harness::test
