// Configurations that cannot be read at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "config_files.h"
#include "support/temporary_folder.h"

namespace harness::config {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

TEST(BrokenFile, NotThere) {
  const TemporaryFolder folder;
  folder.write("laptop.yaml", test::issue_example());
  const std::string message = test::complaint(folder / "latpop.yaml");
  EXPECT_EQ(message, folder / "latpop.yaml" + ":1:1: cannot be read: No such file or directory; did you mean " +
                         folder / "laptop.yaml" + "?");
}

TEST(BrokenFile, NotAFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(test::complaint(folder / "."), folder / "." + ":1:1: cannot be read: it is a directory");
  EXPECT_EQ(test::complaint("/dev/zero"), "/dev/zero:1:1: cannot be read: it is a device or pipe, not a regular file");
  const std::string path = folder.write("laptop.yaml", test::issue_example()) + "/x.yaml";
  EXPECT_EQ(test::complaint(path), path + ":1:1: cannot be read: Not a directory");
}

TEST(BrokenFile, NoPermission) {
  const TemporaryFolder folder;
  const std::string path = folder.write("laptop.yaml", test::issue_example());
  namespace fs = std::filesystem;
  fs::permissions(path, fs::perms::none);
  fs::permissions(fs::path(path).parent_path(), fs::perms::all);
  const bool root = geteuid() == 0;  // root reads everything: be nobody for a moment
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const std::string message = test::complaint(path);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(message, path + ":1:1: cannot be read: Permission denied");
}

}  // namespace
}  // namespace harness::config
