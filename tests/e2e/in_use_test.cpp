// A file in use is in use: two sweeps on one result, on one machine and as if on two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "command.h"
#include "store/result_file.h"
#include "support/paths.h"

namespace harness {
namespace {

namespace fs = std::filesystem;
using test::Command;
using test::harness_job;
using test::TemporaryFolder;
using test::write_small_config;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What makes a process one of another machine, with a sign of life every so many seconds.
std::string on(const std::string& boot, const std::string& period_s = "5") {
  return "HARNESS_TEST_BOOT_ID=" + boot + " HARNESS_TEST_SIGN_OF_LIFE_S=" + period_s + " ";
}
std::string slowly() {
  return "HARNESS_TEST_FAULT='kind=delay,step=every,seconds=0.3' ";
}
std::string show(const std::string& file) {
  return test::program_path() + " show " + file;
}
void expect_refused(const test::Outcome& o) {
  EXPECT_EQ(o.exit_code, 1) << o.err;
  EXPECT_THAT(o.err, HasSubstr("is in use by "));
  EXPECT_THAT(o.err, HasSubstr("(process "));
  EXPECT_THAT(o.err, Not(HasSubstr("checking that all ranks")));  // nothing has run
  EXPECT_TRUE(o.out.empty()) << o.out;
}
std::vector<std::string> replaced(const TemporaryFolder& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().find(".replaced-") != std::string::npos) found.push_back(entry.path());
  }
  return found;
}

TEST(InUse, ASecondWriterIsRefusedFromThePreparationOn) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 40), file = folder / "small.h5";
  Command first(on("here") + slowly() + harness_job(2, "sweep " + config));
  ASSERT_TRUE(first.wait_for("timeline of baseline")) << first.err_so_far();
  if (!fs::exists(file)) {  // else this test came late
    const auto shown = test::run(on("here") + show(file));
    EXPECT_EQ(shown.exit_code, 1);
    EXPECT_THAT(shown.err, HasSubstr("in preparation: "));
  }
  expect_refused(test::run(on("here") + harness_job(2, "sweep " + config + " --force")));
  ASSERT_TRUE(first.wait_for("[2/160]")) << first.err_so_far();
  EXPECT_THAT(test::run(on("here") + show(file)).out, HasSubstr("running: "));
  const auto plain = test::run(on("here") + harness_job(2, "sweep " + config));
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.err, HasSubstr(" exists (running: "));
  expect_refused(test::run(on("here") + harness_job(2, "sweep --resume " + file)));
  expect_refused(test::run(on("there") + harness_job(2, "sweep --resume " + file)));
  EXPECT_THAT(test::run(on("there") + show(file)).out, HasSubstr("unfinished, last sign of life 20"));

  first.kill_all(SIGKILL);
  first.wait();
  EXPECT_THAT(test::run(on("here") + show(file)).out, HasSubstr("killed: "));
  const auto before = store::read_result(file);
  const auto resumed = test::run(on("here") + harness_job(2, "sweep --resume " + file + " --wrap nothing-like-this"));
  EXPECT_THAT(resumed.err, Not(HasSubstr("watching for")));  // the kernel knows that it is dead
  EXPECT_EQ(store::read_result(file).run_uuid, before.run_uuid);
  EXPECT_TRUE(replaced(folder).empty());
}

// Stopped for longer than anybody waits, and resumed by another machine meanwhile.
TEST(InUse, WhoComesBackTooLateStopsAndKeepsWhatItMeasured) {
  for (const bool force : {false, true}) {
    const TemporaryFolder folder;
    const std::string config = write_small_config(folder, 3), file = folder / "small.h5";
    const std::string few = "sweep " + config + " --only micro_batch_size ";
    Command first(on("here", "1") + slowly() + harness_job(2, few + "--seed 11"));
    ASSERT_TRUE(first.wait_for("[2/9]")) << first.err_so_far();
    const auto first_run = store::read_result(file);
    first.kill_all(SIGSTOP);

    const std::string next = force ? few + "--seed 22 --rounds 1 --force" : "sweep --resume " + file;
    Command second(on("there") + harness_job(2, next));
    ASSERT_TRUE(second.wait_for("is now ", 90)) << second.err_so_far();
    EXPECT_THAT(second.err_so_far(), HasSubstr("watching for 3 s at most"));
    first.kill_all(SIGCONT);
    const auto late = first.wait();
    EXPECT_EQ(late.exit_code, 1) << late.err;
    EXPECT_THAT(late.err, HasSubstr("was taken over by"));
    EXPECT_THAT(late.err, Not(HasSubstr("[9/9]")));  // at the next block, not at the end
    EXPECT_TRUE(late.out.empty()) << late.out;       // above all no table with the numbers of another
    const auto done = second.wait();
    EXPECT_THAT(done.exit_code, AnyOf(0, 4)) << done.err;

    const auto kept = replaced(folder);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_THAT(late.err, HasSubstr(kept[0]));
    const auto old = store::read_result(kept[0]), now = store::read_result(file);
    EXPECT_EQ(old.run_uuid, first_run.run_uuid);
    EXPECT_EQ(old.seed, 11u);
    EXPECT_GE(std::ranges::count(old.blocks, store::BlockStatus::ok, &store::ResultBlock::status), 2);
    EXPECT_EQ(now.state, store::RunState::complete);
    EXPECT_EQ(now.run_uuid == first_run.run_uuid, !force);
    EXPECT_EQ(now.seed, force ? 22u : 11u);
    EXPECT_EQ(std::ranges::count(now.blocks, store::BlockStatus::ok, &store::ResultBlock::status), force ? 3 : 9);
    // The configuration, the result and what was put beside it: nothing hidden, no claim.
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 3);
  }
}

TEST(InUse, FollowSeesASweepOfAnotherMachineLiveAndDie) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 40), file = folder / "small.h5";
  Command sweep(on("here", "1") + slowly() + harness_job(2, "sweep " + config));
  ASSERT_TRUE(sweep.wait_for("[1/160]")) << sweep.err_so_far();
  Command follow(on("there") + show(file) + " --follow");
  ASSERT_TRUE(follow.wait_for("running: ")) << follow.err_so_far();
  sweep.kill_all(SIGKILL);
  sweep.wait();
  EXPECT_TRUE(follow.wait_for("killed: no sign of life from ")) << follow.err_so_far();
}

TEST(InUse, WhatCannotBeResumedIsSaidFirstWithTheCommandThatWorks) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 1), file = folder / "small.h5";
  ASSERT_THAT(test::run(harness_job(2, "sweep " + config)).exit_code, Not(1));
  const auto complete = test::run(harness_job(2, "sweep --resume " + file));
  EXPECT_EQ(complete.exit_code, 1);
  EXPECT_LT(complete.err.find("--rounds N"), complete.err.find("--force"));
  const auto ranks = test::run(harness_job(1, "sweep --resume " + file));
  EXPECT_EQ(ranks.exit_code, 1);
  EXPECT_THAT(ranks.err, HasSubstr("`mpirun -np 2 " + test::program_path() + " sweep --resume " + file + "`"));
  for (const auto& o : {complete, ranks}) EXPECT_THAT(o.err, Not(HasSubstr("→")));
}

// From a checkout it is the launcher that was typed, and of an installed program its name.
TEST(InUse, TheCommandThatContinuesIsTheOneThatWasTyped) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 1), file = folder / "small.h5";
  ASSERT_THAT(test::run(harness_job(2, "sweep " + config)).exit_code, Not(1));
  const std::string launcher = test::source_dir() + "/harness";
  const auto from_checkout =
      test::run("HARNESS_BINARY='" + test::program_path() + "' " + launcher + " sweep --resume " + file);
  EXPECT_THAT(from_checkout.err, HasSubstr("`mpirun -np 2 " + launcher + " sweep --resume " + file + "`"));
  std::filesystem::create_symlink(test::program_path(), folder / "harness");
  const auto installed = test::run("PATH='" + (folder / ".") + "':$PATH harness sweep --resume " + file);
  EXPECT_THAT(installed.err, HasSubstr("`mpirun -np 2 harness sweep --resume " + file + "`"));
}

TEST(InUse, AnOutputThatCannotBeWrittenIsNamedBeforeThePreparation) {
  const TemporaryFolder folder;
  const auto o = test::run(harness_job(2, "sweep " + write_small_config(folder, 1) + " -o /proc/x.h5"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("/proc"));
  EXPECT_THAT(o.err, Not(HasSubstr("checking that all ranks")));
  EXPECT_THAT(o.err, AnyOf(HasSubstr("MiB"), HasSubstr("cannot write to the directory")));  // the second unless root
}

}  // namespace
}  // namespace harness
