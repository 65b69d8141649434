// The table of all checks of a node: question, source, worst verdict, and documentation.
#include "doctor/check.h"

namespace harness::doctor {
namespace {

constexpr const char *of_kernel = "https://docs.kernel.org/admin-guide/",
                     *of_cpufreq = "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
                     *of_cgroups = "https://docs.kernel.org/admin-guide/cgroup-v2.html",
                     *of_sysctl = "https://docs.kernel.org/admin-guide/sysctl/kernel.html",
                     *of_aer = "https://docs.kernel.org/PCI/pcieaer-howto.html",
                     *of_mpirun = "https://www.open-mpi.org/doc/current/man1/mpirun.1.php",
                     *of_nccl = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
                     *of_nccl_env = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
                     *of_gpudirect = "https://docs.nvidia.com/cuda/gpudirect-rdma/",
                     *of_ofi = "https://github.com/aws/aws-ofi-nccl",
                     *of_cuda = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
                     *of_nvml = "https://docs.nvidia.com/deploy/nvml-api/",
                     *of_xid = "https://docs.nvidia.com/deploy/xid-errors/",
                     *of_fabric = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/";

const std::string in_ports = "/sys/class/infiniband/*/ports/*/", in_devices = "/sys/bus/pci/devices/*/",
                  in_environment = "the environment of each rank", in_settings = in_environment + ", /etc/nccl.conf",
                  in_linker = "LD_LIBRARY_PATH, /etc/ld.so.conf, the linker's folders";

// Reasons to skip a check on a node; "": none.

std::string where_memory_is_one(const Node& node) {
  return node.facts.text("memory/numa_nodes") == "0" ? "one NUMA node" : "";
}
std::string without_gpus(const Node& node) {
  return has_gpus(node.facts) ? "" : "no NVIDIA GPU";
}
std::string without_adapters(const Node& node) {
  return node.facts.any("hca") ? "" : "no adapter for RDMA";
}
std::string without_ports(const Node& node) {
  return node.facts.any("hca") && ports_of(node.facts).empty() ? "no adapter has a port" : "";
}
std::string where_ipv6_is_wanted(const Node& node) {
  return setting_of(node, "NCCL_IB_ADDR_FAMILY") == "AF_INET6" ? "NCCL_IB_ADDR_FAMILY=AF_INET6" : "";
}
std::string without_gpu_memory_on_the_bus(const Node& node) {
  if (is_grace(node.facts)) return "Grace reaches its GPUs otherwise";
  return has_geforce(node.facts) ? "GeForce has no GPUDirect RDMA" : "";
}
std::string without_gpu_direct(const Node& node) {
  if (!has_gpus(node.facts)) return "no NVIDIA GPU";
  if (has_geforce(node.facts)) return "GeForce has no GPUDirect RDMA";
  return real_ports(node.facts).empty() ? "no adapter for RDMA, or EFA" : "";
}
std::string on_guests(const Node& node) {
  return is_virtual(node.facts) ? "the hypervisor decides" : "";
}
std::string on_guests_and_grace(const Node& node) {
  return is_virtual(node.facts) || is_grace(node.facts) ? "virtual machines and Grace need it" : "";
}
std::string elsewhere_than_on_grace(const Node& node) {
  return is_grace(node.facts) && !is_virtual(node.facts) ? "" : "only Grace needs it";
}

std::vector<Check> gpu_table() {
  using enum Devices;
  using enum Verdict;
  const std::string switches =
      "start nvidia-fabricmanager (on an NVL72, the rack's) in the same version as the driver, and look at its log";
  return {
      Check({"gpu.count", "does the driver see every GPU of the bus", "/sys/bus/pci/devices, /proc/driver/nvidia/gpus",
             of_xid, fail},
            look::gpu_count),
      Check({"gpu.driver", "is NVIDIA's driver in charge of the GPUs", "/sys/bus/pci/devices/*/driver", of_nvml}, gpus,
            {{"driver", is({"nvidia", "vfio-pci"}), warn, "{0}: its driver is {1}, not nvidia",
              "blacklist nouveau, and load NVIDIA's driver"}},
            "nvidia"),
      Check({"gpu.nvml", "does the driver tell the GPUs' state", "NVML", of_nvml, unknown}, look::gpu_nvml),
      Check(
          {"gpu.persistence", "does the driver stay loaded", "NVML", of_nvml}, nvml,
          {{"persistence", is({"true"}), warn, "persistence mode is off: {0}: the driver starts anew with each process",
            "start nvidia-persistenced, or `nvidia-smi -pm 1`"}},
          "on"),
      Check({"gpu.mode", "are the GPUs whole, and open to every process", "NVML", of_nvml}, nvml,
            {{"mig", is({"false"}), warn, "MIG is on: {0}: NCCL uses no parts of a GPU", "`nvidia-smi -mig 0`"},
             {"compute_mode", is_not({"2"}), fail, "no process may use {0}", "`nvidia-smi -c 0`"},
             {"compute_mode", is_not({"3"}), info, "only one process at a time may use {0}", "`nvidia-smi -c 0`"}},
            "MIG off, any process"),
      Check({"gpu.slowed", "does something slow the GPUs down without load", "NVML", of_nvml}, nvml,
            {{"slowed_by", is({"nothing"}), warn, "{0} is slowed down: {1}",
              "look at power cables, fans and the temperature of the air or water"},
             {"clocks_set", is({"no"}), info, "somebody has set the clocks of {0}",
              "`nvidia-smi -rac`, `nvidia-smi -rgc`"}},
            "nothing slows them down"),
      Check({"gpu.power", "may the GPUs use their usual power", "NVML", of_nvml}, nvml,
            {{"power_limit_w", at_least("default_power_limit_w"), warn, "{0} may use {1} W, not {2}",
              "`nvidia-smi -pl {2}`"}},
            "full"),
      Check({"gpu.memory_errors", "has memory failed", "NVML", of_nvml}, nvml,
            {{"row_remap_failed", is({"false"}), fail, "memory rows of {0} could not be replaced", "replace the GPU"},
             {"row_remap_pending", is({"false"}), warn, "memory rows of {0} wait for a reset to be replaced",
              "`nvidia-smi -r`"},
             {"ecc_uncorrected", is({"0"}), fail, "{0} had {1} memory errors that ECC could not correct",
              "reset the GPU; replace it if they come back"}},
            "none"),
      Check({"gpu.processes", "does another process use the GPUs", "NVML", of_nvml}, nvml,
            {{"processes", is({"0"}), fail, "other processes use {0}", "`nvidia-smi` names them: end them, or wait"}},
            "none"),
      Check({"gpu.recovery", "does the driver want a GPU reset, or its node restarted", "NVML", of_nvml}, nvml,
            {{"recovery_action", is({"0"}), fail,
              "the driver asks for action {1} on {0} "
              "(1: reset the GPU; 2: restart the node; 3: end the jobs; 4: end them and reset)",
              "end the jobs on the node, then `nvidia-smi --gpu-reset`, or restart the node; "
              "replace the GPU if it comes back"}},
            "nothing is to be done"),
      Check({"gpu.xid", "have the driver and the NVLink switches reported faults", "/dev/kmsg", of_xid}, node,
            {{"log/severe_xid", is({"none"}), warn, "Xid since the start: {1}",
              "reset the GPU, or restart the node; replace the GPU if it comes back"},
             {"log/fatal_sxid", is({"none"}), warn, "fatal SXid of NVLink switches since the start: {1}",
              "restart the node; replace the board if it comes back"},
             {"log/xid", is({"none"}), info, "Xid since the start: {1}", ""},
             {"log/sxid", is({"none"}), info, "SXid of NVLink switches since the start: {1}", ""}},
            "none since the start", without_gpus),
      Check({"gpu.nvlink", "are all NVLinks active", "NVML", of_nvml}, nvml,
            {{"nvlinks_active", at_least("nvlinks"), fail, "{1} of {2} NVLinks of {0} are active",
              "`nvidia-smi nvlink -s`; is the fabric manager running? reset the GPUs"}},
            "all active"),
      Check(
          {"gpu.nvlink_errors", "have NVLinks had errors", "NVML", of_nvml}, nvml,
          {{"nvlink_recoveries", is({"0"}), info, "NVLinks of {0} have recovered {1} times since the driver was loaded",
            "if they grow during a run, reset the GPU; then look at the board"},
           {"nvlink_crc_errors", is({"0"}), info,
            "NVLinks of {0} have had {1} wrong checksums since the driver was loaded",
            "if they grow during a run, reset the GPU; then look at the board"}},
          "none"),
      Check({"gpu.fabric", "have the GPUs joined the NVLink fabric, and is it whole", "NVML", of_fabric}, nvml,
            {{"fabric_state", is({"3"}), fail, "{0} has not joined the NVLink fabric (state {1}; 2: in progress)",
              switches},
             {"fabric_status", is({"0"}), fail, "{0} has not joined the NVLink fabric (status {1})", switches},
             {"fabric_trouble", is({"none"}), warn, "the NVLink fabric of {0}: {1}",
              "look at the fabric manager's log (of a rack, NMX-C's) and at the switches"}},
            "joined"),
      Check({"gpu.bar1", "can others reach all of a GPU's memory", "NVML", of_nccl}, nvml,
            {{"bar_gib", at_least(0.5), fail, "{0} shows {1} GiB of its memory on the bus",
              "turn on \"above 4G decoding\" and \"resizable BAR\" in the BIOS"}},
            "large", without_gpu_memory_on_the_bus),
      Check({"gdr.module", "can adapters reach the GPUs' memory: peermem or dma-buf",
             "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/driver/nvidia/version", of_gpudirect},
            node,
            {{"driver/gpu_direct", is_not({"none"}), fail,
              "neither nvidia_peermem nor dma-buf: what GPUs send to other nodes goes through the host's memory",
              "`modprobe nvidia_peermem`, or the open kernel modules of the driver with a kernel from 5.12 on"}},
            "nvidia_peermem or dma-buf", without_gpu_direct)};
}

std::vector<Check> link_table() {
  using enum Devices;
  using enum Verdict;
  const std::string manager = "start the subnet manager (opensm, UFM), or look why it ignores the port";
  return {
      Check({"ib.state", "are the ports active that NCCL is to use, that are so on most nodes, or whose equals are",
             in_ports + "state, phys_state", of_nccl_env, fail},
            look::ib_state),
      Check({"ib.rate", "are ports of equal adapters equally fast", in_ports + "rate", of_nccl_env}, ports,
            {{"rate", as_its_equals(), fail, "{0} has {1}, its equals {2}",
              "reseat or replace its cable; look at the speed of its switch port"}},
            "equally fast"),
      Check({"ib.subnet", "do InfiniBand ports have an address and a subnet manager", in_ports + "lid, sm_lid",
             of_nccl_env},
            infiniband,
            {{"lid", is_not({"0x0", "0"}), fail, "{0} has no address in its subnet", manager},
             {"sm_lid", is_not({"0x0", "0"}), fail, "{0} has no subnet manager", manager}},
            "addresses and manager are there"),
      Check({"ib.gid", "do RoCE ports have a v2 address", in_ports + "gids, gid_attrs", of_nccl_env}, roce,
            {{"roce_addresses", is_not({"none"}), fail, "{0} has no RoCE v2 address of IPv4",
              "give its interface an IPv4 address, on every node; on a network of IPv6, set "
              "NCCL_IB_ADDR_FAMILY=AF_INET6; leave a port that is not for NCCL out (NCCL_IB_HCA=^=NAME)"}},
            "RoCE v2 on every port", where_ipv6_is_wanted),
      Check(
          {"ib.mtu", "is the MTU of RoCE large", "/sys/class/net/*/mtu", of_nccl_env}, roce,
          {{"interface_mtu", at_least(4200), warn,
            "the interface of {0} has an MTU of {1}: RDMA cannot send packets of 4096 bytes",
            "set 9000 on the interfaces and switches, or leave a port that is not for NCCL out (NCCL_IB_HCA=^=NAME)"}},
          "large"),
      Check(
          {"ib.errors", "what have the ports counted", in_ports + "counters, hw_counters", of_nccl_env}, counters,
          {{"", is({"0"}), info, "{0} since the port was set up: {1}", "if it grows during a run, look at the cable"}},
          "no errors"),
      Check(
          {"ib.verbs", "can a process open each adapter", "/sys/class/infiniband_verbs, /dev/infiniband", of_nccl_env},
          adapters,
          {{"verbs", is({"yes", not_given}), fail, "no device in /dev/infiniband for {0}: NCCL cannot use it",
            "give the container --device=/dev/infiniband (Kubernetes: a resource of an RDMA device plug-in), or load "
            "ib_uverbs"},
           {"verbs", is_not({not_given}), info, "{0}: the container may have been given others only", ""}},
          "one for each adapter", without_ports),
      Check({"ib.pcie", "does the adapter's PCIe link carry what its ports carry",
             in_ports + "rate, device/current_link_speed, current_link_width", of_nccl_env},
            links,
            {{"link_gbps", at_least("ports_gbps"), fail, "{0} carries {2} Gb/s, its PCIe link {1}",
              "put it into a slot with more lanes, or see pcie.width and pcie.speed"}},
            "enough", without_adapters),
      Check({"ib.flaps", "did links go down", "/dev/kmsg", of_nccl_env}, node,
            {{"log/link_down", is({"none"}), warn, "links went down since the start: {1}",
              "look at the cables of these adapters"}},
            "none since the start", without_adapters),
      Check({"pcie.width", "does every link of GPUs, adapters and bridges use all lanes that both ends have",
             in_devices + "current_link_width, max_link_width; NVML", of_nccl},
            links,
            {{"width", at_least("width_of_link"), fail, "{0} runs on {1} of {2} PCIe lanes",
              "look again under load; then reseat the card or its riser, clean its contacts, or replace it"}},
            "all lanes"),
      Check({"pcie.speed", "do the links of adapters run at the speed that both ends have",
             in_devices + "current_link_speed, max_link_speed", of_nccl},
            adapters,
            {{"speed", at_least("speed_of_link"), fail, "{0} runs at {1} of {2}",
              "reseat the card, or set the slot's speed in the BIOS"}},
            "full speed", on_guests),
      Check({"pcie.errors", "has a link had errors", in_devices + "aer_dev_fatal, aer_dev_correctable", of_aer}, links,
            {{"aer_fatal", is({"0"}), fail, "{0} has had {1} fatal PCIe errors since the start",
              "reseat or replace the card; look for AER in the kernel's log"},
             {"aer_correctable", is({"0"}), info, "{0} has had {1} corrected PCIe errors since the start",
              "if they grow during a run, reseat the card"}},
            "none"),
      Check({"pcie.acs", "may devices below a switch talk directly", in_devices + "config (as root)", of_nccl}, bridges,
            {{"acs", is({"off"}), warn,
              "ACS is on at {0}: what GPUs and adapters send each other goes through the processor",
              "turn it off in the BIOS, or with `setpci -s BRIDGE ECAP_ACS+6.w=0000` after each start"}},
            "off", on_guests_and_grace),
      Check({"pcie.iommu", "do devices use real addresses", in_devices + "iommu_group/type", of_nccl}, end_points,
            {{"iommu", is({"off", "identity", "unmanaged", "blocked"}), warn,
              "the IOMMU translates the addresses of {0} ({1}): GPUDirect is slow or off",
              "start the kernel with iommu=pt (Arm: iommu.passthrough=1), or turn the IOMMU off in the BIOS"}},
            "off, or identity", on_guests_and_grace),
      Check({"pcie.iommu_grace", "does Grace's IOMMU translate addresses", in_devices + "iommu_group/type", of_nccl},
            end_points,
            {{"iommu", is({"off", "DMA", "DMA-FQ", "unmanaged", "blocked"}), warn,
              "the IOMMU passes the addresses of {0} through", "start the kernel without iommu.passthrough=1"}},
            "it does", elsewhere_than_on_grace),
      Check({"topo.numa", "is it known which processor a device is near", in_devices + "numa_node", of_nccl},
            end_points,
            {{"numa", is_not({"-1"}), unknown,
              "the NUMA node of {0} cannot be read: the firmware does not tell, as in many virtual machines",
              "give NCCL the machine's topology in NCCL_TOPO_FILE"}},
            "known", where_memory_is_one),
      Check({"topo.nearest", "does each GPU have an adapter below its switch", "the places of devices in /sys/devices",
             of_nccl, warn},
            look::topo_nearest)};
}

std::vector<Check> host_table() {
  using enum Devices;
  using enum Verdict;
  return {Check({"rank.gpus", "does each rank have a GPU of its own",
                 "the job, /sys/bus/pci/devices, /proc/driver/nvidia/gpus", "docs/running.md", fail},
                look::rank_gpus),
          Check({"rank.memlock", "may RDMA lock its buffers", "getrlimit(RLIMIT_MEMLOCK) of each rank", of_nccl}, ranks,
                {{"limit/memlock", at_least(1 << 30), fail,
                  "{0} may lock {1} bytes of memory; RDMA locks all of its buffers",
                  "set `* - memlock unlimited` in /etc/security/limits.conf and LimitMEMLOCK=infinity of the "
                  "launcher's daemon (slurmd, sshd, containerd); --ulimit memlock=-1 of a container"}},
                "enough", without_adapters),
          Check({"rank.nofile", "may a rank open as many sockets as a large job needs", "getrlimit(RLIMIT_NOFILE)",
                 of_nccl},
                ranks,
                {{"limit/nofile", at_least(65536), warn, "{0} may open {1} files and sockets; large jobs need 65536",
                  "set `* - nofile 1048576` in /etc/security/limits.conf, or `ulimit -n`"}},
                "enough", without_gpus),
          Check({"rank.shm", "is there shared memory enough", "statvfs(/dev/shm)", of_nccl}, ranks,
                {{"shm/bytes", at_least(1e9), warn, "/dev/shm has {1} bytes; NCCL asks for 1 GB, and MPI uses it too",
                  "start the container with --shm-size=1g or more (Kubernetes: an emptyDir with medium: Memory at "
                  "/dev/shm), or with the host's /dev/shm"}},
                "enough", without_gpus),
          Check({"rank.near_gpu", "may the job use CPUs near each GPU",
                 "/proc/self/status of each rank, /sys/bus/pci/devices/*/local_cpulist", of_mpirun, warn},
                look::rank_near_gpu),
          Check({"node.answers", "does every read of the kernel and the driver end in time", "all that the others read",
                 of_kernel, fail},
                look::node_answers),
          Check({"cpu.governor", "are the CPUs allowed their full clock",
                 "/sys/devices/system/cpu/*/cpufreq/scaling_governor, energy_performance_preference; no_turbo, boost",
                 of_cpufreq},
                node,
                {{"cpu/governor", is({"performance", "powersave, preferring performance"}), warn,
                  "the CPUs' governor is {1}, not performance", "cpupower frequency-set -g performance"},
                 {"cpu/no_turbo", is({"0"}), warn, "the CPUs may not raise their clock (turbo is off)",
                  "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo, or the BIOS"},
                 {"cpu/boost", is({"1"}), warn, "the CPUs may not raise their clock (boost is off)",
                  "echo 1 > /sys/devices/system/cpu/cpufreq/boost, or the BIOS"}},
                "performance"),
          Check({"cpu.load", "does something else use the CPUs", "/proc/loadavg", of_kernel}, node,
                {{"cpu/usual_load", at_least("cpu/load"), warn,
                  "the load of the last minute is {2}, where up to {1} is usual: something else runs here",
                  "find it with `top`, and wait or end it"}},
                "little"),
          Check({"cpu.quota", "may the job use all of the CPUs that it sees",
                 "/sys/fs/cgroup/**/cpu.max; version 1: cpu.cfs_quota_us", of_cgroups, warn},
                look::cpu_quota),
          Check({"mem.swap", "is memory swapped out", "/proc/meminfo", of_kernel}, node,
                {{"memory/swapped_gib", at_most(0.1), warn, "{1} GiB of memory are swapped out",
                  "`swapoff -a`, after freeing memory"}},
                "hardly any"),
          Check({"mem.numa_balancing", "does the kernel move pages while programs run",
                 "/proc/sys/kernel/numa_balancing", of_sysctl},
                node,
                {{"memory/numa_balancing", is({"0"}), warn,
                  "the kernel moves pages between NUMA nodes while programs run (numa_balancing is on)",
                  "sysctl kernel.numa_balancing=0"}},
                "off", where_memory_is_one)};
}

std::vector<Check> setting_table() {
  using enum Devices;
  using enum Verdict;
  return {
      Check({"nccl.plugin_file", "does NCCL find the plugin that the network, NCCL_NET_PLUGIN or SHARP needs",
             in_linker + "; NCCL_NET_PLUGIN, NCCL_COLLNET_ENABLE", of_ofi, warn},
            look::nccl_plugin_file),
      Check({"env.names", "does NCCL, or who else is known to, read the names that are set for it", in_settings,
             of_nccl_env, warn},
            look::env_names),
      Check({"env.values", "does NCCL read the values as they are meant", in_settings, of_nccl_env, warn},
            look::env_values),
      Check({"env.debugging", "is a setting left on that is for finding faults", in_settings, of_nccl_env, warn},
            look::env_debugging),
      Check({"env.cuda", "is a setting of CUDA left on that is for finding faults", in_environment, of_cuda}, ranks,
            {{"env/CUDA_LAUNCH_BLOCKING", is({"", "0"}), warn, "CUDA_LAUNCH_BLOCKING={1}: each kernel is waited for",
              "unset it"},
             {"env/CUDA_INJECTION64_PATH", is({"", "0"}), warn, "CUDA_INJECTION64_PATH={1}: a profiler looks on",
              "unset it"},
             {"env/CUDA_PROFILE", is({"", "0"}), warn, "CUDA_PROFILE={1}: a profiler looks on", "unset it"}},
            "none"),
      Check({"env.without_effect", "can a setting have an effect on this fabric", in_settings, of_nccl_env, info},
            look::env_without_effect),
      Check({"env.devices", "do lists of adapters and interfaces, and NCCL_IB_GID_INDEX, fit what there is",
             in_settings + ", /sys/class/infiniband, /sys/class/net", of_nccl_env, fail},
            look::env_devices),
      Check({"env.files", "are the files there that settings name", in_settings, of_nccl_env}, ranks,
            {{"missing_files", is({"none"}), warn, "{1}: the file is not there, and NCCL goes on without it",
              "correct the path, give the container the file, or unset the variable"}},
            "they are there"),
      Check({"env.file", "does a file set something for NCCL", "/etc/nccl.conf", of_nccl_env, info}, look::env_file)};
}

}  // namespace

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> together;
    for (const auto& part : {gpu_table(), link_table(), host_table(), setting_table()})
      together.insert(together.end(), part.begin(), part.end());
    return together;
  }();
  return all;
}

}  // namespace harness::doctor
