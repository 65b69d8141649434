#include "nccl/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace harness::nccl {
namespace {

// Under a name that others foresee, they could put a file of theirs, which would be read as NCCL's.
TEST(LogFile, IsWhereNobodyElseMayLookAndIsGoneAfterwards) {
  const test::TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  {
    const LogFile first, second;
    const std::filesystem::path path = std::getenv("NCCL_DEBUG_FILE");
    struct stat status {};
    ASSERT_EQ(::stat(path.parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
    std::ofstream(path) << "NCCL INFO";
    EXPECT_EQ(second.take(4), "NCCL");
    std::ofstream(path) << "more";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ::setenv("TMPDIR", "/proc/self", 1);
  EXPECT_EQ(LogFile().take(4), "") << "without a place for it there is no log";
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace harness::nccl
