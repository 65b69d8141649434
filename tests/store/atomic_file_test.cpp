#include "store/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "other_process.h"
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

}  // namespace
}  // namespace harness::store
