#include "job/mpi/fault.h"

#include <gtest/gtest.h>

namespace harness::mpi {
namespace {

RankReport report(int rank, FaultKind kind, int code = 0, std::int64_t step = 3) {
  RankReport r;
  r.rank = rank;
  r.kind = kind;
  r.code = code;
  r.progress.phase = job::WorkerPhase::stepping;
  r.progress.step = step;
  r.host = "node" + std::to_string(rank);
  return r;
}

TEST(Judge, ACauseGoesBeforeItsConsequences) {
  const std::vector<FaultKind> by_guilt = {FaultKind::signal,     FaultKind::out_of_memory, FaultKind::error,
                                           FaultKind::early_exit, FaultKind::silent,        FaultKind::hung,
                                           FaultKind::waiting,    FaultKind::peer_lost,     FaultKind::none};
  for (std::size_t i = 0; i + 1 < by_guilt.size(); ++i) {
    EXPECT_EQ(find_culprit({report(0, by_guilt[i + 1]), report(1, by_guilt[i])}).culprit_rank, 1) << i;
  }
}

TEST(Judge, AmongTheStuckTheOneThatGotLeastFarIsToBlame) {
  EXPECT_EQ(find_culprit({report(0, FaultKind::waiting, 0, 5), report(1, FaultKind::waiting, 0, 4)}).culprit_rank, 1);
  auto starting = report(2, FaultKind::waiting, 0, 9);
  starting.progress.phase = job::WorkerPhase::connecting;
  EXPECT_EQ(find_culprit({report(0, FaultKind::waiting), starting}).culprit_rank, 2);
}

TEST(Judge, NobodyIsToBlameWhenAllAreWell) {
  EXPECT_EQ(find_culprit({report(0, FaultKind::none)}).culprit_rank, -1);
  EXPECT_EQ(find_culprit({}).culprit_rank, -1);
}

TEST(Judge, SaysRankHostSignalStepOperationAndLastWords) {
  auto r = report(2, FaultKind::signal, 11);
  std::string("matmul qkv, layer 2").copy(r.progress.operation.data(), r.progress.operation.size());
  r.last_words = "something\nbroke\n";
  EXPECT_EQ(find_culprit({r}).reason,
            "rank 2 on node2: worker killed by signal 11 (segmentation fault) in step 3, matmul qkv, layer 2; its last "
            "words: something broke");
}

TEST(Judge, SignaturesAreEqualForFaultsAlikeOnly) {
  auto a = report(1, FaultKind::error);
  auto b = report(1, FaultKind::error, 0, 7);
  a.text = "cannot map 4096 bytes at 0x1000";
  b.text = "cannot map 8192 bytes at 0x2000";
  EXPECT_EQ(find_culprit({a}).signature, find_culprit({b}).signature);
  b.text = "no route to host";
  EXPECT_NE(find_culprit({a}).signature, find_culprit({b}).signature);
  EXPECT_NE(find_culprit({report(1, FaultKind::signal, 11)}).signature,
            find_culprit({report(1, FaultKind::signal, 6)}).signature);
  EXPECT_NE(find_culprit({report(1, FaultKind::signal, 11)}).signature,
            find_culprit({report(2, FaultKind::signal, 11)}).signature);
}

TEST(CutText, KeepsWholeCharactersFromEitherEnd) {
  EXPECT_EQ(cut_text("häuser", 2, false), "h");
  EXPECT_EQ(cut_text("häuser", 3, false), "hä");
  EXPECT_EQ(cut_text("seä", 1, true), "");
  EXPECT_EQ(cut_text("seä", 2, true), "ä");
  EXPECT_EQ(cut_text("abcdef", 3), "abc");
  EXPECT_EQ(cut_text("abcdef", 3, true), "def");
  EXPECT_EQ(text_of(std::array{'a', 'b', 'c'}), "abc");
  EXPECT_EQ(text_of(std::array{'a', '\0', 'c'}), "a");
}

}  // namespace
}  // namespace harness::mpi
