// Names of stages, and the place of their findings among the rest.
#include "doctor/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "doctor/diagnosis.h"

namespace harness::doctor {
namespace {

using ::testing::ElementsAre;

TEST(Stages, TheirNamesAreReadAndMistakesNamed) {
  EXPECT_EQ(parse_stages("load, static"), (std::vector{Stage::facts, Stage::load}));
  EXPECT_EQ(parse_stages(all_stages).size(), 3u);
  try {
    parse_stages("static,ncll");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "--stages: found 'ncll'; allowed: static, nccl, load, separated by commas; did you mean nccl?");
  }
}

TEST(Stages, WhatTheySayTakesItsPlaceAmongTheRest) {
  Diagnosis diagnosis;
  diagnosis.lines = {{"ib.rate", {Verdict::fail, "slow", "replace"}, "", {"node1"}},
                     {"cpu.load", {Verdict::warn, "busy", "wait"}, "", {"node1"}}};
  const Finding sockets{Verdict::fail, "sockets", "look"};
  add(diagnosis, {{"stage.nccl", {Verdict::info, "16", ""}, ""},
                  {"nccl.network", sockets, "node1"},
                  {"nccl.network", sockets, "node2"}});
  std::vector<std::string> order;
  for (const Line& line : diagnosis.lines) order.push_back(line.check);
  EXPECT_THAT(order, ElementsAre("ib.rate", "nccl.network", "cpu.load", "stage.nccl"));
  EXPECT_THAT(diagnosis.lines[1].nodes, ElementsAre("node1", "node2"));
  EXPECT_THAT(diagnosis.lines[3].nodes, ElementsAre());
  EXPECT_EQ(exit_code(diagnosis, false), 2);
}

// A second stage may say the same of another node.
TEST(Stages, EqualFindingsAreOneLineAcrossStages) {
  Diagnosis diagnosis;
  const Finding finding{Verdict::warn, "late", ""};
  add(diagnosis, {{"stage.load", finding, "node1"}});
  add(diagnosis, {{"stage.load", finding, "node2"}});
  ASSERT_EQ(diagnosis.lines.size(), 1u);
  EXPECT_THAT(diagnosis.lines[0].nodes, ElementsAre("node1", "node2"));
}

}  // namespace
}  // namespace harness::doctor
