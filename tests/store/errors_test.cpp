// Every failure to create, write or read a file gives its own clear Error, and leaves no files behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "sample.h"
#include "store/atomic_file.h"
#include "store/columns.h"
#include "store/hdf5_file.h"
#include "support/errors.h"
#include "support/files.h"

// HDF5 1.10 leaks memory if a file cannot be closed for lack of space. The leak sanitizer reads this suppression.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5";
}

namespace harness::store {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class StoreErrors : public ::testing::Test {
 protected:
  std::string create(const std::string& path, bool overwrite = false) {
    return test::error_of([&] { ResultFile::create(path, sample_plan(), overwrite); });
  }
  static std::string read(const std::string& path) {
    return test::error_of([&] { read_result(path); });
  }
  static int entries(const std::string& path) {
    return static_cast<int>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
};

TEST_F(StoreErrors, AnExistingFileIsKeptUnlessForced) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(create(path_), HasSubstr("already exists"));
  EXPECT_EQ(fs::file_size(path_), 8u);
  EXPECT_EQ(entries(folder_ / ""), 1);  // without a temporary file
  EXPECT_EQ(create(path_, true), "");
  EXPECT_EQ(read(path_), "");
}

TEST_F(StoreErrors, MissingDirectoriesAreMade) {
  EXPECT_EQ(create(folder_ / "a/b/c.h5"), "");
  EXPECT_EQ(read(folder_ / "a/b/c.h5"), "");
  EXPECT_EQ(entries(folder_ / "a/b"), 1);
}

TEST_F(StoreErrors, PlacesThatCannotHoldAFile) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT(create(folder_ / "file/r.h5"), HasSubstr("cannot create the directory"));
  EXPECT_THAT(create(folder_ / ""), HasSubstr("names a directory"));
  fs::create_directory(folder_ / "there");
  EXPECT_THAT(create(folder_ / "there", true), HasSubstr("is a directory"));
  EXPECT_THAT(create("/dev/full", true), HasSubstr("not a regular file"));
  EXPECT_THAT(create("/proc/nowhere/r.h5"), HasSubstr("cannot create the directory"));
}

// The temporary name is longer, and must still be valid.
TEST_F(StoreErrors, NamesAsLongAsTheyMayBe) {
  const std::string longest = std::string(252, 'n') + ".h5";
  EXPECT_EQ(create(folder_ / longest), "");
  EXPECT_EQ(read(folder_ / longest), "");
  EXPECT_EQ(entries(folder_ / ""), 1);
  std::string wide = "a";
  for (int i = 0; i < 127; ++i) wide += "ü";
  EXPECT_EQ(create(folder_ / wide), "");
  EXPECT_THAT(create(folder_ / ("n" + longest)), HasSubstr("File name too long"));
}

// Root may write anywhere: drops root's privileges temporarily.
class WithoutPrivilege {
 public:
  WithoutPrivilege() : before_(geteuid()) {
    if (before_ == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~WithoutPrivilege() { EXPECT_EQ(seteuid(before_), 0); }

 private:
  uid_t before_;
};

TEST_F(StoreErrors, PlacesWithoutPermission) {
  fs::permissions(folder_ / "", fs::perms::all);
  const WithoutPrivilege nobody;
  fs::create_directory(folder_ / "closed");
  fs::permissions(folder_ / "closed", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(create(folder_ / "closed/r.h5"), HasSubstr("cannot write to the directory"));
  EXPECT_THAT(create(folder_ / "closed/further/r.h5"), HasSubstr("cannot create the directory"));
  EXPECT_EQ(create(path_), "");
  fs::permissions(path_, fs::perms::owner_read);
  EXPECT_EQ(read(path_), "");
  EXPECT_THAT(test::error_of([&] { ResultFile{path_}; }), HasSubstr("cannot be opened for writing"));
  fs::permissions(path_, fs::perms::none);
  EXPECT_THAT(read(path_), HasSubstr("Permission denied"));
  EXPECT_THAT(read("/proc/1/nowhere/r.h5"), HasSubstr("no such file"));
}

// Simulates a full disk by a limit on file size: writes beyond it fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : before_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, before_);
  }

 private:
  sighandler_t before_;
  rlimit old_{};
};

TEST_F(StoreErrors, ADiskThatFillsUpDuringCreationLeavesNothing) {
  for (const rlim_t bytes : {100, 5000, 20000, 100000}) {
    std::string message;
    {
      const FileSizeLimit limit(bytes);
      message = create(path_);
    }
    EXPECT_THAT(message, HasSubstr("File too large")) << bytes;
    EXPECT_EQ(entries(folder_ / ""), 0) << bytes;
  }
  EXPECT_EQ(create(path_), "");  // no leftover prevents it
}

TEST_F(StoreErrors, TooLittleSpaceIsNamedWithTheAmount) {
  const FileSizeLimit limit(100000);
  EXPECT_THAT(create(path_), HasSubstr("File too large; the result needs up to 2 MiB there"));
  EXPECT_THAT(test::error_of([&] { require_space(path_, std::int64_t{1} << 62); }),
              HasSubstr(path_ + " cannot be written: the result needs up to 4096 PiB there, and the disk has "));
  EXPECT_EQ(test::error_of([&] { require_space(path_, 1); }), "");
}

TEST_F(StoreErrors, TheSpaceThatIsAskedForIsEnough) {
  for (const int rounds : {1, 40}) {
    Result plan = sample_plan(16, rounds);
    plan.timeline.resize(5000);
    plan.totals.resize(300);
    write_result(path_, plan);
    const auto bytes = static_cast<std::int64_t>(fs::file_size(path_));
    EXPECT_GE(most_bytes(plan), bytes);
    EXPECT_LE(most_bytes(plan), bytes + (3 << 20));
  }
}

// The exit handler of the HDF5 library once crashed on the remains of a failed creation.
TEST_F(StoreErrors, AFailureLetsTheProgramEndInOrder) {
  for (const rlim_t bytes : {100, 5000, 20000, 100000}) {
    EXPECT_EXIT(
        {
          const FileSizeLimit limit(bytes);
          create(path_);
          std::exit(3);
        },
        ::testing::ExitedWithCode(3), "")
        << bytes;
  }
  EXPECT_EXIT(
      {
        const Result plan = sample_plan();
        const auto file = ResultFile::create(path_, plan, true);
        const FileSizeLimit limit(4096);
        test::error_of([&] { write_sample(*file, plan, 11); });
        std::exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST_F(StoreErrors, AWriteThatFailsSaysSo) {
  const Result plan = sample_plan();
  auto file = ResultFile::create(path_, plan, false);
  {
    const FileSizeLimit limit(4096);
    EXPECT_THAT(test::error_of([&] { write_sample(*file, plan, 11); }), HasSubstr("File too large"));
  }
  file.reset();
  EXPECT_EQ(read_result(path_).blocks[11].status, BlockStatus::pending);
}

TEST_F(StoreErrors, FilesThatAreNoResults) {
  EXPECT_THAT(read(path_), HasSubstr("no such file"));
  EXPECT_THAT(read(folder_ / ""), HasSubstr("is a directory"));
  std::ofstream(path_) << "";
  EXPECT_THAT(read(path_), HasSubstr("not an HDF5 file"));
  std::ofstream(path_) << std::string(10000, 'x');
  EXPECT_THAT(read(path_), HasSubstr("not an HDF5 file"));
  hdf5::File::create(folder_ / "other.h5").close();
  EXPECT_THAT(read(folder_ / "other.h5"), HasSubstr("not a harness result"));
}

TEST_F(StoreErrors, ANewerSchemaIsRefusedByName) {
  hdf5::File file = hdf5::File::create(path_);
  file.set_attribute("/", "schema", std::string("harness-result"));
  const std::int64_t newer = schema_version + 1;
  file.write_attribute("/", "schema_version", hdf5::Element::of(hdf5::Kind::int64), &newer);
  file.set_attribute("/", "tool_version", std::string("9.8.7"));
  file.close();
  EXPECT_THAT(read(path_), HasSubstr(fmt::format("9.8.7 with file schema {}", schema_version + 1)));
}

TEST_F(StoreErrors, FilesThatAreCutShortOrHollow) {
  ResultFile::create(path_, sample_plan(), false)->finish(RunState::complete);
  const auto whole = fs::file_size(path_);
  const std::string copy = folder_ / "copy.h5";
  for (const double part : {0.02, 0.3, 0.7, 0.999}) {
    fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, static_cast<std::uintmax_t>(static_cast<double>(whole) * part));
    EXPECT_THAT(read(copy), HasSubstr("truncated to")) << part;
  }
  hdf5::File hollow = hdf5::File::create(folder_ / "hollow.h5");
  hollow.set_attribute("/", "schema", std::string("harness-result"));
  const std::int64_t version = 1;
  hollow.write_attribute("/", "schema_version", hdf5::Element::of(hdf5::Kind::int64), &version);
  hollow.close();
  EXPECT_THAT(read(folder_ / "hollow.h5"), HasSubstr("damaged or was not written by harness"));
}

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

// The unfinished file has the same permissions.
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
