#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "other_process.h"
#include "sample.h"
#include "store/atomic_file.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace harness::store {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Writes a part of a file, and gets no further.
const OtherProcess::Role interrupted("interrupted", [](const OtherProcess::Side& side, const std::string& path) {
  const AtomicFile file(path, true);
  std::ofstream(file.temporary_path()) << "a part";
  side.say(file.temporary_path());
  side.wait();
});

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// Long names are cut, so that there is room for the writer's.
class LeftBehind : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(NameLengths, LeftBehind, ::testing::Values(4, 200, 250, 255),
                         ::testing::PrintToStringParamName());

TEST_P(LeftBehind, IsRemovedOnceItsWriterIsGone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / std::string(GetParam(), 'x');
  OtherProcess other({}, interrupted, path);
  const std::string temporary = other.line();
  ASSERT_TRUE(std::filesystem::exists(temporary)) << temporary;
  { const AtomicFile beside_the_living(path, true); }
  EXPECT_TRUE(std::filesystem::exists(temporary)) << "its writer lives";
  other.send(SIGSTOP);
  { const AtomicFile beside_the_stopped(path, true); }
  EXPECT_TRUE(std::filesystem::exists(temporary)) << "a stopped process lives";
  other.end();
  { const AtomicFile after_the_dead(path, true); }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(AtomicFile, LeavesTheFilesOfOthersAlone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  OtherProcess of_another_file({}, interrupted, folder / "b.h5");
  const std::filesystem::path second = of_another_file.line();
  of_another_file.end();
  const std::string first = ".a.h5.00000000-1-1-abcdef01.tmp";
  folder.write(first, "of another boot");
  folder.write(".a.h5.notes.tmp", "mine");
  folder.write(".a.h5.tmp", "mine");
  folder.write("a.h5.1-2-3-4.tmp", "mine");
  { const AtomicFile file(path, true); }
  EXPECT_THAT(names_in(folder.path()),
              UnorderedElementsAre(first, second.filename(), ".a.h5.notes.tmp", ".a.h5.tmp", "a.h5.1-2-3-4.tmp"));
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status;
}

class KeptPermissions : public ::testing::TestWithParam<mode_t> {
 protected:
  void SetUp() override { ResultFile::create(path_, sample_plan(), {}, true)->finish(RunState::partial); }
  void give_away() {
    ASSERT_EQ(::chmod(path_.c_str(), GetParam()), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(path_.c_str(), 12345, 23456), 0);
    }
  }
  void expect_kept(const char* by) {
    const struct stat status = status_of(path_);
    EXPECT_EQ(status.st_mode & 07777, GetParam()) << by;
    if (::geteuid() != 0) return;
    EXPECT_EQ(status.st_uid, 12345u) << by;
    EXPECT_EQ(status.st_gid, 23456u) << by;
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
};

TEST_P(KeptPermissions, StayAsTheyAre) {
  give_away();
  ResultFile::create(path_, sample_plan(), {}, true)->finish(RunState::partial);
  expect_kept("--force");
  rewrite_result(path_, read_result(path_));
  expect_kept("more rounds");
  AtomicFile page(path_, true);
  std::ofstream(page.temporary_path()) << "a page";
  page.put_in_place();
  expect_kept("a page");
}

// Nobody reads it before it is whole, either.
TEST_P(KeptPermissions, HoldForTheUnfinishedFile) {
  give_away();
  AtomicFile page(path_, true);
  std::ofstream(page.temporary_path()) << "";
  page.protect();
  EXPECT_EQ(status_of(page.temporary_path()).st_mode & 07777, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Modes, KeptPermissions, ::testing::Values(0600, 0640, 0644, 0660, 0666, 0604));

TEST(PermissionsOfANewFile, AreTheUsersOwn) {
  const test::TemporaryFolder folder;
  const mode_t before = ::umask(027);
  ResultFile::create(folder / "r.h5", sample_plan(), {}, false);
  ::umask(before);
  EXPECT_EQ(status_of(folder / "r.h5").st_mode & 07777, 0640u);
}

}  // namespace

}  // namespace harness::store
