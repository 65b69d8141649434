// The only reader of input files: its results, and that no file makes it wait or fill the memory.
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "base/text.h"
#include "support/files.h"

namespace harness {
namespace {

using ::testing::HasSubstr;

// Every length around the sizes at which the reader grows its buffer, with limits around that length.
TEST(ReadFile, ReadsEveryLengthUpToTheLimit) {
  const test::TemporaryFolder folder;
  for (const std::size_t length : {0, 1, 4095, 4096, 4097, 4098, 8193, 8194, 100000}) {
    std::string text(length, 'x');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 31);
    const std::string path = folder.write("file", text);
    for (const std::size_t limit : {length, length + 1, std::size_t{1} << 20}) {
      EXPECT_TRUE(read_file(path, limit) == text) << length << " of " << limit;
    }
    if (length == 0) continue;
    for (const std::size_t limit : {length - 1, length / 2, std::size_t{0}}) {
      const FileText refused = try_read_file(path, limit), cut = try_read_file(path, limit, TooLong::cut);
      EXPECT_THAT(refused.problem, HasSubstr("it is longer than")) << length << " of " << limit;
      EXPECT_TRUE(refused.text.empty());
      EXPECT_TRUE(cut && cut.text == text.substr(0, limit)) << length << " of " << limit;
    }
  }
}

TEST(ReadFile, ReadsWhatTheKernelMakesUp) {
  EXPECT_THAT(read_file("/proc/self/status", 1 << 20), HasSubstr("Pid:"));
  EXPECT_EQ(try_read_file("/proc/self/status", 4, TooLong::cut).text.size(), 4u);
}

TEST(ReadFile, RefusesAtOnceWhatIsNoRegularFile) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{AF_UNIX, {}};
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const std::string& path : {folder / "pipe", folder / "socket", std::string("/dev/zero"), std::string("/dev/tty"),
                                  std::string("/dev/null")}) {
    for (const TooLong too_long : {TooLong::refused, TooLong::cut}) {
      EXPECT_EQ(try_read_file(path, 100, too_long).problem,
                "cannot be read: it is a device or pipe, not a regular file")
          << path;
    }
  }
  EXPECT_EQ(try_read_file(folder.path(), 100).problem, "cannot be read: it is a directory");
}

// A sparse file, larger than any memory.
TEST(ReadFile, DoesNotReadAFileThatIsTooLong) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("sparse", "");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 42), 0);
  EXPECT_EQ(try_read_file(path, 1 << 20).problem, "cannot be read: it is longer than 1 MiB");
  EXPECT_EQ(try_read_file(path, 5000, TooLong::cut).text, std::string(5000, '\0'));
}

TEST(ReadFile, SaysWhyThereIsNothing) {
  const test::TemporaryFolder folder;
  const FileText file = try_read_file(folder / "absent", 100);
  EXPECT_TRUE(file.missing);
  EXPECT_EQ(file.problem, "cannot be read: No such file or directory");
  const std::string path = folder.write("file", "text");
  EXPECT_EQ(try_read_file(path + "/below", 100).problem, "cannot be read: Not a directory");
  EXPECT_THAT([&] { read_file(folder / "absent", 100); },
              ::testing::ThrowsMessage<Error>(folder / "absent" + " cannot be read: No such file or directory"));
}

}  // namespace
}  // namespace harness
