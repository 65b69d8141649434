// Facts from files: what the kernel's formats mean, and trees that mean harm.
#include "doctor/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "machine/cpus.h"
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
      "3,9,4,-;nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n"
      "4,9,4,-;nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error\n"
      "6,9,4,-;mlx5_core 0000:9a:00.0 ens2np0: Link down\n"
      "6,9,5,-;e1000 eth0: Link down\n");
  EXPECT_EQ(facts.text("log/xid/79"), "0000:1b:00 (2 times)");
  EXPECT_EQ(facts.text("log/link_down"), "0000:9a:00.0 (1 time)");
  EXPECT_EQ(facts.text("log/sxid_fatal/20034"), "0000:06:00.0 (1 time)");
  EXPECT_EQ(facts.text("log/sxid/12028"), "0000:05:00.0 (1 time)");
  EXPECT_EQ(facts.size(), 4u);
}

TEST(Gather, TheLinkersFoldersAreSearchedInItsOrder) {
  test::NodeTree tree("node");
  tree.write("etc/ld.so.conf", "# a comment\n/usr/local/lib\ninclude /etc/ld.so.conf.d/*.conf");
  tree.write("etc/ld.so.conf.d/nvidia.conf", "/opt/nccl/lib");
  tree.write("etc/ld.so.conf.d/notes", "/nowhere");
  const machine::Tree root(tree.path());
  const auto folders = library_folders(root, "/opt/hpcx/lib::relative:/opt/ofi");
  EXPECT_EQ((std::vector<std::string>(folders.begin(), folders.begin() + 4)),
            (std::vector<std::string>{"/opt/hpcx/lib", "/opt/ofi", "/usr/local/lib", "/opt/nccl/lib"}));
  tree.write("opt/nccl/lib/libnccl.so.2.27.3", "");
  tree.link("opt/nccl/lib/libnccl.so.2", "libnccl.so.2.27.3");
  tree.write("usr/lib64/libnccl.so.2", "");
  tree.link("usr/lib/libnccl.so.2", "/opt/nccl/lib/libnccl.so.2.27.3");  // the same file once more
  tree.write("usr/lib64/libnccl-net-ofi.so", "");
  tree.link("usr/lib64/libnccl-net.so", "gone.so");
  Facts facts;
  gather_libraries(root, facts);
  EXPECT_EQ(facts.text("library/libnccl.so.2"), "/opt/nccl/lib/libnccl.so.2.27.3, /usr/lib64/libnccl.so.2");
  EXPECT_EQ(facts.text("library/libnccl-net-ofi.so"), "/usr/lib64/libnccl-net-ofi.so");
  EXPECT_FALSE(facts.has("library/libnccl-net.so"));
}

TEST(Gather, ARankTellsWhatItIsBoundTo) {
  const Facts facts = gather_rank("/");
  EXPECT_EQ(facts.text("bound/cpus"), machine::list_of(machine::bound_cpus()));
  EXPECT_EQ((machine::cpus_in(facts.text("bound/allowed")) & machine::bound_cpus()), machine::bound_cpus());
  EXPECT_NE(facts["bound/memory_policy"].access, machine::Access::absent);
}

TEST(Gather, OptionsOfTheKernelAreThoseOfItsVersion) {
  test::NodeTree tree("node");
  EXPECT_EQ(tree.facts()["kernel/dmabuf"].access, machine::Access::absent);
  tree.write("boot/config-6.8.0-45-generic", "CONFIG_X=y\nCONFIG_DMA_SHARED_BUFFER=y");
  EXPECT_EQ(tree.facts().text("kernel/dmabuf"), "yes");
  tree.write("boot/config-6.8.0-45-generic", "CONFIG_X=y\n# CONFIG_DMA_SHARED_BUFFER is not set");
  EXPECT_EQ(tree.facts().text("kernel/dmabuf"), "no");
}

TEST(Gather, EveryFactOfANodeIsALine) {
  test::Dgx tree("dgx01", "Ethernet");
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
  EXPECT_EQ(tree.facts().text("cpu/quota"), "none");
  tree.write("proc/self/cgroup", "0::/a/b");
  tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  tree.write("sys/fs/cgroup/a/cpu.max", "250000 100000");
  tree.write("sys/fs/cgroup/cpu.max", "800000 100000");
  EXPECT_EQ(tree.facts().text("cpu/quota"), "2.50");
  tree.write("proc/self/cgroup", "3:cpu,cpuacct:/q");
  tree.write("sys/fs/cgroup/cpu/q/cpu.cfs_quota_us", "50000");
  tree.write("sys/fs/cgroup/cpu/q/cpu.cfs_period_us", "100000");
  EXPECT_EQ(tree.facts().text("cpu/quota"), "0.50");
  tree.make_unreadable("proc/self/cgroup");
  EXPECT_EQ(tree.facts()["cpu/quota"].access, machine::Access::unreadable);
  tree.remove("proc/self/cgroup");
  EXPECT_EQ(tree.facts()["cpu/quota"].access, machine::Access::absent);
}

TEST(Gather, WhetherBoostWouldRaiseAClock) {
  test::NodeTree tree("node");
  const auto headroom = [&] { return tree.facts()["cpu/boost_headroom"]; };
  EXPECT_EQ(headroom().access, machine::Access::absent);
  const auto put = [&](int cpu, const char* highest, const char* nominal) {
    const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/acpi_cppc/", cpu);
    tree.write(folder + "highest_perf", highest);
    tree.write(folder + "nominal_perf", nominal);
  };
  put(0, "108", "108");
  EXPECT_EQ(headroom().text, "no");
  put(5, "255", "180");  // a faster kind of core
  EXPECT_EQ(headroom().text, "yes");
  tree.make_unreadable("sys/devices/system/cpu/cpu0/acpi_cppc/nominal_perf");
  EXPECT_EQ(headroom().access, machine::Access::unreadable);
}

// A copy of /proc and /sys without /dev says nothing of devices; a container without a device says that it is missing.
TEST(Gather, WithoutDevNothingIsSaidOfDevices) {
  test::Dgx tree;
  tree.write("sys/module/gdrdrv/version", "2.4");
  tree.remove("dev/infiniband");
  EXPECT_EQ(tree.facts().text("hca/mlx5_0/verbs"), "no");
  EXPECT_EQ(tree.facts().text("driver/gdrcopy"), "no device");
  tree.remove("dev");
  const Facts facts = tree.facts();
  for (const char* name : {"hca/mlx5_0/verbs", "driver/gdrcopy", "log"})
    EXPECT_EQ(facts[name].access, machine::Access::unreadable) << name;
  EXPECT_FALSE(gather_rank(tree.path()).has("gpu/" + test::gpu_address(0)));
  const Diagnosis diagnosis = diagnose({tree.node(8)});
  EXPECT_EQ(exit_code(diagnosis, true), 0) << ::testing::PrintToString(test::worth_reading(diagnosis));
}

TEST(Gather, FilesThatSettingsOfNcclName) {
  test::NodeTree tree("vm");
  tree.write("opt/topo.xml", "<system/>");
  tree.write("etc/nccl.conf", "NCCL_TOPO_FILE=/opt/topo.xml\nNCCL_GRAPH_FILE=/opt/graph.xml\nNCCL_CONF_FILE=here.conf");
  const Facts facts = tree.facts();
  EXPECT_EQ(facts.text("exists//opt/topo.xml"), "yes");
  EXPECT_EQ(facts.text("exists//opt/graph.xml"), "no");
  EXPECT_EQ(facts["exists/here.conf"].access, machine::Access::absent);
  const auto lines = test::worth_reading(diagnose({tree.node(1)}));
  EXPECT_THAT(lines,
              ::testing::IsSupersetOf(
                  {std::string("warn env.files: NCCL_GRAPH_FILE=/opt/graph.xml: the file is not there, and NCCL "
                               "goes on without it"),
                   std::string("unknown env.files: the file of NCCL_CONF_FILE=here.conf cannot be read: its path "
                               "depends on the job's folder")}));
}

// Pipes, circles of links, huge files, folders where files belong, rubbish: everything is read to its bound, in time.
TEST(HostileTree, NeitherHangsNorLies) {
  test::Dgx tree;
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

// A container or a control group leaves a rank some of the GPUs that /proc shows.
TEST(GatherRank, TellsWhichGpusItMayUse) {
  test::Dgx tree;
  tree.remove("dev/nvidia3");
  const Facts facts = gather_rank(tree.path());
  EXPECT_EQ(facts.text("gpu/" + test::gpu_address(2)), "yes");
  EXPECT_EQ(facts.text("gpu/" + test::gpu_address(3)), "no");
}

// Mounted with hidepid, /proc shows one's own processes alone.
TEST(GatherDriver, HiddenProcessesAreNotMissingOnes) {
  test::Dgx tree;
  EXPECT_EQ(tree.facts()["daemon"].access, machine::Access::absent);
  tree.remove("proc/1");
  EXPECT_EQ(tree.facts()["daemon"].why, "/proc does not show the processes of others (hidepid)");
  tree.remove("proc/812");
  const Facts facts = tree.facts();
  EXPECT_EQ(facts["daemon"].why, "/proc shows no process");
  EXPECT_FALSE(facts.has("daemon/fabric_manager"));
  tree.remove("proc");
  EXPECT_EQ(tree.facts()["daemon"].why, "there is no /proc");
  const test::TemporaryFolder empty;
  EXPECT_EQ(why_nothing(gather_node(empty.path(), {}, 20)), "there is no /proc");
}

TEST(GatherDriver, TheFabricManagersVersionIsThatOfItsLastStart) {
  test::Dgx tree;
  EXPECT_EQ(tree.facts().text("fabric_manager/version"), "570.86.15");
  tree.write("var/log/fabricmanager.log", "nothing of the kind");
  EXPECT_EQ(tree.facts()["fabric_manager/version"].access, machine::Access::unreadable);
  tree.remove("var/log/fabricmanager.log");
  EXPECT_EQ(tree.facts()["fabric_manager/version"].access, machine::Access::absent);
}

TEST(GatherSystem, StealTimeIsAShareOfAllTime) {
  test::NodeTree tree("guest");
  EXPECT_EQ(tree.facts().text("cpu/steal_since_start"), "0.0000");
  tree.write("proc/stat", "cpu  100 0 100 600 0 0 0 200 50 0");
  EXPECT_EQ(tree.facts().text("cpu/steal_since_start"), "0.2000");
  EXPECT_FALSE(tree.facts().has("cpu/steal"));  // another root stands still
  tree.write("proc/stat", "cpu  rubbish");
  EXPECT_FALSE(tree.facts().has("cpu/steal_since_start"));
  tree.make_unreadable("proc/stat");
  EXPECT_EQ(tree.facts()["cpu/steal_since_start"].access, machine::Access::unreadable);
}

// A node whose files change while they are read.
TEST(HostileTree, MayChangeMeanwhile) {
  test::Dgx tree;
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
  static std::atomic<int> waiting = 0;
  test::Dgx tree;
  const auto hang = [] {
    ++waiting;
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --waiting;
    return machine::GpuReport{"late", "", {}};
  };
  // As long as a busy machine needs for the files.
  Facts facts;
  for (double limit_s = 1; limit_s < 100 && facts.text("unfinished") != "NVML"; limit_s *= 2)
    facts = gather_node(tree.path(), hang, limit_s);
  EXPECT_EQ(facts.text("unfinished"), "NVML");
  EXPECT_EQ(facts.under("gpu").size(), 8u);
  EXPECT_EQ(facts["nvml"].access, machine::Access::absent);
  release = true;
  while (waiting > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace harness::doctor
