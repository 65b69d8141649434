#include "sweep/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;

TEST(Identity, WhoDiffersIsNamed) {
  std::vector<job::RankPlace> places(4);
  for (std::size_t i = 0; i < 4; ++i) places[i].host = "node" + std::to_string(i / 2);
  const NameValues usual = {{"oneDNN", "3.1"}, {"CPU", "x"}};
  EXPECT_TRUE(compare_identities({usual, usual, usual, usual}, places).empty());
  EXPECT_TRUE(compare_identities({}, places).empty());
  const auto lines = compare_identities({usual, usual, usual, {{"oneDNN", "2.6.3"}}}, places);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "CPU: x on 3 ranks, but absent on rank 3 (node1)");
  EXPECT_EQ(lines[1], "oneDNN: 3.1 on 3 ranks, but 2.6.3 on rank 3 (node1)");
}

TEST(Identity, RankZeroWinsATieAndLongListsAreCut) {
  const auto tie = compare_identities({{{"a", "2"}}, {{"a", "1"}}}, std::vector<job::RankPlace>(2));
  ASSERT_EQ(tie.size(), 1u);
  EXPECT_EQ(tie[0].substr(0, 17), "a: 2 on 1 ranks, ");
  std::vector<NameValues> many(40, NameValues{{"a", "1"}});
  for (std::size_t i = 25; i < 40; ++i) many[i][0].second = "2";
  const auto lines = compare_identities(many, std::vector<job::RankPlace>(40));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("rank 32"));
  EXPECT_THAT(lines[0], HasSubstr("and 7 more"));
}

TEST(Identity, WhatRanksSayIsToldOncePerValue) {
  EXPECT_EQ(said_by_ranks({}), "");
  EXPECT_EQ(said_by_ranks({"a", "a"}), "a (2 ranks)");
  EXPECT_EQ(said_by_ranks({"b", "a", "b"}), "b (2 ranks); a (1 rank)");
  std::vector<std::string> many;
  for (int i = 0; i < 40; ++i) many.push_back(std::to_string(i));
  EXPECT_THAT(said_by_ranks(many), ::testing::EndsWith("; 15 (1 rank); others"));
}

}  // namespace
}  // namespace harness::sweep
