// NCCL's logs as launchers, collectors and people pass them on: what is missing there is no fault of the job.
#include <gmock/gmock.h>

#include <string>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ray prints one of the lines that differ in numbers alone, and counts the others.
TEST(CollectedLog, RanksThatRayLeftOutAreNotMissed) {
  const std::string first = "(Worker pid=21) n1:21:31 [0] NCCL INFO ",
                    later = "(Worker pid=37, ip=10.0.0.2) n2:37:47 [3] NCCL INFO ",
                    repeated = " [repeated 7x across cluster]\n";
  std::string log;
  for (const std::string message :
       {"NCCL_IB_TIMEOUT set by environment to 22.", "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e:1",
        "Using network IB", "ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 commId 0xab - Init START"})
    log += first + message + "\n" + later + message + repeated;
  log += later + "ncclCommInitRank comm 0x6 rank 7 nranks 8 cudaDev 3 commId 0xab - Init START" + repeated + first +
         "ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 commId 0xab - Init COMPLETE\n";
  const Answer answer = answer_to(log);
  EXPECT_THAT(answer.problems, IsEmpty());
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("RAY_DEDUP_LOGS=0"), HasSubstr("no connection over the network")));
}

// Without libibverbs NCCL does not look for adapters, and does not say that there is none.
TEST(CollectedLog, AnImageWithoutLibibverbsIsTheReasonForSockets) {
  for (const char* mark : {"NCCL INFO ", "misc/ibvwrap.cc:63 NCCL WARN "}) {
    std::string log;
    for (const char* node : {"n1", "n2"})
      log += fmt::format(
          "{0}:1:2 [0] {1}Failed to open libibverbs.so[.1]\n{0}:1:2 [0] NCCL INFO NET/Socket : Using "
          "[0]eth0:10.0.0.1<0>\n"
          "{0}:1:2 [0] NCCL INFO Using network Socket\n",
          node, mark);
    EXPECT_EQ(answer_to(log).headline, "NCCL runs over TCP sockets: libibverbs could not be opened") << mark;
  }
}

// aws-ofi-nccl gives each process a topology by the number of an open file.
TEST(CollectedLog, RanksDoNotDifferInTheNumberOfAFile) {
  std::string log;
  for (int rank = 0; rank < 2; ++rank)
    log += fmt::format("n1:1{0}:2 [{0}] NCCL INFO NCCL_TOPO_FILE set by environment to /proc/self/fd/15{0}\n", rank);
  EXPECT_THAT(answer_to(log).problems, IsEmpty());
}

}  // namespace
}  // namespace harness::test
