// Whole nodes: each fault is found, and nothing else is reported.
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "node_fixture.h"

namespace harness::doctor {
namespace {

using Lines = std::vector<std::string>;

Lines told(const test::NodeTree& tree, int ranks = 8, const machine::GpuReport& gpus = test::healthy_gpus()) {
  return test::worth_reading(diagnose({tree.node(ranks, gpus)}));
}

// A fault of a DGX-like node, and all findings it causes.
struct Fault {
  std::function<void(test::NodeTree&)> make;
  Lines lines;
  std::string layer = "InfiniBand";
};

void write_ports(test::NodeTree& tree, const std::string& adapter, const NameValues& files) {
  for (const auto& [name, value] : files) tree.write("sys/class/infiniband/" + adapter + "/" + name, value);
}

const std::string no_address = "0000:0000:0000:0000:0000:0000:0000:0000";

// Adds two adapters of another kind for storage and management: one without a cable, one slower.
void add_others(test::NodeTree& tree) {
  for (const int number : {8, 9}) {
    tree.add_bridge(fmt::format("pci0000:80/0000:80:0{}.0", number), 0);
    tree.add_hca(fmt::format("pci0000:80/0000:80:0{0}.0/0000:8{0}:00.0", number), number, "Ethernet",
                 "100 Gb/sec (4X EDR)");
    write_ports(tree, fmt::format("mlx5_{}", number), {{"board_id", "MT_0000000224"}});
  }
  write_ports(tree, "mlx5_9", {{"ports/1/state", "1: DOWN"}});
}

TEST(Nodes, EachFaultIsFoundAndNothingElse) {
  const std::string lanes = "/current_link_width";
  const auto without_peermem = [](test::NodeTree& tree) { tree.remove("sys/module/nvidia_peermem"); };
  const std::vector<Fault> faults{
      {[&](auto& tree) { tree.write("sys/devices/" + test::hca_place(2) + lanes, "8"); },
       {"fail ib.pcie: adapter mlx5_2 carries 400 Gb/s, its PCIe link 252",
        "fail pcie.width: adapter mlx5_2 runs on 8 of 16 PCIe lanes"}},
      {[&](auto& tree) { tree.write("sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0" + lanes, "8"); },
       {"fail pcie.width: bridge 0000:21:00.0 runs on 8 of 16 PCIe lanes"}},
      {[&](auto& tree) {  // cards of eight lanes, below a switch and below a root port, in slots of sixteen
         add_others(tree);
         for (const std::string& card : {test::gpu_place(0), std::string("pci0000:80/0000:80:08.0/0000:88:00.0")}) {
           tree.write("sys/devices/" + card + "/max_link_width", "8");
           for (const std::string& end : {card, card.substr(0, card.rfind('/'))})
             tree.write("sys/devices/" + end + lanes, "8");
         }
       },
       {}},
      {[](auto& tree) {
         tree.write_bytes("sys/devices/" + test::switch_port(3, 1) + "/config", test::configuration_space(0x1d));
       },
       {"warn pcie.acs: ACS is on at bridge 0000:32:01.0: what GPUs and adapters send each other goes through the "
        "processor"}},
      {[](auto& tree) {
         tree.write_bytes("sys/devices/" + test::switch_port(3, 1) + "/config", test::configuration_space(0, false));
       },
       {"unknown pcie.acs: acs of bridge 0000:32:01.0 cannot be read: the kernel shows it to root only"}},
      {[&](auto& tree) {
         without_peermem(tree);
         tree.add_driver(false);
       },
       {"fail gdr.module: neither nvidia_peermem nor dma-buf: what GPUs send to other nodes goes through the host's "
        "memory"}},
      {without_peermem, {}},  // dma-buf suffices
      {[](auto& tree) {
         write_ports(tree, "mlx5_5", {{"ports/1/rate", "200 Gb/sec (4X HDR)"}});
       },
       {"fail ib.rate: port mlx5_5:1 has 200 Gb/sec (4X HDR), its equals 400 Gb/sec (4X NDR)"}},
      {[](auto& tree) {
         write_ports(tree, "mlx5_5", {{"ports/1/state", "2: INIT"}});
       },
       {"warn ib.state: port mlx5_5:1 is INIT (LinkUp); 7 of 8 ports of equal adapters are active"}},
      {add_others, {}},
      {[](auto& tree) {  // one board, whose ports are InfiniBand or Ethernet
         add_others(tree);
         write_ports(tree, "mlx5_8", {{"board_id", "MT_0000000838"}});
       },
       {}},
      {[](auto& tree) {  // a front-end without an address, or with small packets: NCCL has InfiniBand for each GPU
         add_others(tree);
         write_ports(tree, "mlx5_8", {{"ports/1/gids/3", no_address}, {"device/net/ens8np0/mtu", "1500"}});
       },
       {}},
      {[](auto& tree) {  // the same, as fast as NCCL's ports, but far from the GPUs
         add_others(tree);
         write_ports(tree, "mlx5_8", {{"ports/1/rate", "400 Gb/sec (4X NDR)"}, {"ports/1/gids/3", no_address}});
       },
       {}},
      {[](auto&) {}, {}, "Ethernet"},
      {[](auto& tree) {
         add_others(tree);
         write_ports(tree, "mlx5_8", {{"ports/1/gids/3", no_address}, {"device/net/ens8np0/mtu", "1500"}});
       },
       {},
       "Ethernet"},
      {[](auto& tree) {
         write_ports(tree, "mlx5_3", {{"ports/1/gids/3", no_address}});
         write_ports(tree, "mlx5_4", {{"device/net/ens4np0/mtu", "1500"}});
       },
       {"fail ib.gid: port mlx5_3:1 has no RoCE v2 address of IPv4",
        "warn ib.mtu: the interface of port mlx5_4:1 has an MTU of 1500: RDMA cannot send packets of 4096 bytes"},
       "Ethernet"},
      {[](auto& tree) {
         const std::string acks = "ports/1/hw_counters/local_ack_timeout_err";
         for (int i = 0; i < 8; ++i) write_ports(tree, fmt::format("mlx5_{}", i), {{acks, i == 3 ? "17" : "0"}});
       },
       {"info ib.errors: local_ack_timeout_err of mlx5_3:1 since the port was set up: 17"},
       "Ethernet"}};
  for (const Fault& fault : faults) {
    test::Dgx tree("dgx01", fault.layer);
    fault.make(tree);
    EXPECT_EQ(told(tree), fault.lines);
  }
}

TEST(Nodes, AGpuThatFellOffTheBus) {
  test::Dgx tree;
  tree.remove("proc/driver/nvidia/gpus/" + test::gpu_address(5));
  tree.write(
      "dev/kmsg",
      "6,1,1,-;Linux version 6.8.0\n3,99,5,-;NVRM: Xid (PCI:0000:35:00): 79, pid=1, GPU has fallen off the bus.");
  machine::GpuReport gpus = test::healthy_gpus();
  gpus.gpus.erase(gpus.gpus.begin() + 5);
  EXPECT_EQ(told(tree, 8, gpus), (Lines{"fail gpu.count: the bus has 8 GPUs, NVIDIA's driver 7: not 0000:35:00.0",
                                        "warn gpu.xid: Xid since the start: 79 at 0000:35:00 (1 time)"}));
}

TEST(Nodes, ANodeWithoutNvidiasDriver) {
  test::Dgx tree;
  tree.remove("proc/driver");
  for (int i = 0; i < 8; ++i) tree.remove(fmt::format("sys/devices/{}/driver", test::gpu_place(i)));
  const Diagnosis diagnosis = diagnose({tree.node(8)});
  EXPECT_EQ(diagnosis.lines.at(0).check, "gpu.count");
  EXPECT_EQ(diagnosis.lines.at(0).finding.remedy, "load NVIDIA's driver: `modprobe nvidia`, and see gpu.driver");
}

// Old kernels have groups without a type: whether they translate is unknown, not "off".
TEST(Nodes, AnOldKernelDoesNotTellWhatItsIommuDoes) {
  test::Dgx tree;
  tree.remove("sys/devices/" + test::gpu_place(0) + "/iommu_group/type");
  EXPECT_EQ(told(tree), Lines{"unknown pcie.iommu: iommu of GPU 0000:13:00.0 cannot be read: there is no such file"});
  tree.remove("sys/devices/" + test::gpu_place(0) + "/iommu_group");
  EXPECT_EQ(told(tree), Lines{});
}

// A hypervisor hides widths, speeds and NUMA nodes, and needs ACS: no fault.
TEST(Nodes, AVirtualMachine) {
  test::Dgx tree("vm01");
  tree.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu sse2 hypervisor\n");
  tree.write("sys/devices/system/node/online", "0");
  for (int i = 0; i < 8; ++i) {
    for (const std::string& place : {test::gpu_place(i), test::hca_place(i)}) {
      const std::string folder = "sys/devices/" + place + "/";
      for (const char* file : {"current_link_width", "max_link_width"}) tree.write(folder + file, "0");
      for (const char* file : {"current_link_speed", "max_link_speed"}) tree.write(folder + file, "Unknown");
      tree.write(folder + "numa_node", "-1");
      tree.write(folder + "iommu_group/type", "DMA");
    }
    tree.write_bytes("sys/devices/" + test::switch_port(1 + i / 2, i % 4) + "/config", test::configuration_space(0x1d));
  }
  for (int root = 1; root <= 4; ++root) {
    tree.write(fmt::format("sys/devices/pci0000:{0}0/0000:{0}0:01.0/0000:{0}1:00.0/current_link_width", root), "0");
  }
  machine::GpuReport gpus = test::healthy_gpus();
  for (machine::GpuHealth& gpu : gpus.gpus) gpu.pcie_width = gpu.pcie_max_width = std::nullopt;
  EXPECT_EQ(told(tree, 8, gpus), Lines{});
  for (machine::GpuHealth& gpu : gpus.gpus) gpu.pcie_width = gpu.pcie_max_width = 16;
  gpus.gpus[2].pcie_width = 8;
  EXPECT_EQ(told(tree, 8, gpus), Lines{"fail pcie.width: GPU 0000:23:00.0 runs on 8 of 16 PCIe lanes"});
}

// The driver's files and NVML are present, /sys is not, and the kernel log cannot be read.
TEST(Nodes, AContainerWithoutSys) {
  test::Dgx tree("pod-7");
  tree.write(".dockerenv", "");
  tree.remove("sys");
  tree.make_unreadable("dev/kmsg");
  const Lines both{"unknown gpu.xid: /dev/kmsg cannot be read: it is no plain file",
                   "unknown cpu.quota: the quota of CPU time cannot be read: there is no /sys/fs/cgroup"};
  EXPECT_EQ(told(tree), both);
}

// NVML and /proc show the container's two GPUs, /sys all eight of the node, of which six are far from its CPUs and have
// no adapter.
TEST(Nodes, AContainerWithSomeOfTheGpus) {
  for (const auto& [file, text] :
       {std::pair{".dockerenv", ""},
        {"proc/self/mountinfo", "25 21 0:49 / /proc/driver/nvidia ro,nosuid - tmpfs tmpfs rw,mode=555"}}) {
    test::Dgx tree("pod-8");
    tree.write(file, text);
    for (int i = 2; i < 8; ++i) {
      tree.remove("proc/driver/nvidia/gpus/" + test::gpu_address(i));
      tree.write(fmt::format("sys/devices/{}/local_cpulist", test::gpu_place(i)), "8-15");
      write_ports(tree, fmt::format("mlx5_{}", i), {{"ports/1/state", "1: DOWN"}});
    }
    EXPECT_EQ(told(tree, 2, test::healthy_gpus(2)),
              Lines{"info gpu.count: the bus has 8 GPUs, NVIDIA's driver 2: not 0000:23:00.0, 0000:25:00.0, "
                    "0000:33:00.0, 3 more; a container may have been given fewer"})
        << file;
  }
}

// A device plug-in of Kubernetes gives the pod one adapter; those of other pods have no address here, or no link.
TEST(Nodes, AContainerWithSomeOfTheAdapters) {
  test::Dgx tree("pod-9", "Ethernet");
  for (int i = 1; i < 8; ++i) {
    const std::string adapter = fmt::format("mlx5_{}", i);
    tree.remove(fmt::format("dev/infiniband/uverbs{}", i));
    write_ports(tree, adapter, {{"ports/1/gids/3", no_address}});
  }
  write_ports(tree, "mlx5_1", {{"ports/1/state", "1: DOWN"}});
  EXPECT_EQ(told(tree).size(), 3u);  // ib.state, ib.gid and ib.verbs: no container
  const Lines given{
      "info ib.verbs: adapter mlx5_1, adapter mlx5_2, adapter mlx5_3, 4 more: the container may have been given others "
      "only",
      "info topo.nearest: no active adapter that NCCL can take shares a PCIe bridge with 6 GPUs (0000:23:00.0, "
      "0000:25:00.0, 0000:33:00.0, 3 more): NCCL leaves GPUDirect RDMA off there"};
  tree.write("proc/self/mountinfo", "604 600 8:1 /pod /dev/termination-log rw - ext4 /dev/sda1 rw");  // CDI
  EXPECT_EQ(told(tree), given);
  tree.remove("proc/self/mountinfo");
  tree.write(".dockerenv", "");
  EXPECT_EQ(told(tree), given);
}

// No ECC, no NVLink, no GPUDirect RDMA, a small BAR: normal for GeForce.
TEST(Nodes, AGeForceBox) {
  test::NodeTree tree("desk");
  machine::GpuReport gpus{"", "570.86.15", {}};
  for (int i = 0; i < 2; ++i) {
    const std::string place = fmt::format("pci0000:00/0000:00:0{}.0/0000:0{}:00.0", i + 1, i + 1);
    tree.add_pci(place.substr(0, place.rfind('/')), "0x8086", "0x060400");
    tree.add_gpu(place, "NVIDIA GeForce RTX 4090");
    tree.write("sys/devices/" + place + "/class", "0x030000");
    tree.write("sys/devices/" + place + "/current_link_speed", "2.5 GT/s PCIe");  // idle
    machine::GpuHealth gpu;
    gpu.pci_bus_id = place.substr(place.rfind('/') + 1);
    gpu.name = "NVIDIA GeForce RTX 4090";
    gpu.persistence = true;
    gpu.processes = 0;
    gpu.bar1_bytes = 256 << 20;
    gpus.gpus.push_back(gpu);
  }
  tree.add_driver();
  tree.write("sys/devices/system/node/online", "0");
  EXPECT_EQ(told(tree, 2, gpus), Lines{});
}

// A tray of a rack: Arm, ACS must be on, the IOMMU translates, the fabric manager runs elsewhere.
TEST(Nodes, ATrayOfAnNvl72) {
  test::NodeTree tree("tray03");
  tree.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  machine::GpuReport gpus{"", "570.86.15", {}};
  for (int i = 1; i <= 4; ++i) {
    const std::string gpu = fmt::format("pci000{0}:00/000{0}:00:00.0/000{0}:01:00.0", i);
    tree.add_bridge(gpu.substr(0, gpu.rfind('/')), 0x1d);
    tree.add_gpu(gpu, "NVIDIA GB200");
    tree.write("sys/devices/" + gpu + "/iommu_group/type", "DMA");
    const std::string root = fmt::format("pci001{0}:00/001{0}:00:00.0", i),
                      upper = root + fmt::format("/001{0}:01:00.0", i);
    tree.add_bridge(root, 0x1d);
    tree.add_bridge(upper, 0x1d);
    tree.add_hca(upper + fmt::format("/001{0}:03:00.0", i), i - 1, "InfiniBand", "400 Gb/sec (4X NDR)");
    tree.write(fmt::format("sys/class/infiniband/mlx5_{}/device/iommu_group/type", i - 1), "DMA");
    machine::GpuHealth health = test::healthy_gpus(1).gpus[0];
    health.pci_bus_id = fmt::format("000{}:01:00.0", i);
    health.name = "NVIDIA GB200";
    health.bar1_bytes = std::nullopt;
    gpus.gpus.push_back(health);
  }
  tree.add_driver();
  EXPECT_EQ(told(tree, 4, gpus), Lines{});
}

// An Arm server with GPUs as cards is no Grace: its IOMMU is to pass addresses through.
TEST(Nodes, AnAltraWithCards) {
  test::Dgx tree("altra");
  tree.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(told(tree), Lines{});
  tree.write("sys/devices/" + test::gpu_place(0) + "/iommu_group/type", "DMA");
  EXPECT_EQ(
      told(tree),
      Lines{"warn pcie.iommu: the IOMMU translates the addresses of GPU 0000:13:00.0 (DMA): GPUDirect is slow or off"});
}

// The EFA driver always reports ACTIVE, and no rates or subnet.
TEST(Nodes, AnEfaNode) {
  test::Dgx tree("p5-1");
  for (int i = 0; i < 8; ++i) {
    const std::string device = fmt::format("sys/devices/{}/", test::hca_place(i));
    tree.write(device + "vendor", "0x1d0f");
    const std::string port = fmt::format("{}infiniband/mlx5_{}/ports/1/", device, i);
    tree.write(port + "link_layer", "Unspecified");
    tree.write(port + "lid", "0x0");
    tree.write(port + "sm_lid", "0x0");
    tree.write(port + "rate", "not known");
  }
  const Lines missing{
      "warn nccl.plugin_file: NCCL finds no plugin (libnccl-net.so), which EFA needs: it goes on without"};
  EXPECT_EQ(told(tree), missing);
  tree.write("usr/lib/x86_64-linux-gnu/libnccl-net-ofi.so", "");
  EXPECT_EQ(told(tree), missing);  // NCCL does not look for this name
  Node node = tree.node(8, test::healthy_gpus());
  for (const char* plugin : {"ofi", "another,ofi"}) {
    for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_NET_PLUGIN", plugin);
    EXPECT_EQ(test::worth_reading(diagnose({node})), Lines{}) << plugin;
  }
  for (Rank& rank : node.ranks) rank.facts.set("env/NCCL_IB_HCA", "bond_0");
  EXPECT_EQ(test::worth_reading(diagnose({node})),
            Lines{"info env.without_effect: NCCL_IB_HCA has no effect on EFA, which is no InfiniBand"});
  tree.write("usr/lib/x86_64-linux-gnu/libnccl-net.so", "");
  EXPECT_EQ(told(tree), Lines{});
}

// The H100 as a card has three bridges of four links, and NVML lists all 18 of the chip (azurehpc-health-checks, issue
// 162).
TEST(Nodes, CardsWithBridges) {
  test::Dgx tree;
  machine::GpuReport gpus = test::healthy_gpus();
  for (machine::GpuHealth& gpu : gpus.gpus) {
    gpu.name = "NVIDIA H100 NVL";
    gpu.fabric_state = gpu.fabric_status = std::nullopt;
    gpu.fabric_health = std::nullopt;
    for (const int link : {4, 5, 10, 11, 16, 17}) gpu.nvlinks[link] = false;
  }
  EXPECT_EQ(told(tree, 8, gpus), Lines{});
  gpus.gpus[2].nvlinks[0] = false;
  EXPECT_EQ(told(tree, 8, gpus), Lines{"fail gpu.nvlink: 11 of 12 NVLinks of GPU 0000:23:00.0 are active"});
  for (const int link : {1, 2, 3}) gpus.gpus[2].nvlinks[link] = false;  // a bridge
  EXPECT_EQ(told(tree, 8, gpus), Lines{"fail gpu.nvlink: 8 of 12 NVLinks of GPU 0000:23:00.0 are active"});
}

TEST(Nodes, ADegradedNvlinkFabric) {
  test::Dgx tree;
  machine::GpuReport gpus = test::healthy_gpus();
  gpus.gpus[0].fabric_health = 0x5;
  gpus.gpus[3].recovery_action = 1;
  EXPECT_EQ(
      told(tree, 8, gpus),
      (Lines{"fail gpu.recovery: the driver asks for action 1 on GPU 0000:25:00.0 (1: reset the GPU; 2: restart the "
             "node; 3: end the jobs; 4: end them and reset)",
             "warn gpu.fabric: the NVLink fabric of GPU 0000:13:00.0: less bandwidth, routes are being repaired"}));
}

}  // namespace
}  // namespace harness::doctor
