// A result changes hands without a block lost, a file overwritten or a number in the wrong table.
#include "store/result_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "other_process.h"
#include "sample.h"
#include "store/imprint.h"
#include "store/open_result.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Purpose = ResultPlace::Purpose;

std::unique_ptr<ResultPlace> take_quietly(const std::string& path) {
  return ResultPlace::take(path, Purpose::create, 1000, [](const std::string&) {});
}

// Writes a block at every word, and says what became of it.
const OtherProcess::Role writer("writer", [](const OtherProcess::Side& side, const std::string& path) {
  const Result plan = sample_plan();
  const auto place = take_quietly(path);
  const auto file = place->create(plan, {});
  side.say("began");
  for (int block = 0;; ++block) {
    side.wait();
    if (!place->is_mine()) {
      file->finish(RunState::partial);
      place->give_up();
    }
    write_sample(*file, plan, block);
    side.say("wrote " + std::to_string(block));
  }
});

// Writes a block after its last look.
const OtherProcess::Role late_writer("late writer", [](const OtherProcess::Side& side, const std::string& path) {
  const Result plan = sample_plan();
  const auto place = take_quietly(path);
  const auto file = place->create(plan, {});
  side.say(place->is_mine() ? "mine" : "lost");
  side.wait();
  write_sample(*file, plan, 7);
  side.say(place->is_mine() ? "mine" : "lost");
  side.wait();
  file->finish(RunState::partial);
  place->give_up();
});

class Places : public ::testing::Test {
 protected:
  std::unique_ptr<ResultPlace> take(Purpose purpose, std::int64_t bytes = 1000) {
    return ResultPlace::take(path_, purpose, bytes, [this](const std::string& text) { said_ += text + "\n"; });
  }
  static Environment elsewhere(const std::string& period_s) {
    return {{"HARNESS_TEST_BOOT_ID", "another"}, {"HARNESS_TEST_SIGN_OF_LIFE_S", period_s}};
  }
  int blocks_in(const std::string& path) {
    const Result result = read_result(path);
    return static_cast<int>(std::ranges::count(result.blocks, BlockStatus::ok, &ResultBlock::status));
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static ino_t inode(const std::string& path) { return id_of(path).value().inode; }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5", said_;
  Result plan_ = sample_plan();
};

TEST_F(Places, AWholeLifeLeavesTheFileAlone) {
  const auto place = take(Purpose::create);
  EXPECT_EQ(entries(), std::vector<std::string>{"r.h5.owner.1"});  // the space has no name
  EXPECT_THAT(test::error_of([&] { read_result(path_); }), HasSubstr("no such file yet; in preparation: "));
  auto file = place->create(plan_, {});
  write_sample(*file, plan_, 0);
  EXPECT_THAT(read_result(path_).standing, ::testing::StartsWith("running: "));
  EXPECT_TRUE(place->is_mine());
  file->finish(RunState::partial);
  file.reset();
  place->release();
  EXPECT_EQ(entries(), std::vector<std::string>{"r.h5"});
  EXPECT_EQ(read_result(path_).standing, "");
  const ino_t before = inode(path_);
  const auto again = take(Purpose::resume);
  file = again->resume();
  EXPECT_NE(inode(path_), before);
  EXPECT_EQ(read_result(path_).state, RunState::running);
  write_sample(*file, plan_, 1);
  file->finish(RunState::complete);
  file.reset();
  again->release();
  EXPECT_EQ(entries(), std::vector<std::string>{"r.h5"});  // the one before had ended: nobody needs the old file
  EXPECT_EQ(blocks_in(path_), 2);
  EXPECT_EQ(said_, "");
}

TEST_F(Places, OfAProcessThatIsGoneNothingRemains) {
  OtherProcess other({}, writer, path_);
  ASSERT_EQ(other.line(), "began");
  other.go();
  ASSERT_EQ(other.line(), "wrote 0");
  EXPECT_THAT(test::error_of([&] { take(Purpose::resume)->release(); }), HasSubstr("is in use by"));
  EXPECT_THAT(test::error_of([&] { take(Purpose::replace)->release(); }), HasSubstr("is in use by"));
  other.end();
  EXPECT_THAT(read_result(path_).standing, ::testing::StartsWith("killed: "));
  const auto place = take(Purpose::resume);
  place->resume().reset();
  EXPECT_EQ(blocks_in(path_), 1);
  place->release();
  EXPECT_EQ(entries(), std::vector<std::string>{"r.h5"});
  EXPECT_EQ(said_, "");
}

// Elsewhere nobody can know whether who is silent is dead. He was stopped, comes back and must not touch what is new.
TEST_F(Places, WhoComesBackKeepsWhatHeHasAndTouchesNothing) {
  for (const Purpose purpose : {Purpose::resume, Purpose::replace}) {
    OtherProcess other(elsewhere("0.1"), writer, path_);
    ASSERT_EQ(other.line(), "began");
    other.go();
    ASSERT_EQ(other.line(), "wrote 0");
    EXPECT_THAT(read_result(path_).standing, HasSubstr("unfinished, last sign of life 20"));
    const ino_t before = inode(path_);
    other.send(SIGSTOP);
    const auto place = take(purpose);
    auto file = purpose == Purpose::resume ? place->resume() : place->create(plan_, {});
    EXPECT_THAT(said_, HasSubstr("the old " + path_ + " is now " + path_ + ".replaced-"));
    EXPECT_NE(inode(path_), before);
    EXPECT_EQ(blocks_in(path_), purpose == Purpose::resume ? 1 : 0);
    other.send(SIGCONT);
    other.go();
    const std::string last = other.line();
    EXPECT_THAT(last, HasSubstr("was taken over by"));
    EXPECT_THAT(last, HasSubstr("(process " + std::to_string(getpid()) + ")"));
    const auto at = last.find("what it measured is in ");
    ASSERT_NE(at, std::string::npos) << last;
    const std::string kept = last.substr(at + 23);
    EXPECT_EQ(inode(kept), before);
    EXPECT_EQ(blocks_in(kept), 1);
    EXPECT_TRUE(place->is_mine());
    write_sample(*file, plan_, 5);
    file->finish(RunState::complete);
    file.reset();
    place->release();
    EXPECT_EQ(blocks_in(path_), purpose == Purpose::resume ? 2 : 1);
    EXPECT_EQ(entries().size(), 2u);
    fs::remove(kept);
    fs::remove(path_);
    said_.clear();
  }
}

// He was stopped after his last look, and writes a block before the next: into his own file.
TEST_F(Places, ABlockThatWasUnderWayStaysInItsOwnFile) {
  OtherProcess other(elsewhere("0.1"), late_writer, path_);
  ASSERT_EQ(other.line(), "mine");
  other.send(SIGSTOP);
  const auto place = take(Purpose::resume);
  const auto file = place->resume();
  other.send(SIGCONT);
  other.go();
  EXPECT_EQ(other.line(), "lost");
  EXPECT_EQ(blocks_in(path_), 0);
  other.go();
  const std::string last = other.line();
  const auto at = last.find("what it measured is in ");
  ASSERT_NE(at, std::string::npos) << last;
  EXPECT_EQ(blocks_in(last.substr(at + 23)), 1);
  place->release();
}

TEST_F(Places, AFileThatWasRemovedOrRenamedIsNoLongerItsOwn) {
  const auto place = take(Purpose::create);
  auto file = place->create(plan_, {});
  write_sample(*file, plan_, 0);
  fs::rename(path_, folder_ / "elsewhere.h5");
  EXPECT_FALSE(place->is_mine());
  file.reset();
  const std::string message = test::error_of([&] { place->give_up(); });
  EXPECT_THAT(message, HasSubstr("removed or renamed"));
  EXPECT_EQ(blocks_in(message.substr(message.rfind(' ') + 1)), 1);
  place->release();
}

TEST_F(Places, ForceKeepsWhateverWasThereBesideIt) {
  std::ofstream(path_) << "precious";
  const auto place = take(Purpose::replace);
  EXPECT_EQ(fs::file_size(path_), 8u);  // as long as there is nothing better
  place->create(plan_, {}).reset();
  place->release();
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_EQ(fs::file_size(folder_ / entries()[1]), 8u);
  EXPECT_THAT(said_, HasSubstr(entries()[1]));
}

// Made by an earlier version, and killed: nobody can say of whom, so the old file stays.
TEST_F(Places, AnUnfinishedFileThatNamesNobodyIsContinuedAndKept) {
  ResultFile::create(path_, plan_, {}, false).reset();
  EXPECT_EQ(read_result(path_).standing, "unfinished");
  const auto place = take(Purpose::resume);
  place->resume()->finish(RunState::complete);
  place->release();
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_EQ(read_result(path_).state, RunState::complete);
}

// `cp` of a file that is being written: its owner lives, but does not write this one.
TEST_F(Places, ACopyIsNobodys) {
  setenv("HARNESS_TEST_SIGN_OF_LIFE_S", "0.1", 1);
  const auto place = take(Purpose::create);
  const auto file = place->create(plan_, {});
  const std::string copy = folder_ / "copy.h5";
  fs::copy_file(path_, copy);
  const auto other = ResultPlace::take(copy, Purpose::resume, 0, [](const std::string&) {});
  other->resume().reset();
  EXPECT_TRUE(other->is_mine());
  EXPECT_TRUE(place->is_mine());
  other->release();
  place->release();
  unsetenv("HARNESS_TEST_SIGN_OF_LIFE_S");
}

TEST_F(Places, WhatALinkLeadsToIsClaimedAndNotTheLink) {
  fs::create_directory(folder_ / "there");
  fs::create_symlink(folder_ / "there/r.h5", path_);
  ResultFile::create(folder_ / "there/r.h5", plan_, {}, false)->finish(RunState::partial);
  const auto place = take(Purpose::resume);
  EXPECT_TRUE(fs::exists(folder_ / "there/r.h5.owner.1"));
  place->resume()->finish(RunState::complete);
  place->release();
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(read_result(path_).state, RunState::complete);
}

TEST_F(Places, TooLittleSpaceIsNamedAtTheStart) {
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit limit{1 << 20, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = test::error_of([&] { take(Purpose::create, 5 << 20)->release(); });
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, before);
  EXPECT_THAT(message, HasSubstr(path_ + " cannot be written: File too large; the result needs up to 5 MiB there"));
  EXPECT_TRUE(entries().empty());
  path_ = "/proc/r.h5";
  EXPECT_THAT(test::error_of([&] { take(Purpose::create, 5 << 20)->release(); }),
              HasSubstr("the result needs up to 5 MiB there"));
}

TEST_F(Places, TheSpaceThatIsAskedForIsEnough) {
  for (const int rounds : {1, 40}) {
    const Result plan = sample_plan(16, rounds);
    const ResultCapacity capacity{.intervals = 5000, .totals = 300};
    ResultFile::create(path_, plan, capacity, true).reset();
    EXPECT_GE(most_bytes(plan, capacity), static_cast<std::int64_t>(fs::file_size(path_)));
    EXPECT_LE(most_bytes(plan, capacity), static_cast<std::int64_t>(fs::file_size(path_)) + (3 << 20));
  }
}

}  // namespace
}  // namespace harness::store
