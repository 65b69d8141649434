#include "machine/tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace harness::machine {
namespace {

// The line of a process of this name, in this state, that began 4242 ticks after the boot.
std::string stat(const std::string& name, const std::string& state) {
  return "71 (" + name + ") " + state + " 1 71 71 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2\n";
}

TEST(Process, IsToldFromALaterOneOfItsNumber) {
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
  EXPECT_FALSE(host_name().empty());
}

}  // namespace
}  // namespace harness::machine
