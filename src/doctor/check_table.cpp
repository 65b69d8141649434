// The table of all checks of a node: what each asks, where from, how bad it is, and where to read on.
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
                     *of_gdrcopy = "https://github.com/NVIDIA/gdrcopy",
                     *of_ucx = "https://openucx.readthedocs.io/en/master/faq.html",
                     *of_mempolicy = "https://man7.org/linux/man-pages/man2/set_mempolicy.2.html",
                     *of_ofi = "https://github.com/aws/aws-ofi-nccl",
                     *of_ld_so = "https://man7.org/linux/man-pages/man8/ld.so.8.html",
                     *of_cuda = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
                     *of_nvml = "https://docs.nvidia.com/deploy/nvml-api/",
                     *of_xid = "https://docs.nvidia.com/deploy/xid-errors/",
                     *of_fabric = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/",
                     *of_imex = "https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/";

constexpr const char *in_ports = "/sys/class/infiniband/*/ports/*/", *in_devices = "/sys/bus/pci/devices/*/",
                     *in_settings = "the environment of each rank, /etc/nccl.conf",
                     *in_environment = "the environment of each rank",
                     *in_linker = "LD_LIBRARY_PATH, /etc/ld.so.conf, the linker's folders";

std::string reading(const char* folder, const char* files) {
  return std::string(folder) + files;
}

std::string where_memory_is_one(const Node& node) {
  return node.facts.text("memory/numa_nodes") == "0" ? "one NUMA node" : "";
}
std::string where_the_daemon_runs(const Node& node) {
  return node.facts.has("daemon/persistence") ? "nvidia-persistenced keeps it loaded" : "";
}
std::string where_no_fabric_manager_runs(const Node& node) {
  return node.facts.has("daemon/fabric_manager") ? "" : "no fabric manager runs here";
}
std::string where_pcie_is_real(const Node& node) {
  if (!is_virtual(node.facts)) return "only virtual machines need it";
  return active_ports(node.facts).empty() ? "no active port" : "";
}

std::vector<Check> gpu_table() {
  using enum Verdict;
  const std::string switches =
      "start nvidia-fabricmanager (or the rack's), of the driver's version, and look at its log";
  return {
      {{"gpu.count", "does the driver see every GPU of the bus", "/sys/bus/pci/devices, /proc/driver/nvidia/gpus", fail,
        of_xid},
       look::gpu_count},
      {{"gpu.driver", "is NVIDIA's driver in charge of the GPUs", "/sys/bus/pci/devices/*/driver", warn, of_nvml},
       look::gpu_driver},
      {{"gpu.nvml", "does the driver tell the GPUs' state", "NVML", unknown, of_nvml}, look::gpu_nvml},
      {{"gpu.persistence", "does the driver stay loaded", "NVML", warn, of_nvml},
       {Devices::nvml,
        {{"persistence", is({"true"}), warn, "persistence mode is off: {0}: the driver starts anew with each process",
          "start nvidia-persistenced, or `nvidia-smi -pm 1`"}},
        "on",
        where_the_daemon_runs}},
      {{"gpu.mode", "are the GPUs whole, and open to every process", "NVML", fail, of_nvml},
       {Devices::nvml,
        {{"mig", is({"false"}), warn, "MIG is on: {0}: NCCL uses no parts of a GPU", "`nvidia-smi -mig 0`"},
         {"compute_mode", is_not({"2"}), fail, "no process may use {0}", "`nvidia-smi -c 0`"},
         {"compute_mode", is_not({"3"}), info, "only one process at a time may use {0}", "`nvidia-smi -c 0`"}},
        "MIG off, any process"}},
      {{"gpu.slowed", "does something slow the GPUs down without load", "NVML", warn, of_nvml},
       {Devices::nvml,
        {{"slowed_by", is({"nothing"}), warn, "{0} is slowed down: {1}",
          "look at power cables, fans and the temperature of the air or water"},
         {"clocks_set", is({"no"}), info, "somebody has set the clocks of {0}",
          "`nvidia-smi -rac`, `nvidia-smi -rgc`"}},
        "nothing slows them down"}},
      {{"gpu.power", "may the GPUs use their usual power", "NVML", warn, of_nvml},
       {Devices::nvml,
        {{"power_limit_w", at_least("default_power_limit_w"), warn, "{0} may use {1} W, not {2}",
          "`nvidia-smi -pl {2}`"}},
        "full"}},
      {{"gpu.temperature", "is one GPU hotter than its neighbours", "NVML", warn, of_nvml}, look::gpu_temperature},
      {{"gpu.memory_errors", "has memory failed", "NVML", fail, of_nvml},
       {Devices::nvml,
        {{"row_remap_failed", is({"false"}), fail, "memory rows of {0} could not be replaced", "replace the GPU"},
         {"row_remap_pending", is({"false"}), warn, "memory rows of {0} wait for a reset to be replaced",
          "`nvidia-smi -r`"},
         {"ecc_uncorrected", is({"0"}), fail, "{0} had {1} memory errors that ECC could not correct",
          "reset the GPU; replace it if they come back"}},
        "none"}},
      {{"gpu.processes", "does another process use the GPUs", "NVML", fail, of_nvml},
       {Devices::nvml,
        {{"processes", is({"0"}), fail, "other processes use {0}", "`nvidia-smi` names them: end them, or wait"}},
        "none"}},
      {{"gpu.recovery", "does the driver want a GPU reset, or its node restarted", "NVML", fail, of_nvml},
       {Devices::nvml,
        {{"recovery_action", is_not({"1"}), fail, "{0} is to be reset, says the driver", "`nvidia-smi --gpu-reset`"},
         {"recovery_action", is_not({"2"}), fail, "the node of {0} is to be restarted, says the driver",
          "restart the node; replace the GPU if it comes back"},
         {"recovery_action", is_not({"3"}), fail, "{0} is to be left by the jobs that use its peers, says the driver",
          "end the jobs on the node"},
         {"recovery_action", is_not({"4"}), fail, "{0} is to be left by all jobs and be reset, says the driver",
          "end the jobs on the node, then `nvidia-smi --gpu-reset`"},
         {"recovery_action", is({"0", "1", "2", "3", "4"}), fail, "the driver asks for action {1} on {0}",
          "`nvidia-smi -q` names it"}},
        "nothing is to be done"}},
      {{"gpu.xid", "has the driver reported faults", "/dev/kmsg", warn, of_xid}, look::gpu_xid},
      {{"gpu.nvlink", "are all NVLinks active", "NVML", fail, of_nvml}, look::gpu_nvlink},
      {{"gpu.nvlink_errors", "have NVLinks had errors", "NVML", info, of_nvml},
       {Devices::nvml,
        {{"nvlink_recoveries", is({"0"}), info, "NVLinks of {0} have recovered {1} times since the driver was loaded",
          "if they grow during a run, reset the GPU; then look at the board"},
         {"nvlink_crc_errors", is({"0"}), info,
          "NVLinks of {0} have had {1} wrong checksums since the driver was loaded",
          "if they grow during a run, reset the GPU; then look at the board"}},
        "none"}},
      {{"gpu.fabric", "have the GPUs joined the NVLink fabric, and is it whole", "NVML", fail, of_fabric},
       {Devices::nvml,
        {{"fabric_state", is_not({"2"}), fail, "{0} has not joined the NVLink fabric (in progress)", switches},
         {"fabric_state", is({"2", "3"}), fail, "{0} has not joined the NVLink fabric (state {1})", switches},
         {"fabric_status", is({"0"}), fail, "{0} has not joined the NVLink fabric (status {1})", switches},
         {"fabric_trouble", is({"none"}), warn, "the NVLink fabric of {0}: {1}",
          "look at the fabric manager's log (of a rack, NMX-C's) and at the switches"}},
        "joined"}},
      {{"gpu.fabric_manager", "does the fabric manager run where it must", "/proc/*/comm", fail, of_fabric},
       look::gpu_fabric_manager},
      {{"gpu.fabric_manager_version", "are the fabric manager and the driver of one version",
        "/var/log/fabricmanager.log, /proc/driver/nvidia/version", fail, of_fabric},
       {Devices::node,
        {{"fabric_manager/version", same_as("driver/version"), fail,
          "the fabric manager is of version {1}, the driver of {2}",
          "install nvidia-fabricmanager {2} and start it again"}},
        "one version",
        where_no_fabric_manager_runs}},
      {{"gpu.nvlink_domain", "are the GPUs of a node in one NVLink domain of several nodes", "NVML", fail, of_imex},
       look::gpu_nvlink_domain},
      {{"gpu.sxid", "have the NVLink switches reported faults", "/dev/kmsg", warn, of_fabric}, look::gpu_sxid},
      {{"gpu.bar1", "can others reach all of a GPU's memory", reading(in_devices, "resource; NVML"), fail, of_nccl},
       look::gpu_bar1},
      {{"gdr.module", "can adapters reach the GPUs' memory: peermem or dma-buf",
        "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/driver/nvidia/version", fail, of_gpudirect},
       look::gdr_module},
      {{"gdr.gdrcopy", "is GDRCopy there, if it is asked for",
        "/sys/module/gdrdrv, /dev/gdrdrv, the environment of each rank", warn, of_gdrcopy},
       look::gdr_gdrcopy},
      {{"gdr.relaxed", "may PCIe reorder writes, in a virtual machine", "/proc/driver/nvidia/params", warn,
        of_gpudirect},
       {Devices::node,
        {{"driver/relaxed_ordering", is_not({"0"}), warn,
          "relaxed ordering of PCIe is off in a virtual machine: RDMA from GPUs is slow",
          "options nvidia NVreg_EnablePCIERelaxedOrderingMode=1"}},
        "on",
        where_pcie_is_real}}};
}

std::vector<Check> link_table() {
  using enum Verdict;
  const std::string manager = "start the subnet manager (opensm, UFM), or look why it ignores the port";
  return {
      {{"ib.state", "are the ports active that NCCL is to use, that are so on most nodes, or whose equals are",
        reading(in_ports, "state, phys_state"), fail, of_nccl_env},
       look::ib_state},
      {{"ib.rate", "are ports of equal adapters equally fast", reading(in_ports, "rate"), fail, of_nccl_env},
       look::ib_rate},
      {{"ib.layer", "are equal adapters all InfiniBand or all Ethernet", reading(in_ports, "link_layer"), warn,
        of_nccl_env},
       look::ib_layer},
      {{"ib.subnet", "do InfiniBand ports have an address and a subnet manager", reading(in_ports, "lid, sm_lid"), fail,
        of_nccl_env},
       {Devices::infiniband,
        {{"lid", is_not({"0x0", "0"}), fail, "{0} has no address in its subnet", manager},
         {"sm_lid", is_not({"0x0", "0"}), fail, "{0} has no subnet manager", manager}},
        "addresses and manager are there"}},
      {{"ib.gid", "do RoCE ports have a v2 address, also at NCCL_IB_GID_INDEX", reading(in_ports, "gids, gid_attrs"),
        fail, of_nccl_env},
       look::ib_gid},
      {{"ib.mtu", "is the MTU of RoCE large", "/sys/class/net/*/mtu", warn, of_nccl_env}, look::ib_mtu},
      {{"ib.errors", "what have the ports counted", reading(in_ports, "counters, hw_counters"), info, of_nccl_env},
       look::ib_errors},
      {{"ib.verbs", "can a process open each adapter", "/sys/class/infiniband_verbs, /dev/infiniband", fail,
        of_nccl_env},
       {Devices::adapters,
        {{"verbs", is({"yes"}), fail, "no device in /dev/infiniband for {0}: NCCL cannot use it",
          "give the container --device=/dev/infiniband, or load ib_uverbs"}},
        "one for each adapter"}},
      {{"ib.pcie", "does the adapter's PCIe link carry what its ports carry",
        reading(in_ports, "rate, device/current_link_speed, current_link_width"), fail, of_nccl_env},
       look::ib_pcie},
      {{"ib.flaps", "did links go down", "/dev/kmsg", warn, of_nccl_env}, look::ib_flaps},
      {{"pcie.width", "does every link of GPUs, adapters and bridges use all lanes that both ends have",
        reading(in_devices, "current_link_width, max_link_width; NVML"), fail, of_nccl},
       look::pcie_width},
      {{"pcie.speed", "do the links of adapters run at the speed that both ends have",
        reading(in_devices, "current_link_speed, max_link_speed"), fail, of_nccl},
       look::pcie_speed},
      {{"pcie.errors", "has a link had errors", reading(in_devices, "aer_dev_fatal, aer_dev_correctable"), fail,
        of_aer},
       {Devices::links,
        {{"aer_fatal", is({"0"}), fail, "{0} has had {1} fatal PCIe errors since the start",
          "reseat or replace the card; look for AER in the kernel's log"},
         {"aer_correctable", is({"0"}), info, "{0} has had {1} corrected PCIe errors since the start",
          "if they grow during a run, reseat the card"}},
        "none"}},
      {{"pcie.acs", "may devices below a switch talk directly", reading(in_devices, "config (as root)"), warn, of_nccl},
       look::pcie_acs},
      {{"pcie.iommu", "do devices use real addresses; on Grace, translated ones",
        reading(in_devices, "iommu_group/type"), warn, of_nccl},
       look::pcie_iommu},
      {{"topo.numa", "is it known which processor a device is near", reading(in_devices, "numa_node"), unknown,
        of_nccl},
       {Devices::end_points,
        {{"numa", is_not({"-1"}), unknown,
          "the NUMA node of {0} cannot be read: the firmware does not tell, as in many virtual machines",
          "give NCCL the machine's topology in NCCL_TOPO_FILE"}},
        "known",
        where_memory_is_one}},
      {{"topo.nearest", "does each GPU have an adapter below its switch", "the places of devices in /sys/devices", warn,
        of_nccl},
       look::topo_nearest}};
}

std::vector<Check> host_table() {
  using enum Verdict;
  return {
      {{"rank.gpus", "does each rank have a GPU of its own", "the job, /sys/bus/pci/devices, /proc/driver/nvidia/gpus",
        fail, "docs/running.md"},
       look::rank_gpus},
      {{"rank.memlock", "may RDMA lock its buffers", "getrlimit(RLIMIT_MEMLOCK) of each rank", fail, of_nccl},
       look::rank_memlock},
      {{"rank.nofile", "may a rank open as many sockets as a large job needs", "getrlimit(RLIMIT_NOFILE)", warn,
        of_nccl},
       look::rank_nofile},
      {{"rank.shm", "is there shared memory enough", "statvfs(/dev/shm)", warn, of_nccl}, look::rank_shm},
      {{"rank.near_gpu", "does each rank have CPUs near its GPU",
        "/proc/self/status of each rank, /sys/bus/pci/devices/*/local_cpulist", warn, of_mpirun},
       look::rank_near_gpu},
      {{"rank.memory_policy", "may a process choose the NUMA node of its memory", "get_mempolicy()", warn,
        of_mempolicy},
       look::rank_memory_policy},
      {{"node.answers", "does every read of the kernel and the driver end in time", "all that the others read", fail,
        of_kernel},
       look::node_answers},
      {{"cpu.governor", "are the CPUs allowed their full clock",
        "/sys/devices/system/cpu/*/cpufreq/scaling_governor, energy_performance_preference; no_turbo, boost, acpi_cppc",
        warn, of_cpufreq},
       look::cpu_governor},
      {{"cpu.load", "does something else use the CPUs", "/proc/loadavg", warn, of_kernel}, look::cpu_load},
      {{"cpu.steal", "do other guests of the host take CPU time", "/proc/stat, of a guest twice", warn, of_kernel},
       look::cpu_steal},
      {{"cpu.quota", "may the job use all of the CPUs that it sees",
        "/sys/fs/cgroup/**/cpu.max; version 1: cpu.cfs_quota_us", warn, of_cgroups},
       look::cpu_quota},
      {{"mem.swap", "is memory swapped out", "/proc/meminfo", warn, of_kernel}, look::mem_swap},
      {{"mem.numa_balancing", "does the kernel move pages while programs run", "/proc/sys/kernel/numa_balancing", warn,
        of_sysctl},
       {Devices::node,
        {{"memory/numa_balancing", is({"0"}), warn,
          "the kernel moves pages between NUMA nodes while programs run (numa_balancing is on)",
          "sysctl kernel.numa_balancing=0"}},
        "off",
        where_memory_is_one}}};
}

std::vector<Check> setting_table() {
  using enum Verdict;
  return {
      {{"nccl.library", "is the NCCL that the linker finds new enough for this node", in_linker, warn, of_ld_so},
       look::nccl_library},
      {{"nccl.plugin_file", "does NCCL find the plugin that the network needs", reading(in_linker, "; NCCL_NET_PLUGIN"),
        warn, of_ofi},
       look::nccl_plugin_file},
      {{"nccl.sharp", "does NCCL find what SHARP needs, if it is asked for",
        reading(in_linker, "; NCCL_COLLNET_ENABLE"), warn, of_nccl_env},
       look::nccl_sharp},
      {{"env.names", "does NCCL, or who else is known to, read the names that are set for it", in_settings, warn,
        of_nccl_env},
       look::env_names},
      {{"env.values", "does NCCL read the values as they are meant", in_settings, warn, of_nccl_env}, look::env_values},
      {{"env.debugging", "is a setting left on that is for finding faults", in_settings, warn, of_nccl_env},
       look::env_debugging},
      {{"env.cuda", "is a setting of CUDA left on that is for finding faults", in_environment, warn, of_cuda},
       {Devices::ranks,
        {{"env/CUDA_LAUNCH_BLOCKING", is({"", "0"}), warn, "CUDA_LAUNCH_BLOCKING={1}: each kernel is waited for",
          "unset it"},
         {"env/CUDA_INJECTION64_PATH", is({"", "0"}), warn, "CUDA_INJECTION64_PATH={1}: a profiler looks on",
          "unset it"},
         {"env/CUDA_PROFILE", is({"", "0"}), warn, "CUDA_PROFILE={1}: a profiler looks on", "unset it"},
         {"env/CUDA_AUTO_BOOST", is({"", "0"}), warn, "CUDA_AUTO_BOOST={1}: it sets the GPUs' clocks", "unset it"},
         {"env/CUDA_COREDUMP_FILE", is({"", "0"}), warn, "CUDA_COREDUMP_FILE={1}: dumps may be written", "unset it"},
         {"env/CUDA_ENABLE_COREDUMP_ON_EXCEPTION", is({"", "0"}), warn,
          "CUDA_ENABLE_COREDUMP_ON_EXCEPTION={1}: dumps may be written", "unset it"}},
        "none"}},
      {{"env.combinations", "does a setting turn off what another asks for", in_settings, warn, of_nccl_env},
       look::env_combinations},
      {{"env.without_effect", "can a setting have an effect on this fabric", in_settings, info, of_nccl_env},
       look::env_without_effect},
      {{"env.devices", "do lists of adapters and interfaces fit what there is",
        reading(in_settings, ", /sys/class/infiniband, /sys/class/net"), fail, of_nccl_env},
       look::env_devices},
      {{"env.files", "are the files there that settings name", in_settings, warn, of_nccl_env}, look::env_files},
      {{"env.ranks", "do all ranks have the same settings", in_environment, warn, of_nccl_env}, look::env_ranks},
      {{"env.file", "does a file set something for NCCL", "/etc/nccl.conf", info, of_nccl_env}, look::env_file},
      {{"mpi.devices", "does the node have the devices that MPI is told to use",
        "OMPI_MCA_btl_tcp_if_include, UCX_NET_DEVICES of each node's first rank; /sys/class/net", warn, of_ucx},
       look::mpi_devices}};
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
