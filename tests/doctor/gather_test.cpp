// Facts from files: what the kernel's formats mean, and trees that mean harm.
#include "doctor/gather.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "node_fixture.h"

namespace harness::doctor {
namespace {

machine::Reading read(std::string bytes) {
  return {machine::Access::read, std::move(bytes), {}};
}

TEST(Gather, TheAcsRegisterIsFoundInTheListOfCapabilities) {
  EXPECT_EQ(acs_control(read(test::configuration_space(0x1d))).text, "0x001d");
  EXPECT_EQ(acs_control(read(std::string(4096, '\0'))).text, "none");
  EXPECT_EQ(acs_control(read(test::configuration_space(0, false))).access, machine::Access::unreadable);
  std::string circle = test::configuration_space(0);
  circle[0x160] = 0x01;  // no ACS, and the next capability is the first again
  circle[0x162] = 0x01;
  circle[0x163] = 0x10;
  EXPECT_EQ(acs_control(read(circle)).text, "none");
}

TEST(Gather, TheLargestPrefetchableRegionCounts) {
  EXPECT_EQ(largest_bar_bytes("0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200\n"
                              "0x0000020000000000 0x0000021fffffffff 0x000000000014220c\n"),
            0x2000000000);
  EXPECT_EQ(largest_bar_bytes("0x0 0x0 0x0\n"), 0);
  EXPECT_EQ(largest_bar_bytes("rubbish"), 0);
}

TEST(Gather, TheKernelsLogHasXidsAndLinks) {
  const Facts facts = kernel_events(
      "3,9,1,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n"
      "3,9,2,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n"
      "3,9,3,-;NVRM: Xid (PCI:0000:1b:00): no number\n"
      "6,9,4,-;mlx5_core 0000:9a:00.0 ens2np0: Link down\n"
      "6,9,5,-;e1000 eth0: Link down\n");
  EXPECT_EQ(facts.text("log/xid/79"), "0000:1b:00 (2 times)");
  EXPECT_EQ(facts.text("log/link_down"), "0000:9a:00.0 (1 time)");
  EXPECT_EQ(facts.size(), 2u);
}

TEST(Gather, EveryFactOfANodeIsALine) {
  test::NodeTree tree("dgx01");
  test::add_dgx(tree, "Ethernet");
  tree.write("etc/nccl.conf", "# a comment\nNCCL_ALGO = Ring\nrubbish");
  const Facts facts = tree.facts();
  EXPECT_EQ(facts.text("nccl_conf/NCCL_ALGO"), "Ring");
  EXPECT_EQ(facts.text("driver/version"), "570.86.15");
  EXPECT_EQ(facts.text("cpu/governor"), "performance");
  EXPECT_EQ(facts.text("port/mlx5_0/1/roce_addresses"), "3");
  EXPECT_EQ(facts.text("hca/mlx5_0/mtu"), "9000");
  EXPECT_EQ(facts.text("gpu/0000:13:00.0/driver"), "nvidia");
  EXPECT_EQ(pci_path(facts, "gpu/0000:13:00.0"),
            (std::vector<std::string>{"0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0"}));
  EXPECT_EQ(facts.text("bridge/0000:11:00.0/above"), "0000:10:01.0");
  for (const auto& [name, reading] : facts) EXPECT_EQ(reading.text.find('\n'), std::string::npos) << name;
}

TEST(Gather, TheSmallestQuotaOfTheControlGroupsCounts) {
  test::NodeTree tree("pod");
  tree.write("proc/self/cgroup", "0::/a/b");
  tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  tree.write("sys/fs/cgroup/a/cpu.max", "250000 100000");
  tree.write("sys/fs/cgroup/cpu.max", "800000 100000");
  EXPECT_EQ(tree.facts().text("cpu/quota"), "2.50");
}

// Pipes, circles of links, huge files, folders where files belong, rubbish: everything is read to its bound, in time.
TEST(HostileTree, NeitherHangsNorLies) {
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  const std::string root = tree.path() + "/";
  std::mt19937 random(1);
  std::string rubbish(100000, '\0');
  for (char& c : rubbish) c = static_cast<char>(random());
  int turn = 0;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.path())) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    switch (++turn % 6) {
      case 0:
        std::filesystem::remove(file);
        ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
        break;
      case 1:
        tree.write_bytes(file.substr(root.size()), rubbish);
        break;
      case 2:
        std::filesystem::remove(file);
        std::filesystem::create_symlink(file, file);
        break;
      case 3:
        std::filesystem::resize_file(file, 1ull << 40);  // sparse: zeros without end
        break;
      case 4:
        std::filesystem::remove(file);
        std::filesystem::create_directory(file);
        break;
      default:
        tree.write_bytes(file.substr(root.size()), "");
    }
  }
  for (int i = 0; i < 3000; ++i)
    std::filesystem::create_symlink("..", root + fmt::format("sys/bus/pci/devices/x{}", i));
  const Node node = tree.node(8);  // comes back
  EXPECT_NO_THROW(diagnose({node, node}));
  EXPECT_LT(node.facts.size(), 20000u);
}

// A node whose files change while they are read.
TEST(HostileTree, MayChangeMeanwhile) {
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  std::atomic<bool> end = false;
  std::thread changes([&] {
    for (int i = 0; !end; ++i) {
      tree.write("sys/class/infiniband/mlx5_0/ports/1/rate", std::string(static_cast<std::size_t>(i % 5000), '4'));
      tree.remove("sys/bus/pci/devices/0000:13:00.0");
      tree.link("sys/bus/pci/devices/0000:13:00.0", "../../../devices/" + test::gpu_place(0));
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(diagnose({tree.node(1)}));
  end = true;
  changes.join();
}

// A driver that hangs: the node tells what it has, and what it waits for. The thread is left behind, so what it waits
// for lives as long as the program.
TEST(HostileDriver, DoesNotHoldUpTheRest) {
  static std::atomic<bool> release = false;
  static std::atomic<bool> released = false;
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  const auto hang = [] {
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    released = true;
    return machine::GpuReport{"late", "", {}};
  };
  const Facts facts = gather_node(tree.path(), hang, 2);
  EXPECT_EQ(facts.text("unfinished"), "NVML");
  EXPECT_EQ(facts.under("gpu").size(), 8u);
  EXPECT_EQ(facts["nvml"].access, machine::Access::absent);
  release = true;
  while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace harness::doctor
