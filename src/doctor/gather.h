#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"
#include "job/job.h"
#include "machine/gpus.h"
#include "machine/tree.h"

namespace harness::doctor {

/// Asks NVML about the GPUs of this machine.
using AskGpus = std::function<machine::GpuReport()>;

/// The facts of a node below `root`. Ends after `limit_s`, whatever the kernel and the driver do: what was not read by
/// then is a fact "unfinished", and a thread that hangs is left behind. `ask_gpus`: empty where the root is not this
/// machine's own.
Facts gather_node(const std::string& root, const AskGpus& ask_gpus, double limit_s);

/// The facts of this process: its limits, its binding, and what of its environment may be told. Below another root than
/// "/" there are no limits: they would be this machine's.
Facts gather_rank(const std::string& root);

// The parts of gather_node(), each on what it reads, in this order: later ones look at what earlier ones found.

void gather_system(const machine::Tree& tree, Facts& facts);  // CPUs, memory, kernel, clock
void gather_pci(const machine::Tree& tree, Facts& facts);     // GPUs, adapters and the bridges above them
void gather_ports(const machine::Tree& tree, Facts& facts);   // InfiniBand and RoCE; network interfaces
void gather_driver(const machine::Tree& tree, Facts& facts);  // NVIDIA's modules, daemons and devices; NCCL's files
/// The linker's: "library/libnccl.so.2" and NCCL's plugins for networks, each with the files it stands for in the order
/// of the search: the first is taken.
void gather_libraries(const machine::Tree& tree, Facts& facts);
void gather_kernel_log(const machine::Tree& tree, Facts& facts);
void gather_gpus(const machine::GpuReport& report, Facts& facts);

/// Whether a device is there: "yes" or "no". Unreadable where the files came without /dev, as in a copy of /proc and
/// /sys.
machine::Reading device_in(const machine::Tree& tree, const std::string& path);
/// Whether a bridge sends requests between two devices up to the processor (PCIe's access control), by its
/// configuration space: "on" or "off". Unreadable when the kernel gives only the first 64 bytes, as it does without
/// CAP_SYS_ADMIN.
machine::Reading acs_in(const machine::Reading& configuration);
/// Where the dynamic linker looks, in order: LD_LIBRARY_PATH (`search_path`), the folders of /etc/ld.so.conf, its own.
std::vector<std::string> library_folders(const machine::Tree& tree, std::string_view search_path);
/// The events of a kernel log that matter here, with where and how often, or "none": "log/severe_xid", "log/xid",
/// "log/fatal_sxid", "log/sxid" of NVLink's switches, "log/link_down" of adapters.
Facts kernel_events(const std::string& log);

/// How long a node may take to tell its facts; what it has by then counts.
inline constexpr double node_limit_s = 5;
/// The limit at the start of a sweep, which waits for it.
inline constexpr double limit_in_a_sweep_s = 2;

/// How examine() looks.
struct HowToExamine {
  std::string sysroot = "/";
  double limit_s = node_limit_s;
  bool asks_nvml = true;  // where the root is "/"; asking may wake the driver up, which takes seconds
};

/// Rank 0: the facts of all nodes, by their first rank. The lowest rank of each node tells the node's, every rank its
/// own. `sysroot` replaces "/"; with "{rank}" in it each rank looks at a folder of its own, and ranks whose folders
/// name the same host are one node. Throws Error with exit code 3 where nothing could be read of any node.
std::vector<Node> examine(job::Job& job, const HowToExamine& how);

/// A rank's answer to examine(): the `job::Answer` that a job is given.
std::string answer(int rank, const std::string& question);

}  // namespace harness::doctor
