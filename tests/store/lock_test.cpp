// Write access to a result: one process at a time, whatever name it uses for the file.
#include "store/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "other_process.h"
#include "sample.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Holds the lock until it is killed.
const OtherProcess::Role holder("holder", [](const OtherProcess::Side& side, const std::string& path) {
  const auto lock = Lock::take(path);
  side.say("held");
  side.wait();
});

// Checks its lock whenever told to.
const OtherProcess::Role checker("checker", [](const OtherProcess::Side& side, const std::string& path) {
  const auto lock = Lock::take(path);
  side.say("held");
  for (;;) {
    side.wait();
    lock->require();
    side.say("mine");
  }
});

const OtherProcess::Role contender("contender", [](const OtherProcess::Side& side, const std::string& path) {
  side.say("ready");
  side.wait();
  const auto lock = Lock::take(path);
  side.say("won");
  side.wait();
  lock->require();  // no other process may have taken it
  side.say("still mine");
  side.wait();
});

class Locks : public ::testing::Test {
 protected:
  static Owner on_boot(const std::string& boot) {
    Owner owner = this_process();
    owner.boot = boot;
    return owner;
  }
  static Owner in_slurm_job(const std::string& boot, const std::string& job, std::int64_t restarts) {
    Owner owner = on_boot(boot);
    owner.slurm_job = job;
    owner.slurm_restarts = restarts;
    return owner;
  }
  // Leaves a lock as a killed sweep elsewhere would.
  void leave(const Owner& owner) const { std::ofstream(lock_) << print_owner(owner); }
  std::string refusal(const std::string& path, const Owner& self = this_process()) const {
    return test::error_of([&] { Lock::take(path, self); });
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    return names;
  }
  test::TemporaryFolder folder_;
  std::string path_ = fs::canonical(folder_.path()) / "r.h5", lock_ = path_ + ".lock";
};

TEST_F(Locks, AnOwnerIsReadAsItWasPrintedAndNothingElseIsOne) {
  Owner owner = this_process();
  owner.slurm_job = "88";
  owner.slurm_restarts = 2;
  const std::string line = print_owner(owner);
  const auto read = parse_owner(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(print_owner(*read), line);
  EXPECT_THAT(describe(*read), HasSubstr("(process " + std::to_string(getpid()) + ", Slurm job 88), since 2"));
  for (std::size_t kept = 0; kept < line.size(); ++kept) EXPECT_FALSE(parse_owner(line.substr(0, kept))) << kept;
  for (const char bad : {'\n', '\x1b', '\0', '\xff', ' '}) {
    std::string spoilt = line;
    spoilt[line.find("host=") + 5] = bad;
    EXPECT_FALSE(parse_owner(spoilt)) << static_cast<int>(bad);
  }
  EXPECT_FALSE(parse_owner(line + "x"));
}

TEST_F(Locks, TheKernelKnowsItsProcessesAndNoOthers) {
  const Owner self = this_process();
  EXPECT_EQ(process_of(self), Process::runs);
  Owner earlier = self;  // an earlier process with this number
  ++earlier.process_start;
  EXPECT_EQ(process_of(earlier), Process::gone);
  OtherProcess other({}, holder, path_);
  ASSERT_EQ(other.line(), "held");
  const auto owner = parse_owner(test::text_of(lock_));
  ASSERT_TRUE(owner);
  EXPECT_EQ(process_of(*owner), Process::runs);
  other.send(SIGSTOP);
  EXPECT_EQ(process_of(*owner), Process::runs);
  other.send(SIGKILL);
  other.await_end();
  EXPECT_EQ(process_of(*owner), Process::gone);  // although not yet waited for
  other.end();
  EXPECT_EQ(process_of(*owner), Process::gone);
  EXPECT_EQ(process_of(*owner, on_boot("another")), Process::unknown);
}

TEST_F(Locks, OneIsRefusedWhileItsProcessRunsAndTakenOverWhenItIsGone) {
  OtherProcess other({}, holder, path_);
  ASSERT_EQ(other.line(), "held");
  const auto names_the_owner =
      AllOf(HasSubstr(path_ + " is in use by "), HasSubstr("(process " + std::to_string(other.pid()) + ")"),
            HasSubstr("`rm " + lock_ + "` frees the file"));
  EXPECT_THAT(refusal(path_), names_the_owner);
  other.send(SIGSTOP);
  EXPECT_THAT(refusal(path_), names_the_owner);
  other.end();
  Lock::take(path_)->require();
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(refusal(path_), "");
}

// The state of a process on another machine is unknown: the user must decide.
TEST_F(Locks, OfAnotherMachineItIsRefusedUntilSomebodyRemovesIt) {
  leave(on_boot("another"));
  const std::string refused = refusal(path_);
  EXPECT_THAT(refused, HasSubstr("is in use by "));
  const auto command = refused.find("`rm "), end = refused.find('`', command + 1);
  ASSERT_NE(end, std::string::npos) << refused;
  ASSERT_EQ(std::system(refused.substr(command + 1, end - command - 1).c_str()), 0);
  EXPECT_EQ(refusal(path_), "");
}

TEST_F(Locks, ARequeuedSlurmJobNeedsNobody) {
  leave(in_slurm_job("another", "88", 0));
  EXPECT_THAT(refusal(path_, in_slurm_job("this", "88", 0)), HasSubstr("Slurm job 88"));  // another step of the job
  EXPECT_THAT(refusal(path_, in_slurm_job("this", "89", 1)), HasSubstr("is in use by "));
  EXPECT_THAT(refusal(path_, in_slurm_job("this", "", 1)), HasSubstr("is in use by "));
  EXPECT_EQ(refusal(path_, in_slurm_job("this", "88", 1)), "");
  leave(in_slurm_job("another", "", 0));
  EXPECT_THAT(refusal(path_, in_slurm_job("this", "", 1)), HasSubstr("is in use by "));
  leave(in_slurm_job("another", "88", 2));  // a later start
  EXPECT_THAT(refusal(path_, in_slurm_job("this", "88", 1)), HasSubstr("is in use by "));
}

TEST_F(Locks, AProcessKnowsWhenItsLockIsTakenOverOrRemoved) {
  OtherProcess other({}, checker, path_);
  ASSERT_EQ(other.line(), "held");
  other.go();
  EXPECT_EQ(other.line(), "mine");
  other.send(SIGSTOP);
  fs::remove(lock_);
  {
    const auto lock = Lock::take(path_);
    other.send(SIGCONT);
    other.go();
    const std::string last = other.line();
    EXPECT_THAT(last, HasSubstr("was taken over by "));
    EXPECT_THAT(last, HasSubstr("(process " + std::to_string(getpid()) + ")"));
    lock->require();  // the end of the other process kept the new lock
  }
  OtherProcess another({}, checker, path_);
  ASSERT_EQ(another.line(), "held");
  fs::remove(lock_);
  another.go();
  EXPECT_THAT(another.line(), HasSubstr("was removed or renamed"));
}

TEST_F(Locks, AllNamesOfAResultMeetTheSameLock) {
  fs::create_directory(folder_ / "there");
  fs::create_directory_symlink(folder_ / "there", folder_ / "folder");
  fs::create_symlink("there/r.h5", folder_ / "link.h5");
  fs::create_symlink(folder_ / "link.h5", folder_ / "chain.h5");
  const std::string real = fs::canonical(folder_.path()) / "there/r.h5";
  const std::vector<std::string> names{real,
                                       folder_ / "folder/r.h5",
                                       folder_ / "link.h5",
                                       folder_ / "chain.h5",
                                       folder_ / "there/../folder/./r.h5",
                                       fs::relative(real, fs::current_path())};
  for (const bool there : {false, true}) {
    if (there) std::ofstream(real) << "x";
    for (const std::string& one : names) {
      const auto lock = Lock::take(one);
      EXPECT_EQ(lock->path(), real) << one;
      EXPECT_TRUE(fs::exists(real + ".lock")) << one;
      for (const std::string& other : names) EXPECT_THAT(refusal(other), HasSubstr("is in use by ")) << other;
    }
    EXPECT_EQ(refusal(folder_ / "another.h5"), "");
  }
}

TEST_F(Locks, OneThatDoesNotSayWhoseItIsNamesTheUserOfTheFile) {
  for (const char* text : {"", "token=12", "no lock of ours\n"}) {
    std::ofstream(lock_) << text;
    EXPECT_THAT(refusal(path_), AllOf(HasSubstr("is in use by user " + std::to_string(geteuid()) + ", since 20"),
                                      HasSubstr("`rm " + lock_ + "`")));
    EXPECT_EQ(test::text_of(lock_), text);
  }
}

// Many contenders at once, repeatedly, also for the stale lock of a killed process.
TEST_F(Locks, OfManyAtOnceOneHoldsIt) {
  for (int round = 0; round < 8; ++round) {
    if (round % 2 == 1) {
      OtherProcess dead({}, holder, path_);
      ASSERT_EQ(dead.line(), "held");
    }
    std::vector<std::unique_ptr<OtherProcess>> all;
    for (int i = 0; i < 6; ++i) all.push_back(std::make_unique<OtherProcess>(Environment{}, contender, path_));
    for (auto& one : all) ASSERT_EQ(one->line(), "ready");
    for (auto& one : all) one->go();
    std::vector<OtherProcess*> winners;
    for (auto& one : all) {
      const std::string said = one->line();
      if (said == "won") {
        winners.push_back(one.get());
      } else {
        EXPECT_THAT(said, HasSubstr("is in use by"));
      }
    }
    ASSERT_EQ(winners.size(), 1u) << "round " << round;
    winners[0]->go();
    EXPECT_EQ(winners[0]->line(), "still mine");
    winners[0]->end();  // killed: the next round also begins with a stale lock
    EXPECT_EQ(entries(), std::vector<std::string>{"r.h5.lock"});
  }
}

// The claim to remove a stale lock may be left by a process that was killed before it removed the lock.
TEST_F(Locks, AKilledTakerKeepsNobodyOut) {
  {
    OtherProcess dead({}, holder, path_);
    ASSERT_EQ(dead.line(), "held");
  }
  Owner taker = *parse_owner(test::text_of(lock_));
  const std::string claim = folder_ / (".r.h5." + taker.token + ".lock");
  taker.token = "0123456789abcdef";
  std::ofstream(claim) << print_owner(taker);
  const auto lock = Lock::take(path_);
  lock->require();
  EXPECT_EQ(entries(), std::vector<std::string>{"r.h5.lock"});
}

TEST_F(Locks, APlaceThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(refusal("/proc/r.h5"), HasSubstr("/proc/r.h5 cannot be written there: creating /proc/r.h5.lock failed"));
  EXPECT_THAT(refusal(folder_ / "missing/r.h5"), HasSubstr("No such file or directory"));
  EXPECT_EQ(refusal(folder_ / (std::string(252, 'n') + ".h5")), "");
  EXPECT_TRUE(entries().empty());
}

TEST_F(Locks, AReaderSaysWhetherTheSweepRuns) {
  EXPECT_EQ(preparation_of(path_), "");
  {
    OtherProcess other({}, holder, path_);
    ASSERT_EQ(other.line(), "held");
    EXPECT_THAT(test::error_of([&] { read_result(path_); }), HasSubstr("no such file; in preparation: "));
    const auto file = ResultFile::create(path_, sample_plan(), false);
    EXPECT_THAT(read_result(path_).standing, AllOf(StartsWith("running: "), HasSubstr(std::to_string(other.pid()))));
    EXPECT_EQ(standing_of(path_).writer, Process::runs);
    fs::create_symlink(path_, folder_ / "link.h5");
    EXPECT_EQ(standing_of(folder_ / "link.h5").writer, Process::runs);
    other.end();
    EXPECT_THAT(read_result(path_).standing, StartsWith("killed: "));
    EXPECT_EQ(standing_of(path_).writer, Process::gone);
    file->finish(RunState::complete);
    EXPECT_EQ(read_result(path_).standing, "");
    file->begin_session(2);
  }
  leave(on_boot("another"));
  EXPECT_THAT(read_result(path_).standing, AllOf(StartsWith("unfinished, last changed 20"), HasSubstr("locked by ")));
  EXPECT_EQ(standing_of(path_).writer, Process::unknown);
  fs::remove(lock_);
  EXPECT_THAT(read_result(path_).standing, StartsWith("unfinished, last changed 20"));
}

}  // namespace
}  // namespace harness::store
