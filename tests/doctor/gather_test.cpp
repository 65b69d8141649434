// Facts from files: the kernel's formats, and hostile trees.
#include "doctor/facts.h"

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
  EXPECT_EQ(acs_in(read(test::configuration_space(0x1d))).text, "on");
  EXPECT_EQ(acs_in(read(test::configuration_space(0x01))).text, "off");  // it redirects nothing
  EXPECT_EQ(acs_in(read(std::string(4096, '\0'))).text, "off");
  EXPECT_EQ(acs_in(read(test::configuration_space(0, false))).access, machine::Access::unreadable);
  std::string circle = test::configuration_space(0);
  circle[0x160] = 0x01;  // no ACS, and the next capability is the first one again
  circle[0x162] = 0x01;
  circle[0x163] = 0x10;
  EXPECT_EQ(acs_in(read(circle)).text, "off");
}

// Impossible lane counts and speeds, and the lesser of a link's two ends.
TEST(Gather, ALinkHasWhatBothOfItsEndsCan) {
  test::Dgx tree;
  const std::string gpu = "sys/devices/" + test::gpu_place(0), above = "sys/devices/" + test::switch_port(1, 0),
                    key = "gpu/" + test::gpu_address(0);
  EXPECT_EQ(tree.facts().text(key + "/width_of_link"), "16");
  tree.write(above + "/max_link_width", "8");
  tree.write(above + "/max_link_speed", "16.0 GT/s PCIe");
  EXPECT_EQ(tree.facts().text(key + "/width_of_link"), "8");
  EXPECT_EQ(tree.facts().text(key + "/speed_of_link"), "16.0 GT/s PCIe");
  for (const char* text : {"63", "0", "255", "-1", "1e9", "nan", "Unknown", ""}) {
    tree.write(gpu + "/current_link_width", text);
    EXPECT_EQ(tree.facts()[key + "/width"].access, machine::Access::unreadable) << text;
  }
  tree.remove(gpu + "/current_link_width");
  EXPECT_EQ(tree.facts()[key + "/width"].why, "there is no such file");
}

TEST(Gather, AVirtualFunctionHasTheLinkOfItsPhysicalOne) {
  test::Dgx tree;
  const std::string function = "sys/devices/" + test::hca_place(0);
  tree.write(function + "/current_link_width", "0");
  tree.write(function + "/current_link_speed", "Unknown");
  EXPECT_EQ(tree.facts()["hca/mlx5_0/width"].access, machine::Access::unreadable);
  tree.link(function + "/physfn", "/sys/devices/" + test::hca_place(1));
  const Facts facts = tree.facts();
  EXPECT_EQ(facts.text("hca/mlx5_0/width"), "16");
  EXPECT_EQ(facts.text("hca/mlx5_0/width_of_link"), "16");
  EXPECT_EQ(facts.text("hca/mlx5_0/link_gbps"), facts.text("hca/mlx5_1/link_gbps"));
}

TEST(Gather, TheKernelsLogHasXidsAndLinks) {
  const Facts facts = kernel_events(
      "3,9,1,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n"
      "3,9,2,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n"
      "3,9,3,-;NVRM: Xid (PCI:0000:1b:00): no number\n"
      "3,9,4,-;nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n"
      "4,9,4,-;nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error\n"
      "6,9,4,-;mlx5_core 0000:9a:00.0 ens2np0: Link down\n"
      "3,9,5,-;bnxt_en 0000:9b:00.0 ens3np0: NIC Link is Down\n"
      "6,9,5,-;e1000 eth0: Link down\n");
  EXPECT_EQ(facts.text("log/severe_xid"), "79 at 0000:1b:00 (2 times)");
  EXPECT_EQ(facts.text("log/xid"), "none");
  EXPECT_EQ(facts.text("log/link_down"), "0000:9a:00.0 (1 time), 0000:9b:00.0 (1 time)");
  EXPECT_EQ(facts.text("log/fatal_sxid"), "20034 at 0000:06:00.0 (1 time)");
  EXPECT_EQ(facts.text("log/sxid"), "12028 at 0000:05:00.0 (1 time)");
}

// A copied log is read to its end, or is unknown.
TEST(Gather, ALongLogKeepsItsLastXid) {
  test::NodeTree tree("node");
  const std::string xid = "3,9,9,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n", line = "6,1,1,-;usb 1-1: new device\n";
  const auto severe = [&](std::size_t bytes) {
    std::string log;
    while (log.size() < bytes) log += line;
    tree.write_bytes("dev/kmsg", log + xid);
    return tree.facts()["log/severe_xid"];
  };
  EXPECT_EQ(severe(500'000).text, "79 at 0000:1b:00 (1 time)");
  EXPECT_EQ(severe(2'000'000).access, machine::Access::unreadable);
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
  tree.link("usr/lib/libnccl.so.2", "/opt/nccl/lib/libnccl.so.2.27.3");  // the same file again
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
  EXPECT_EQ(facts.text("missing_files"), "none");
}

// Azure's images name the file of the topology there; a container may have one of the two.
TEST(Gather, AFileThatNcclsFileNames) {
  test::NodeTree tree("vm");
  tree.write("etc/nccl.conf", "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml\nNCCL_NET_PLUGIN=ofi,/opt/libnccl-net.so");
  EXPECT_EQ(gather_rank(tree.path()).text("missing_files"),
            "NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml, NCCL_NET_PLUGIN=/opt/libnccl-net.so");
  tree.write("opt/libnccl-net.so", "");
  tree.write("opt/microsoft/ndv5-topo.xml", "");
  EXPECT_EQ(gather_rank(tree.path()).text("missing_files"), "none");
}

TEST(Gather, OnlyTheRealRootLocksMemoryBeyondItsLimit) {
  const std::string root = "CapEff:\t000001ffffffffff\n", user = "CapEff:\t0000000000000000\n",
                    all_users = "0          0 4294967295", one_user = "0       1000          1";
  EXPECT_TRUE(locks_beyond_limit(root, all_users));
  EXPECT_TRUE(locks_beyond_limit(root, ""));  // a kernel without user namespaces
  EXPECT_FALSE(locks_beyond_limit(root, one_user));
  EXPECT_FALSE(locks_beyond_limit(user, all_users));
}

TEST(Gather, HowAdaptersReachTheMemoryOfGpus) {
  test::Dgx tree;
  const auto way = [&] { return tree.facts()["driver/gpu_direct"]; };
  EXPECT_EQ(way().text, "sys/module/nvidia_peermem/version");
  tree.remove("sys/module/nvidia_peermem");
  EXPECT_EQ(way().text, "dma-buf");
  tree.write("proc/sys/kernel/osrelease", "5.10.0-30-amd64");
  EXPECT_EQ(way().text, "none");
  tree.write("proc/sys/kernel/osrelease", "6.8.0");
  tree.add_driver(false);
  EXPECT_EQ(way().text, "none");
  tree.remove("proc/driver/nvidia/version");
  EXPECT_EQ(way().access, machine::Access::unreadable);
}

TEST(Gather, EveryFactOfANodeIsALine) {
  test::Dgx tree("dgx01", "Ethernet");
  tree.write("etc/nccl.conf", "# a comment\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\nNCCL_PROTO = LL\nrubbish");
  const Facts facts = tree.facts();
  EXPECT_EQ(facts.under("nccl_conf"), (std::vector<std::string>{"NCCL_ALGO", "NCCL_PROTO "}));
  EXPECT_EQ(facts.text("nccl_conf/NCCL_ALGO"), "Ring");
  EXPECT_EQ(facts.text("nccl_conf/NCCL_PROTO "), " LL");
  EXPECT_EQ(facts.text("driver/version"), "570.86.15");
  EXPECT_EQ(facts.text("cpu/governor"), "performance");
  EXPECT_EQ(facts.text("port/mlx5_0/1/roce_addresses"), "3");
  EXPECT_EQ(facts.text("port/mlx5_0/1/interface_mtu"), "9000");
  EXPECT_EQ(facts.text("gpu/0000:13:00.0/driver"), "nvidia");
  EXPECT_EQ(pci_path(facts, "gpu/0000:13:00.0"),
            (std::vector<std::string>{"0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0"}));
  for (const auto& [name, reading] : facts) EXPECT_EQ(reading.text.find('\n'), std::string::npos) << name;
}

// An adapter in switchdev mode has an interface for each virtual function, too.
TEST(Gather, TheMtuIsThatOfThePortsOwnInterface) {
  test::Dgx tree("dgx01", "Ethernet");
  const std::string adapter = "sys/class/infiniband/mlx5_0/", fact = "port/mlx5_0/1/interface_mtu";
  tree.write(adapter + "device/net/enp0r0/mtu", "1500");
  tree.write("sys/class/net/enp0r0/mtu", "1500");
  EXPECT_EQ(tree.facts().text(fact), "1500");
  tree.write(adapter + "ports/1/gid_attrs/ndevs/0", "ens0np0");
  EXPECT_EQ(tree.facts().text(fact), "9000");
  tree.write(adapter + "ports/1/gid_attrs/ndevs/0", "of_another_container");
  EXPECT_EQ(tree.facts().text(fact), "1500");
}

// Intel's driver without its preference setting saves power.
TEST(Gather, TheGovernorIsThatOfAllCpus) {
  test::NodeTree tree("node");
  const auto governor = [&] { return tree.facts().text("cpu/governor"); };
  const std::string cpu = "sys/devices/system/cpu/cpu{}/cpufreq/";
  tree.write(fmt::format(fmt::runtime(cpu), 3) + "scaling_governor", "powersave");
  EXPECT_EQ(governor(), "performance 7, powersave 1");
  for (int i = 0; i < 8; ++i) {
    tree.write(fmt::format(fmt::runtime(cpu), i) + "scaling_governor", "powersave");
    tree.write(fmt::format(fmt::runtime(cpu), i) + "energy_performance_preference", "performance");
  }
  EXPECT_EQ(governor(), "powersave, preferring performance");
}

// A copy of /proc and /sys without /dev gives no facts about devices. A container without a device reports it missing.
TEST(Gather, WithoutDevNothingIsSaidOfDevices) {
  test::Dgx tree;
  tree.remove("dev/infiniband");
  EXPECT_EQ(tree.facts().text("hca/mlx5_0/verbs"), "no");
  tree.remove("dev");
  const Facts facts = tree.facts();
  for (const char* name : {"hca/mlx5_0/verbs", "log/xid"})
    EXPECT_EQ(facts[name].access, machine::Access::unreadable) << name;
  EXPECT_FALSE(gather_rank(tree.path()).has("gpu/" + test::gpu_address(0)));
  const Diagnosis diagnosis = diagnose({tree.node(8)});
  EXPECT_EQ(exit_code(diagnosis, true), 0) << ::testing::PrintToString(test::worth_reading(diagnosis));
}

// Pipes, symlink cycles, huge files, folders instead of files, random bytes: reads are bounded in size and time.
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
        std::filesystem::resize_file(file, 1ull << 40);  // sparse: endless zeros
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
  const Node node = tree.node(8);  // returns
  EXPECT_NO_THROW(diagnose({node, node}));
  EXPECT_LT(node.facts.size(), 20000u);
}

// A container or a control group gives a rank only some of the GPUs that /proc shows.
TEST(GatherRank, TellsWhichGpusItMayUse) {
  test::Dgx tree;
  tree.remove("dev/nvidia3");
  const Facts facts = gather_rank(tree.path());
  EXPECT_EQ(facts.text("gpu/" + test::gpu_address(2)), "yes");
  EXPECT_EQ(facts.text("gpu/" + test::gpu_address(3)), "no");
}

// A driver call that hangs: the node reports the other facts and which one is missing. The thread is left behind, so
// the objects it waits for live as long as the program.
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
  // The limit grows until a busy machine has had the time to read the files.
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
