// The points of one operation run one after another in the same processes, a process for each round.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "command.h"
#include "store/result_file.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::harness_job;
using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

// The smallest effect is one that no noise has: a control that moves by chance would be an exit code.
std::string write(const TemporaryFolder& folder, const std::string& more_sweep = "") {
  const std::string path = folder / "sizes.yaml";
  std::ofstream(path) << "workload: collective\nbackend: cpu\n"
                      << "baseline: {collective: all_reduce, message_size: 4 KiB, repetitions: 2}\n"
                      << "sweep:\n  message_size: [8 B, 1 KiB, 64 KiB]\n"
                      << more_sweep
                      << "measure: {rounds: 5, warmup_steps: 1, steps: 2, smallest_effect: 90 %}\noutput: "
                      << (folder / "sizes.h5") << "\n";
  return path;
}

std::map<std::int32_t, std::set<std::int32_t>> rounds_by_process(const store::Result& r) {
  std::map<std::int32_t, std::set<std::int32_t>> rounds;
  for (const store::ResultBlock& block : r.blocks) rounds[block.process].insert(block.round);
  return rounds;
}

TEST(SharedProcess, TheBlocksOfARoundShareOneAndTheFileSaysSo) {
  const TemporaryFolder folder;
  const auto o = test::run(harness_job(2, "sweep " + write(folder)));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("a round's blocks in one"));
  // Of sizes alone none is better: the table has a rate for each and no verdict.
  EXPECT_THAT(o.out, HasSubstr("busbw GB/s"));
  for (const char* of_verdicts : {"95 % interval", "Change:"}) EXPECT_THAT(o.out, Not(HasSubstr(of_verdicts)));
  const store::Result r = store::read_result(folder / "sizes.h5");
  for (const store::ResultBlock& block : r.blocks) EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
  const auto rounds = rounds_by_process(r);
  EXPECT_EQ(rounds.size(), 5u);
  for (const auto& [process, of_process] : rounds) EXPECT_EQ(of_process.size(), 1u) << process;
}

constexpr const char* needs_process = "  allreduce_algorithm: [halving_doubling]\n";
constexpr std::int32_t alone = 2, needy = 6;  // baseline_alone and that case

// Three processes in each round: the baseline, its copy and the sizes share one, and two cases have their own.
void expect_sets(const store::Result& r) {
  ASSERT_EQ(r.cases.size(), 7u);
  EXPECT_EQ(r.cases[alone].name, "baseline_alone");
  EXPECT_EQ(r.cases[needy].name, "allreduce_algorithm=halving_doubling");
  for (std::int32_t i = 0; i < r.case_count(); ++i)
    EXPECT_EQ(r.case_at(i).reference, i == alone || i == needy ? alone : 0) << i;
  std::map<std::int32_t, std::set<std::int32_t>> cases;
  for (std::size_t i = 0; i < r.blocks.size(); ++i) {
    const store::ResultBlock& block = r.blocks[i];
    EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
    EXPECT_TRUE(cases[block.process].insert(block.case_index).second);
    // Those of a process follow each other, in the order in which the file has them.
    const bool first = block.process == static_cast<std::int32_t>(i);
    EXPECT_TRUE(first || r.blocks[i - 1].process == block.process) << i;
    const bool later = i > 0 && r.blocks[i - 1].session == block.session;
    EXPECT_TRUE(!later || block.start_unix_s > r.blocks[i - 1].start_unix_s) << i;
  }
  EXPECT_EQ(cases.size(), 3u * static_cast<std::size_t>(r.rounds));
  const std::set<std::int32_t> company{0, 1, 3, 4, 5};
  for (const auto& [process, of_process] : cases)
    EXPECT_THAT(of_process, ::testing::AnyOf(company, std::set{alone}, std::set{needy})) << process;
}

TEST(SharedProcess, ACaseThatNeedsAProcessIsComparedWithABaselineThatHasOneToo) {
  const TemporaryFolder folder;
  const auto o = test::run(harness_job(2, "sweep -v " + write(folder, needs_process)));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("95 % interval"));
  const std::string said = std::regex_replace(o.out, std::regex("\n *"), " ");
  EXPECT_THAT(said, HasSubstr("a round's blocks in one process but for cases that need their own"));
  EXPECT_THAT(said, HasSubstr("15 processes on each rank, 10 of them for one block alone"));
  EXPECT_THAT(said, HasSubstr("(baseline_alone against baseline)"));
  expect_sets(store::read_result(folder / "sizes.h5"));
}

// Stopped within a round, whose blocks are then all measured again.
TEST(SharedProcess, ARoundOfSeveralSetsIsResumedAsAWhole) {
  const TemporaryFolder folder;
  {
    test::Command command(harness_job(2, "sweep -v " + write(folder, needs_process)));
    ASSERT_TRUE(command.wait_for("[10/35] round 2")) << command.err_so_far();
    for (const pid_t pid : command.tagged("sweep")) ::kill(pid, SIGINT);
    EXPECT_EQ(command.wait().exit_code, 5);
  }
  const auto count = [](const store::Result& r, std::int32_t session) {
    return std::ranges::count_if(r.blocks, [&](const store::ResultBlock& block) {
      return block.status == store::BlockStatus::ok && block.session == session;
    });
  };
  const store::Result stopped = store::read_result(folder / "sizes.h5");
  ASSERT_NE(count(stopped, 0) % 7, 0) << "it stopped between two rounds";
  const auto o = test::run(harness_job(2, "sweep --resume " + (folder / "sizes.h5")));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  expect_sets(r);
  EXPECT_EQ(count(r, 0), count(stopped, 0) / 7 * 7);
}

// What is compared with it has no verdict then; the others have theirs.
TEST(SharedProcess, AFailingBaselineAloneCostsTheVerdictsThatItIsFor) {
  const TemporaryFolder folder;
  const std::string fault = "HARNESS_TEST_FAULT='rank=1,step=-1,case=baseline_alone,kind=exit' ";
  const auto o = test::run(fault + harness_job(2, "sweep " + write(folder, needs_process)));
  EXPECT_EQ(o.exit_code, 4) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  EXPECT_EQ(r.cases[alone].status, store::CaseStatus::failed);
  for (const store::ResultBlock& block : r.blocks) {
    if (block.case_index == alone) continue;
    EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
  }
  EXPECT_THAT(o.out, HasSubstr("no verdict on allreduce_algorithm=halving_doubling"));
}

// The size is settled by the first look, for each of its steps is reported as much longer than it was. The other case
// has three blocks by then, too few for a verdict.
TEST(SharedProcess, ABaselineIsMeasuredAsLongAsSomethingIsComparedWithIt) {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("sizes.yaml",
                   "workload: collective\nbackend: cpu\n"
                   "baseline: {collective: all_reduce, message_size: 4 KiB, repetitions: 2}\n"
                   "sweep:\n  message_size: [8 B]\n  allreduce_algorithm: [halving_doubling]\n"
                   "measure: {rounds: 7, warmup_steps: 1, steps: 2, smallest_effect: 90 %, until: settled,\n"
                   "          weight: {allreduce_algorithm: 0.5}}\noutput: " +
                       (folder / "sizes.h5") + "\n");
  const std::string longer = "HARNESS_TEST_FAULT='case=message_size=8 B,kind=pretend,step=every,seconds=100' ";
  const auto o = test::run(longer + harness_job(2, "sweep " + config));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  std::map<std::string, int> measured;
  for (const store::ResultBlock& block : r.blocks) {
    if (block.status == store::BlockStatus::ok) ++measured[r.at(block).name];
    if (block.round < 5 || r.at(block).name != "baseline") continue;
    EXPECT_EQ(block.reason, "every verdict that it is for was settled");
  }
  EXPECT_EQ(measured["baseline"], 5);
  EXPECT_EQ(measured["baseline_again"], 5);
  EXPECT_EQ(measured["message_size=8 B"], 5);
  EXPECT_EQ(measured["baseline_alone"], 7);
  EXPECT_EQ(measured["allreduce_algorithm=halving_doubling"], 4);
}

// Its blocks are repeated alone, where they fail again; everything else is measured, in processes that still run.
TEST(SharedProcess, AFaultCostsItsCaseAndNothingElse) {
  for (const char* kind : {"kill", "exit", "throw"}) {
    const TemporaryFolder folder;
    const std::string fault = std::string("HARNESS_TEST_FAULT='rank=1,step=-1,case=message_size=1 KiB,kind=") + kind;
    const auto o = test::run(fault + "' " + harness_job(2, "sweep " + write(folder)));
    EXPECT_EQ(o.exit_code, 4) << o.err;
    const store::Result r = store::read_result(folder / "sizes.h5");
    for (const store::ResultBlock& block : r.blocks) {
      if (r.at(block).name == "message_size=1 KiB") continue;
      EXPECT_EQ(block.status, store::BlockStatus::ok) << kind << ": " << block.reason;
    }
    EXPECT_EQ(r.cases[3].name, "message_size=1 KiB");
    EXPECT_EQ(r.cases[3].status, store::CaseStatus::failed) << kind;
  }
}

// The fault strikes only while another block ran before in the same process: alone, the case runs.
TEST(SharedProcess, WhatFailsInCompanyAndRunsAloneCounts) {
  const TemporaryFolder folder;
  const std::string fault = "HARNESS_TEST_FAULT='rank=1,step=-1,case=message_size=1 KiB,kind=kill,company=yes' ";
  const auto o = test::run(fault + harness_job(2, "sweep " + write(folder)));
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out + o.err, HasSubstr("failed in a process that it shared, and was repeated in one of its own"));
  const store::Result r = store::read_result(folder / "sizes.h5");
  for (const store::ResultBlock& block : r.blocks) EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
  for (const auto& [process, rounds] : rounds_by_process(r)) EXPECT_EQ(rounds.size(), 1u) << process;
  EXPECT_GT(rounds_by_process(r).size(), 5u);
}

// Large and small messages take turns in one process. What each block takes is given back: over forty blocks less stays
// behind than one large message has bytes. (Pages that the process touches for the first time, of libraries and of the
// allocator, come and go by one or two MiB.)
TEST(SharedProcess, FiftyBlocksTakeNoMoreMemoryThanTen) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer keeps what is freed";
#endif
  const TemporaryFolder folder;
  constexpr int large = 4 << 20;  // bytes
  std::string sizes;
  for (int i = 1; i <= 26; ++i) sizes += fmt::format("{} B, {} B, ", 16 * i, large + 16 * i);
  const std::string config = folder.write("sizes.yaml",
                                          "workload: collective\nbackend: cpu\n"
                                          "baseline: {collective: all_reduce, message_size: 4 KiB, repetitions: 1}\n"
                                          "sweep: {message_size: [" +
                                              sizes +
                                              "8 B]}\n"
                                              "measure: {rounds: 1, warmup_steps: 1, steps: 1}\noutput: " +
                                              (folder / "sizes.h5") + "\n");
  const auto o = test::run(harness_job(2, "sweep " + config));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  ASSERT_GE(r.blocks.size(), 55u);
  ASSERT_EQ(rounds_by_process(r).size(), 1u);
  std::map<bool, double> most;  // bytes: of small ones after ten blocks, after fifty
  for (const store::ResultBlock& block : r.blocks) {
    ASSERT_EQ(block.status, store::BlockStatus::ok) << block.reason;
    const bool small = r.find_point(block.case_index)->bytes < 1 << 20;
    const bool after_ten = block.position >= 10 && block.position < 20;
    if (!small || !(after_ten || block.position >= 50)) continue;
    most[block.position >= 50] = std::max(most[block.position >= 50], block.peak_memory_bytes);
  }
  ASSERT_EQ(most.size(), 2u);
  EXPECT_LE(most[true], most[false] + large);
}

TEST(SharedProcess, ACommandAroundTheWorkersSeesOneForEachBlock) {
  const TemporaryFolder folder;
  const auto o =
      test::run(harness_job(2, "sweep " + write(folder, needs_process) + " --rounds 2 --wrap 'env -u NOTHING'"));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  EXPECT_EQ(rounds_by_process(r).size(), r.blocks.size());
  EXPECT_EQ(r.find_case("baseline_alone"), nullptr);
}

TEST(SharedProcess, FilesThatWereMeasuredDifferentlyAreNotCompared) {
  const TemporaryFolder folder, other;
  ASSERT_EQ(test::run(harness_job(2, "sweep " + write(folder))).exit_code, 0);
  ASSERT_EQ(test::run(harness_job(2, "sweep " + write(other, needs_process))).exit_code, 0);
  const auto o = test::run(test::program_path() + " compare " + (folder / "sizes.h5") + " " + (other / "sizes.h5"));
  EXPECT_THAT(o.out + o.err, HasSubstr("Processes differ: one for the blocks of a round in"));
}

}  // namespace
}  // namespace harness
