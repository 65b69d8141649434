#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/job.h"
#include "machine/gpus.h"
#include "machine/tree.h"

namespace harness::doctor {

/// The readings of a node or of a rank, by name: "port/mlx5_0/1/rate". An unreadable one is a fact too, with the
/// reason; what is not there is none. Values are those of the kernel and the driver, a line each.
class Facts {
 public:
  void set(const std::string& name, std::string value) { set(name, {machine::Access::read, std::move(value), {}}); }
  /// A reading that is not there leaves no fact.
  void set(const std::string& name, machine::Reading reading);
  /// Records that `name` as a whole could not be read.
  void set_unreadable(const std::string& name, std::string why) {
    set(name, {machine::Access::unreadable, {}, std::move(why)});
  }
  /// The facts of others win.
  void merge(const Facts& others);

  /// Not there: an absent reading. The first one that cannot be read is kept in mind: who asked may not conclude that
  /// all is well (judge() in check.h).
  const machine::Reading& operator[](const std::string& name) const;
  /// Reads without keeping that in mind, for a fact that another one replaces.
  const machine::Reading& peek(const std::string& name) const;
  struct Doubt {
    std::string name, why;  // "": there is none
  };
  const Doubt& asked_in_vain() const { return asked_in_vain_; }
  /// Keeps in mind that a value tells nothing, as if it could not be read.
  void doubt(const std::string& name) const;
  void forget_what_was_asked() const { asked_in_vain_ = {}; }
  /// "" where it was not read.
  std::string text(const std::string& name) const { return (*this)[name].text; }
  bool has(const std::string& name) const { return (*this)[name].ok(); }
  /// number_of() a value. A value without one counts as one that cannot be read.
  std::optional<double> number(const std::string& name) const;
  /// The names between "prefix/" and the next '/', each once, sorted: the GPUs under "gpu".
  std::vector<std::string> under(const std::string& prefix) const;
  /// Whether anything stands under "prefix/".
  bool any(const std::string& prefix) const { return !under(prefix).empty(); }

  auto begin() const { return readings_.begin(); }
  auto end() const { return readings_.end(); }
  std::size_t size() const { return readings_.size(); }

 private:
  std::map<std::string, machine::Reading> readings_;
  mutable Doubt asked_in_vain_;
};

struct Rank {
  int rank = 0;
  Facts facts;  // its limits, its binding, its environment
};

struct Node {
  std::string host;
  std::vector<Rank> ranks;  // ascending
  Facts facts;
};

// Questions about a node that several checks ask.

/// Nothing of it was read: there is nothing that a check could look at.
bool told_nothing(const Facts& node);
/// Why, by the first reading that says so.
std::string why_nothing(const Facts& node);

/// Whether it is a guest of a hypervisor.
bool is_virtual(const Facts& node);
/// 64-bit Arm: of NVIDIA's nodes, Grace.
bool is_arm(const Facts& node);
bool is_container(const Facts& node);
/// Whether /sys, NVIDIA's driver or NVML shows a GPU.
bool has_gpus(const Facts& node);
/// Addresses of NVIDIA's GPUs on the PCI bus, as far as /sys shows it.
std::vector<std::string> gpus_of(const Facts& node);
/// Whether its GPUs are without GPUDirect RDMA, ECC and the like: by the name of the first.
bool has_geforce(const Facts& node);
/// As many as /sys, NVIDIA's driver or NVML shows, whoever shows most.
std::size_t count_gpus(const Facts& node);
/// Why a value tells nothing: there is none, it cannot be read, or it says what none of its kind can be.
std::string why_silent(const machine::Reading& reading);

/// The number that a value begins with: 32 of "32.0 GT/s PCIe", 16 of "0x10"; "unlimited" is infinity.
std::optional<double> number_of(std::string_view value);

/// A port of an adapter for RDMA.
struct Port {
  std::string device, port;  // "mlx5_0", "1"
  std::string key;           // of its facts: "port/mlx5_0/1/"
  std::string name() const { return device + ":" + port; }
};
std::vector<Port> ports_of(const Facts& node);
/// Whether its state is one that the kernel knows.
bool tells_state(const Facts& node, const Port& port);
/// False, and in doubt, where its state is not told; so are the next two where its link layer is not.
bool is_active(const Facts& node, const Port& port);
bool is_infiniband(const Facts& node, const Port& port);
bool is_roce(const Facts& node, const Port& port);
/// Amazon's adapter, whose driver says ACTIVE whatever happens.
bool is_efa(const Facts& node, const Port& port);
bool has_efa(const Facts& node);
/// Ports of adapters whose driver tells the truth about them; the active ones.
std::vector<Port> real_ports(const Facts& node);
std::vector<Port> active_ports(const Facts& node);

/// Addresses of the bridges above a device, from its root port down to itself: what its place in /sys says.
std::vector<std::string> pci_path(const Facts& node, const std::string& device_key);

// How facts are gathered.

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
