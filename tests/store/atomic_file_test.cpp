#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "sample.h"
#include "store/atomic_file.h"
#include "support/files.h"

namespace harness::store {
namespace {

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status;
}

class KeptPermissions : public ::testing::TestWithParam<mode_t> {
 protected:
  void SetUp() override { ResultFile::create(path_, sample_plan(), true)->finish(RunState::partial); }
  void give_away() {
    ASSERT_EQ(::chmod(path_.c_str(), GetParam()), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(path_.c_str(), ::geteuid(), 23456), 0);
    }
  }
  void expect_kept(const char* by) {
    const struct stat status = status_of(path_);
    EXPECT_EQ(status.st_mode & 07777, GetParam()) << by;
    if (::geteuid() == 0) {
      EXPECT_EQ(status.st_gid, 23456u) << by;
    }
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
};

TEST_P(KeptPermissions, StayAsTheyAre) {
  give_away();
  ResultFile::create(path_, sample_plan(), true)->finish(RunState::partial);
  expect_kept("--force");
  write_result(path_, read_result(path_));
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

INSTANTIATE_TEST_SUITE_P(Modes, KeptPermissions, ::testing::Values(0600, 0640, 0666));

TEST(PermissionsOfANewFile, AreTheUsersOwn) {
  const test::TemporaryFolder folder;
  const mode_t before = ::umask(027);
  ResultFile::create(folder / "r.h5", sample_plan(), false);
  ::umask(before);
  EXPECT_EQ(status_of(folder / "r.h5").st_mode & 07777, 0640u);
}

}  // namespace

}  // namespace harness::store
