// Who may write a result: one process at a time, whatever the clocks say, and without waiting for the dead for long.
#include "store/claim.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "other_process.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const Say quietly = [](const std::string&) {};

// Holds a claim until it is told to release it.
const OtherProcess::Role holder("holder", [](const OtherProcess::Side& side, const std::string& path) {
  const auto claim = Claim::take(path, quietly);
  side.say("held by " + claim->owner().token);
  side.wait();
  claim->release();
  side.say("released");
  side.wait();
});

// Looks again when it is told to.
const OtherProcess::Role superseded("superseded", [](const OtherProcess::Side& side, const std::string& path) {
  const auto claim = Claim::take(path, quietly);
  side.say(claim->holds() ? "mine" : "lost");
  side.wait();
  const auto successor = claim->successor();
  side.say((claim->holds() ? "mine" : "lost to ") + (successor ? successor->token : "nobody"));
  claim->release();
  side.say("released");
  side.wait();
});

const OtherProcess::Role contender("contender", [](const OtherProcess::Side& side, const std::string& path) {
  side.say("ready");
  side.wait();
  const auto claim = Claim::take(path, quietly);
  side.say("won");
  side.wait();
  // Nobody else may have come in meanwhile.
  const bool held = claim->holds();
  claim->release();
  side.say(held ? "still mine" : "lost");
});

const OtherProcess::Role bystander("bystander", [](const OtherProcess::Side& side, const std::string& /*path*/) {
  side.say(std::to_string(this_process().process_start));
  side.wait();
});

class Claims : public ::testing::Test {
 protected:
  // Elsewhere, and with another period where what is tested waits for its end.
  static Environment elsewhere(const std::string& period_s) {
    return {{"HARNESS_TEST_BOOT_ID", "another"}, {"HARNESS_TEST_SIGN_OF_LIFE_S", period_s}};
  }
  std::string refusal() {
    return test::error_of([&] { Claim::take(path_, quietly)->release(); });
  }
  int entries() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
};

TEST_F(Claims, AnOwnerIsReadAsItWasPrintedAndNothingElseIsOne) {
  Owner owner = this_process();
  owner.slurm_job = "88";
  const std::string text = print_owner(owner);
  EXPECT_LT(text.size(), owner_bytes);
  const auto read = parse_owner(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(print_owner(*read), text);
  EXPECT_THAT(describe(*read), HasSubstr("(process " + std::to_string(getpid()) + ", Slurm job 88), since 2"));
  for (std::size_t kept = 0; kept < text.size(); ++kept) EXPECT_FALSE(parse_owner(text.substr(0, kept))) << kept;
  for (const char bad : {'\n', '\x1b', '\0', '\xff'}) {
    std::string spoilt = text;
    spoilt[6] = bad;  // the first of the host's name
    EXPECT_FALSE(parse_owner(spoilt)) << static_cast<int>(bad);
  }
  EXPECT_FALSE(parse_owner(text + "x"));
  owner.user = std::string(2000, 'u');
  EXPECT_FALSE(parse_owner(print_owner(owner)));
}

TEST_F(Claims, ABeatHasAlwaysTheSameLength) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{42}, std::int64_t{999999999999}}) {
    const std::string text = print_beat({count, own_time(), std::chrono::milliseconds(5000)});
    EXPECT_EQ(text.size(), beat_bytes);
    const auto beat = parse_beat(text);
    ASSERT_TRUE(beat) << text;
    EXPECT_EQ(beat->count, count);
    EXPECT_EQ(beat->period.count(), 5000);
    EXPECT_FALSE(parse_beat(text.substr(1)));
    EXPECT_FALSE(parse_beat("x" + text.substr(1)));
  }
}

TEST_F(Claims, TheKernelKnowsItsProcessesAndNoOthers) {
  Owner self = this_process();
  EXPECT_EQ(process_of(self), Process::runs);
  ++self.process_start;  // another process had the number before
  EXPECT_EQ(process_of(self), Process::gone);
  OtherProcess other({}, bystander, "");
  Owner owner = this_process();
  owner.pid = other.pid();
  owner.process_start = std::stoll(other.line());
  EXPECT_EQ(process_of(owner), Process::runs);
  other.send(SIGSTOP);
  EXPECT_EQ(process_of(owner), Process::runs);
  other.send(SIGKILL);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(other.pid()), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(process_of(owner), Process::gone);  // although nobody has waited for it yet
  other.end();
  EXPECT_EQ(process_of(owner), Process::gone);
  owner.boot = "another";
  EXPECT_EQ(process_of(owner), Process::unknown);
}

TEST_F(Claims, OneIsRefusedWhileItsProcessRunsAndGivenAtOnceWhenItIsGone) {
  OtherProcess other({}, holder, path_);
  ASSERT_THAT(other.line(), HasSubstr("held by"));
  EXPECT_THAT(refusal(), HasSubstr("is in use by"));
  EXPECT_THAT(refusal(), HasSubstr("(process " + std::to_string(other.pid()) + ")"));
  other.send(SIGSTOP);  // who is stopped lives
  EXPECT_THAT(refusal(), HasSubstr("is in use by"));
  other.end();
  std::string said;
  const auto claim = Claim::take(path_, [&](const std::string& text) { said += text; });
  EXPECT_EQ(said, "");  // nobody had to wait
  ASSERT_EQ(claim->superseded().size(), 1u);
  EXPECT_EQ(claim->superseded()[0].life, Life::dead);
  EXPECT_EQ(entries(), 1);
  claim->release();
  EXPECT_EQ(entries(), 0);
}

TEST_F(Claims, ReleasedItIsFree) {
  OtherProcess other({}, holder, path_);
  ASSERT_THAT(other.line(), HasSubstr("held by"));
  other.go();
  ASSERT_EQ(other.line(), "released");
  EXPECT_EQ(entries(), 0);
  const auto claim = Claim::take(path_, quietly);
  EXPECT_TRUE(claim->superseded().empty());
  EXPECT_TRUE(claim->holds());
  claim->release();
}

// The clocks of two nodes ten minutes apart, in either direction: only the count counts.
TEST_F(Claims, ElsewhereACountThatMovesIsALifeAndOneThatDoesNotIsNone) {
  for (const char* offset_s : {"-600", "600"}) {
    Environment environment = elsewhere("1.5");
    environment["HARNESS_TEST_CLOCK_OFFSET_S"] = offset_s;
    OtherProcess other(environment, holder, path_);
    ASSERT_THAT(other.line(), HasSubstr("held by"));
    EXPECT_THAT(refusal(), HasSubstr("is in use by")) << offset_s;
    other.send(SIGSTOP);
    std::string said;
    const auto claim = Claim::take(path_, [&](const std::string& text) { said += text; });
    EXPECT_THAT(said, HasSubstr("watching for 5 s at most"));
    ASSERT_EQ(claim->superseded().size(), 1u);
    EXPECT_EQ(claim->superseded()[0].life, Life::silent);
    EXPECT_TRUE(claim->holds());
    other.send(SIGCONT);  // he may write his sign of life on, but not into what is mine
    other.go();
    EXPECT_EQ(other.line(), "released");
    EXPECT_TRUE(claim->holds());
    claim->release();
    EXPECT_EQ(entries(), 0);
  }
}

TEST_F(Claims, WhoWasSupersededKnowsIt) {
  OtherProcess other(elsewhere("0.1"), superseded, path_);
  ASSERT_EQ(other.line(), "mine");
  other.send(SIGSTOP);
  const auto claim = Claim::take(path_, quietly);
  other.send(SIGCONT);
  other.go();
  EXPECT_EQ(other.line(), "lost to " + claim->owner().token);
  EXPECT_EQ(other.line(), "released");
  EXPECT_TRUE(claim->holds());  // his release did not touch it
  claim->release();
}

// Else no number would be left for the next.
TEST_F(Claims, ANumberThatNoSweepReachesIsNoClaim) {
  for (const char* number : {"9223372036854775807", "9223372036854775806", "1000000001"})
    std::ofstream(path_ + ".owner." + number) << "x";
  const auto claim = Claim::take(path_, quietly);
  EXPECT_TRUE(claim->holds());
  claim->release();
}

TEST_F(Claims, OneThatIsHalfWrittenIsWatchedLikeAnyOther) {
  setenv("HARNESS_TEST_SIGN_OF_LIFE_S", "0.2", 1);
  const std::string half = path_ + ".owner.7";
  std::ofstream(half) << "0000";
  const auto claim = Claim::take(path_, quietly);
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(path_ + ".owner.8"));
  claim->release();
  // Somebody is just writing it. However late this thread comes, it comes before the end of the watch: it waits for it
  // to begin.
  setenv("HARNESS_TEST_SIGN_OF_LIFE_S", "5", 1);
  std::ofstream(half) << "0000";
  const std::string refused = test::error_of([&] {
    Claim::take(path_, [&](const std::string&) { std::ofstream(half, std::ios::app) << "0000001"; })->release();
  });
  unsetenv("HARNESS_TEST_SIGN_OF_LIFE_S");
  // What changed between two looks lives; what changed before the first look may have been all of it.
  EXPECT_THAT(refused, HasSubstr("in use by a sweep that has just begun"));
}

// Many at once, again and again, also over the claim of a dead one that all must watch first.
TEST_F(Claims, OfManyAtOnceOneHoldsIt) {
  for (int round = 0; round < 6; ++round) {
    if (round % 2 == 1) {
      OtherProcess dead(elsewhere("0.1"), holder, path_);
      ASSERT_THAT(dead.line(), HasSubstr("held by"));
    }
    std::vector<std::unique_ptr<OtherProcess>> all;
    for (int i = 0; i < 6; ++i) all.push_back(std::make_unique<OtherProcess>(Environment{}, contender, path_));
    for (auto& one : all) ASSERT_EQ(one->line(), "ready");
    for (auto& one : all) one->go();
    std::vector<OtherProcess*> winners;
    for (auto& one : all) {
      const std::string said = one->line();
      if (said == "won") winners.push_back(one.get());
      if (said != "won") {
        EXPECT_THAT(said, HasSubstr("is in use by"));
      }
    }
    ASSERT_EQ(winners.size(), 1u) << "round " << round;
    winners[0]->go();
    EXPECT_EQ(winners[0]->line(), "still mine");
  }
  EXPECT_EQ(entries(), 0);
}

// A list of the directory that is out of date: a lower number is free again, and its owner has not seen the higher one.
TEST_F(Claims, TheHigherNumberCountsHoweverTheLowerOneCameAbout) {
  setenv("HARNESS_TEST_SIGN_OF_LIFE_S", "0.2", 1);
  std::ofstream(path_ + ".owner.4") << "left";
  const auto claim = Claim::take(path_, quietly);
  unsetenv("HARNESS_TEST_SIGN_OF_LIFE_S");
  ASSERT_TRUE(fs::exists(path_ + ".owner.5"));
  std::ofstream(path_ + ".owner.1") << "late";
  EXPECT_TRUE(claim->holds());
  std::ofstream(path_ + ".owner.6") << "next";
  EXPECT_FALSE(claim->holds());
  claim->release();
  EXPECT_FALSE(fs::exists(path_ + ".owner.5"));
  EXPECT_TRUE(fs::exists(path_ + ".owner.1"));  // nobody's business but its own
}

// Between the list and the creation others may come, above and below: the list is read once more.
TEST_F(Claims, WhoComesMeanwhileIsSeenWhateverHisNumber) {
  setenv("HARNESS_TEST_SIGN_OF_LIFE_S", "0.2", 1);
  for (const char* other : {".owner.9", ".owner.5", ".owner.2"}) {
    std::ofstream(path_ + ".owner.4") << "left";
    const std::string his = print_beat({1, own_time(), beat_period()}) + print_owner(this_process());
    const Say somebody_comes = [&](const std::string&) { std::ofstream(path_ + other) << his; };
    EXPECT_THAT(test::error_of([&] { Claim::take(path_, somebody_comes)->release(); }), HasSubstr("is in use by"))
        << other;
    EXPECT_EQ(test::text_of(path_ + other), his);
    fs::remove(path_ + other);
    fs::remove(path_ + ".owner.4");
    EXPECT_EQ(entries(), 0) << other;  // the number in between was given back
  }
  unsetenv("HARNESS_TEST_SIGN_OF_LIFE_S");
}

TEST_F(Claims, APlaceThatCannotBeWrittenIsNamed) {
  const auto refused = [](const std::string& path) {
    return test::error_of([&] { Claim::take(path, quietly)->release(); });
  };
  EXPECT_THAT(refused("/proc/r.h5"), HasSubstr("/proc/r.h5 cannot be written there: creating /proc/r.h5.owner.1"));
  EXPECT_THAT(refused(folder_ / "missing/r.h5"), HasSubstr("No such file or directory"));
  const std::string longest = std::string(252, 'n') + ".h5";
  EXPECT_EQ(refused(folder_ / longest), "");
  EXPECT_EQ(entries(), 0);
}

}  // namespace
}  // namespace harness::store
