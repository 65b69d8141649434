// The rounds of a sweep that loses cases and is interrupted, in a simulated job.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <utility>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "rounds_fixture.h"
#include "support/errors.h"

namespace harness::sweep {

namespace {

// Returns the numbers that follow these words.
std::vector<int> numbers_after(const std::string& words, const std::string& text) {
  std::vector<int> found;
  const std::regex wanted(words + "([0-9]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at)
    found.push_back(std::stoi((*at)[1]));
  return found;
}

TEST_F(Rounds, ACaseRefusedAfterItsTimelineCostsNoOtherItsVerdict) {
  experiment_.measure.looks = {5, 8, 12};
  EXPECT_EQ(session(false), 0);
  const store::Result result = file();
  EXPECT_EQ(result.state, store::RunState::complete);
  EXPECT_EQ(result.find_case("micro_batch_size=4")->status, store::CaseStatus::impossible);
  const analysis::Summary summary = analysis::summarise(result);
  EXPECT_FALSE(summary.partial);
  for (const char* name : {"micro_batch_size=2", "micro_batch_size=8"}) {
    const analysis::CaseSummary& row = summary.case_at(result.index_of(*result.find_case(name)));
    EXPECT_TRUE(moved(row.judgement.verdict)) << name << analysis::name_of(row.judgement);
    EXPECT_EQ(row.settled_after, 5) << name;
    EXPECT_EQ(count_of(result, name, store::BlockStatus::ok), 5u);
    EXPECT_EQ(count_of(result, name, store::BlockStatus::left_out), 7u);
  }
  EXPECT_EQ(count_of(result, "micro_batch_size=4", store::BlockStatus::ok), 0u);
}

TEST_F(Rounds, ACaseThatTrainsDifferentlyIsLeftOutAsSuch) {
  config::Change change{"recompute", "full", experiment_.baseline};
  change.settings.recompute = config::Recompute::full;
  experiment_.changes = {change};
  experiment_.measure.looks = {5, 12};
  job_.step_s = {{"recompute=full", 1.5}};
  job_.loss = {{"recompute=full", 2}};
  EXPECT_EQ(session(false), 0);
  const auto reason = [](const store::ResultBlock& block) { return block.reason; };
  const std::string expected = "settled by the look after round 5: trains differently";
  EXPECT_EQ(std::ranges::count(file().blocks, expected, reason), 7);
}

// Wherever it is interrupted, a sweep resumes with the incomplete round and repeats no other round, whatever happened
// to its cases.
TEST_F(Rounds, AResumedSweepBeginsWithTheInterruptedRound) {
  const int blocks_of_a_round = 4;  // all but that of the refused case
  for (const bool one_fails : {false, true}) {
    for (const int stop_after : {1, 3, 4, 5, 25, 27, 28, 46}) {
      if (one_fails && stop_after > 28) continue;  // already complete before
      SCOPED_TRACE(fmt::format("after {}, {}", stop_after, one_fails));
      job_.fails.clear();
      if (one_fails) job_.fails = {"micro_batch_size=8"};
      std::map<int, int> times;  // how often a block was measured
      const auto count = [&] {
        for (const int block : job_.measured) ++times[block];
      };
      session(false, stop_after);
      count();
      const store::Result left = file();
      EXPECT_EQ(left.state, store::RunState::partial);
      const int interrupted = analysis::first_open_round(left);
      if (!one_fails) {
        EXPECT_EQ(interrupted, stop_after / blocks_of_a_round);
      }
      EXPECT_EQ(session(true), interrupted) << said_;
      count();
      const store::Result whole = file();
      EXPECT_EQ(whole.state, store::RunState::complete);
      for (std::size_t i = 0; i < whole.blocks.size(); ++i) {
        const store::ResultBlock& block = whole.blocks[i];
        const std::string& name = whole.at(block).name;
        const bool drops = job_.fails.contains(name);
        if (name == "micro_batch_size=4") {
          EXPECT_EQ(times[static_cast<int>(i)], 0);
        } else if (!drops) {
          EXPECT_EQ(block.status, store::BlockStatus::ok) << name << " in round " << block.round;
          EXPECT_LE(times[static_cast<int>(i)], block.round == interrupted ? 2 : 1) << name << " in " << block.round;
        }
      }
    }
  }
}

TEST_F(Rounds, AStopAfterTheLastBlockInterruptsNothing) {
  job_.fails = {"micro_batch_size=8"};
  for (const int rounds : {6, 7, 8, 9, 10}) {  // in one of these rounds, the dropped case comes last
    experiment_.measure.rounds = rounds;
    session(false, 3 * rounds + 2);  // the dropped case ran twice
    EXPECT_EQ(std::ssize(job_.measured), job_.stop_after);
    EXPECT_EQ(file().state, store::RunState::complete) << rounds;
  }
}

TEST_F(Rounds, AFileIsResumedWhereMoreCasesFitButNotWhereFewerDo) {
  const auto resumed = [&](const std::set<std::string>& before, const std::set<std::string>& now) {
    too_large_ = before;
    session(false, 6);
    too_large_ = now;
    return test::error_of([&] { session(true); });
  };
  EXPECT_EQ(resumed({"micro_batch_size=2"}, {}), "");
  EXPECT_EQ(count_of(file(), "micro_batch_size=2", store::BlockStatus::ok), 0u);
  EXPECT_THAT(resumed({}, {"micro_batch_size=2"}), ::testing::HasSubstr("micro_batch_size=2 cannot run here: needs "));
}

// Settled cases stay settled. The control, which every look judges again, is not counted.
TEST_F(Rounds, TheNumberOfSettledCasesNeverFalls) {
  for (const double noise : {0.001, 0.004, 0.02, 0.05}) {
    job_.noise = noise;
    experiment_.measure.rounds = 18;
    experiment_.measure.looks = {5, 8, 12, 18};
    session(false);
    const std::vector<int> settled = numbers_after("blocks, ", said_);
    EXPECT_TRUE(std::ranges::is_sorted(settled)) << said_;
    EXPECT_FALSE(settled.empty()) << said_;
    for (const int count : settled) EXPECT_LE(count, 2) << said_;  // one of the three changes cannot run
  }
}

// A command for more rounds in a result's warning works on that file.
TEST_F(Rounds, WhatAWarningTellsToTypeWorks) {
  struct Sweep {
    int rounds;
    std::vector<int> looks;
    double noise;
    std::ptrdiff_t stop_after;
  };
  const std::vector<Sweep> sweeps{{3, {}, 0.001, 0},        {3, {3}, 0.001, 0},      {4, {4}, 0.2, 0},
                                  {12, {5, 8, 12}, 0.2, 0}, {3, {}, 0.001, 5},       {12, {5, 8, 12}, 0.2, 9},
                                  {6, {}, 0.2, 0},          {40, {5, 8, 40}, 0.2, 0}};
  int extended = 0;
  for (const Sweep& sweep : sweeps) {
    SCOPED_TRACE(fmt::format("{} rounds, {} looks, noise {}, stopped after {}", sweep.rounds, sweep.looks.size(),
                             sweep.noise, sweep.stop_after));
    job_.noise = sweep.noise;
    experiment_.measure.rounds = sweep.rounds;
    experiment_.measure.looks = sweep.looks;
    session(false, sweep.stop_after);
    const auto warnings = [&] { return fmt::format("{}", fmt::join(analysis::summarise(file()).warnings, "\n")); };
    if (sweep.stop_after > 0) {
      EXPECT_THAT(warnings(), ::testing::HasSubstr("`sweep --resume FILE` continues this file"));
      session(true);
      EXPECT_EQ(file().state, store::RunState::complete);
    }
    const std::string warned = warnings();
    const std::vector<int> totals = numbers_after("sweep --resume FILE --rounds ", warned);
    EXPECT_EQ(totals.size(), numbers_after("--rounds ", warned).size()) << warned;
    if (!totals.empty()) {
      experiment_.measure.rounds = totals.front();
      const plan::Plan plan = plan::prepare(experiment_, 1, {});
      EXPECT_EQ(test::error_of([&] { extend_file(path_, plan, totals.front()); }), "") << warned;
      session(true);
      EXPECT_EQ(file().state, store::RunState::complete);
      EXPECT_THAT(warnings(), ::testing::Not(::testing::HasSubstr("no verdict on"))) << warned;
      ++extended;
    }
    // The refusal to resume suggests more rounds only if they are possible.
    const std::string refused = test::error_of([&] { require_resumable(file(), path_); });
    experiment_.measure.rounds = analysis::declared_rounds(file()) + 1;
    const plan::Plan more = plan::prepare(experiment_, 1, {});
    const std::string why = test::error_of([&] { extend_file(path_, more, experiment_.measure.rounds); });
    EXPECT_EQ(refused.find("adds rounds to it") != std::string::npos, why.empty()) << refused << '\n' << why;
  }
  EXPECT_GE(extended, 4);
}

TEST_F(Rounds, CanBeAddedWhereACaseDidNotFit) {
  too_large_ = {"micro_batch_size=4"};
  job_.step_s.clear();
  job_.noise = 0.2;
  experiment_.measure.rounds = 6;
  session(false);
  experiment_.measure.rounds = 12;
  const store::Result complete = file();
  store::Result of_another_build = complete;
  of_another_build.cases.front().program_hash = "0123456789abcdef";
  store::write_result(path_, of_another_build);
  const plan::Plan plan = plan::prepare(experiment_, 1, {});
  EXPECT_THAT(test::error_of([&] { extend_file(path_, plan, 12); }), ::testing::HasSubstr("programs differ"));
  EXPECT_EQ(file().state, store::RunState::complete);
  store::write_result(path_, complete);
  extend_file(path_, plan, 12);
  session(true);
  const store::Result result = file();
  EXPECT_EQ(result.state, store::RunState::complete);
  EXPECT_EQ(result.blocks.size(), 12u * 4);
  EXPECT_EQ(count_of(result, "baseline", store::BlockStatus::ok), 12u);
  EXPECT_FALSE(analysis::shares_processes(result));
}

}  // namespace

}  // namespace harness::sweep
