// Reads below a root with arbitrary content: bounded, never outside the root, and with the reason for each failure.
#include "machine/tree.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <thread>

#include "support/files.h"

namespace harness::machine {
namespace {

namespace fs = std::filesystem;

TEST(Tree, AFileThatIsThereIsRead) {
  const test::TemporaryFolder root;
  root.write("proc/version", "  one \ntwo\n");
  const Tree tree(root.path());
  EXPECT_EQ(tree.bytes("proc/version").text, "  one \ntwo\n");
  EXPECT_EQ(tree.line("proc/version").text, "one");
  EXPECT_EQ(tree.head("proc/version", 5).text, "  one");
  EXPECT_EQ(tree.names("proc").names, std::vector<std::string>{"version"});
  EXPECT_TRUE(tree.exists("proc/version"));
}

TEST(Tree, AbsentAndUnreadableDiffer) {
  const test::TemporaryFolder root;
  root.write("binary", std::string("\x7f\x45\x00\x01", 4));
  root.write("long", std::string(300 << 10, 'x'));
  ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
  fs::create_symlink("circle", root / "circle");
  const Tree tree(root.path());
  EXPECT_EQ(tree.line("nothing").access, Access::absent);
  EXPECT_EQ(tree.names("nothing").access, Access::absent);
  EXPECT_EQ(tree.line("long/below").access, Access::absent);
  EXPECT_EQ(tree.line("binary"), (Reading{Access::unreadable, "", "it is no text"}));
  EXPECT_EQ(tree.bytes("long"), (Reading{Access::unreadable, "", "it is longer than 256 KiB"}));
  EXPECT_EQ(tree.head("long", 10).text, "xxxxxxxxxx");
  EXPECT_EQ(tree.bytes("pipe"), (Reading{Access::unreadable, "", "it is no plain file"}));
  EXPECT_EQ(tree.line("."), (Reading{Access::unreadable, "", "it is no plain file"}));
  EXPECT_EQ(tree.line("circle").access, Access::unreadable);
}

TEST(Tree, LinksStayBelowTheRoot) {
  const test::TemporaryFolder root;
  root.write("sys/devices/pci0000:00/0000:00:01.0/vendor", "0x10de\n");
  root.write("etc/secret", "inside\n");
  fs::create_directories(root / "sys/bus/pci/devices");
  fs::create_symlink("../../../devices/pci0000:00/0000:00:01.0", root / "sys/bus/pci/devices/0000:00:01.0");
  fs::create_symlink("/etc/secret", root / "absolute");
  fs::create_symlink("../../../../../../../../etc/passwd", root / "upwards");
  const Tree tree(root.path());
  EXPECT_EQ(tree.line("sys/bus/pci/devices/0000:00:01.0/vendor").text, "0x10de");
  EXPECT_EQ(tree.resolved("sys/bus/pci/devices/0000:00:01.0").text, "sys/devices/pci0000:00/0000:00:01.0");
  EXPECT_EQ(tree.line("absolute").text, "inside");
  EXPECT_EQ(tree.line("upwards").access, Access::absent);
}

TEST(Tree, LooksNamesAndTimeAreBounded) {
  const test::TemporaryFolder root;
  for (int i = 0; i < 20; ++i) root.write("many/" + std::to_string(i), "x");
  const Tree few(root.path(), {.file_bytes = 1024, .names = 10, .looks = 4, .seconds = 60});
  EXPECT_EQ(few.names("many").why, "it has more than 10 entries");
  EXPECT_EQ(few.line("many/1").text, "x");  // two looks: file type and content
  EXPECT_TRUE(few.exists("many/2"));
  EXPECT_EQ(few.line("many/3").why, "more than 4 files were looked at");
  const Tree late(root.path(), {.file_bytes = 1024, .names = 100, .looks = 100, .seconds = 0});
  EXPECT_EQ(late.line("many/1").why, "the 0 s for reading were over");
}

TEST(Tree, TheOwnMachinesFilesAreRead) {
  const Tree tree;
  ASSERT_TRUE(tree.is_own_machine());
  EXPECT_NE(tree.bytes("proc/self/status").text, "");
  EXPECT_EQ(tree.line("proc/sys/kernel/osrelease").access, Access::read);
  // A device is not opened at all.
  EXPECT_EQ(tree.bytes("dev/zero").why, "it is no plain file");
}

// While a path with ".." is resolved, the kernel gives up if any file on the machine is renamed.
TEST(Tree, FilesThatAreRenamedElsewhereDisturbNoReading) {
  const test::TemporaryFolder root, elsewhere;
  root.write("devices/a/b/c/width", "16");
  fs::create_directories(fs::path(root.path()) / "bus/pci/x/y");
  fs::create_symlink("../../../../devices/a/b/c", fs::path(root.path()) / "bus/pci/x/y/link");
  elsewhere.write("0", "");
  std::atomic<bool> done = false;
  std::thread renames([&] {
    for (int k = 0; !done; ++k) fs::rename(elsewhere / std::to_string(k % 2), elsewhere / std::to_string((k + 1) % 2));
  });
  const Tree tree(root.path(), {.seconds = 60});
  int read = 0;
  constexpr int readings = 10000;
  for (int k = 0; k < readings; ++k) read += tree.line("bus/pci/x/y/link/width").text == "16" ? 1 : 0;
  done = true;
  renames.join();
  EXPECT_EQ(read, readings);
}

TEST(Tree, ARootThatIsNoneTellsNothing) {
  const Tree tree("/no such place");
  EXPECT_EQ(tree.line("proc/version").why, "there is no such folder");
  EXPECT_EQ(tree.names("proc").why, "there is no such folder");
  EXPECT_FALSE(tree.exists("proc"));
}

// ---- What the words of files say.

// Returns the stat line of a process with this name and state, started 4242 ticks after the boot.
std::string stat(const std::string& name, const std::string& state) {
  return "71 (" + name + ") " + state + " 1 71 71 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2\n";
}

TEST(Process, IsToldFromALaterOneOfItsNumber) {
  const test::TemporaryFolder root;
  const auto process_state = [&](const std::string& text) {
    root.write("proc/71/stat", text);
    return state_of_process(71, root.path());
  };
  EXPECT_EQ(process_state(stat("sh", "S")).start_ticks, 4242);
  EXPECT_EQ(process_state(stat("a) Z 1 (b", "R")).start_ticks, 4242);
  EXPECT_FALSE(process_state(stat("a) Z 1 (b", "T")).ended);
  EXPECT_TRUE(process_state(stat("sh", "Z")).ended);
  for (const char* text : {"", "71 (sh", "71 (sh) S 1 2 3"}) EXPECT_EQ(process_state(text).start_ticks, -1) << text;
  EXPECT_GT(state_of_process(getpid()).start_ticks, 0);
  EXPECT_FALSE(state_of_process(getpid()).ended);
}

TEST(Process, ItsNumberMeansSomethingWithinABootAndANamespace) {
  const test::TemporaryFolder root;
  EXPECT_EQ(process_space(root.path()), "");
  root.write("proc/sys/kernel/random/boot_id", "0b1c\n");
  EXPECT_EQ(process_space(root.path()), "");
  root.write("proc/self/ns/other", "");
  std::filesystem::create_symlink("pid:[4026531836]", root / "proc/self/ns/pid");
  EXPECT_EQ(process_space(root.path()), "0b1c pid:[4026531836]");
}

TEST(Words, ThatAreNoFiniteNumberAreNone) {
  for (const char* word :
       {"inf", "INF", "infinity", "nan", "-nan", "nan(1)", "1e999", "-1", "-inf", "", "1x", " 1", "0x1"})
    EXPECT_FALSE(number(word)) << word;
  EXPECT_EQ(number("1.5e3"), 1500);
  EXPECT_EQ(number("0"), 0);
}

TEST(Ports, TellTheirState) {
  EXPECT_EQ(port_state_in("4: ACTIVE"), "ACTIVE");
  EXPECT_EQ(port_state_in("4: ACTIVE_DEFER\n"), "ACTIVE_DEFER");
  EXPECT_EQ(port_state_in(""), "");
}

TEST(Process, KnowsItsHost) {
  EXPECT_EQ(host_name(), Tree().line("proc/sys/kernel/hostname").text);
}

}  // namespace
}  // namespace harness::machine
