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

/// The readings of a node or of a rank, by name: "port/mlx5_0/1/rate". An unreadable file is a fact too, with the
/// reason; an absent one is not. Values are single lines as the kernel and the driver print them.
class Facts {
 public:
  void set(const std::string& name, std::string value) { set(name, {machine::Access::read, std::move(value), {}}); }
  /// Ignores an absent reading.
  void set(const std::string& name, machine::Reading reading);
  /// Records that `name` as a whole could not be read.
  void set_unreadable(const std::string& name, std::string why) {
    set(name, {machine::Access::unreadable, {}, std::move(why)});
  }
  /// Facts of `others` replace facts of the same name.
  void merge(const Facts& others) {
    for (const auto& [name, reading] : others.readings_) readings_[name] = reading;
  }

  /// Returns an absent reading if there is no such fact. Remembers the first unreadable one, because a check that
  /// needed it must not pass (judge() in check.h).
  const machine::Reading& operator[](const std::string& name) const;
  /// Reads without remembering, for facts that have a substitute.
  const machine::Reading& peek(const std::string& name) const;
  struct Doubt {
    std::string name, why;  // "": there is none
  };
  const Doubt& asked_in_vain() const { return asked_in_vain_; }
  /// Remembers that the value is unusable, as if it were unreadable.
  void doubt(const std::string& name) const;
  void forget_what_was_asked() const { asked_in_vain_ = {}; }
  /// "" if it was not read.
  std::string text(const std::string& name) const { return (*this)[name].text; }
  bool has(const std::string& name) const { return (*this)[name].ok(); }
  /// number_of() the value. A value that holds no number is remembered as unusable.
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
  Facts facts;  // limits, CPU binding, environment
};

struct Node {
  std::string host;
  std::vector<Rank> ranks;  // ascending
  Facts facts;
};

// Properties of a node that several checks need.

/// Whether no fact was read, so that no check can judge the node.
bool told_nothing(const Facts& node);
/// The reason, from the first reading.
std::string why_nothing(const Facts& node);

/// Whether the node is a guest of a hypervisor.
bool is_virtual(const Facts& node);
/// Whether the processor is Grace, or another Arm that NVIDIA builds its GPUs onto.
bool is_grace(const Facts& node);
bool is_container(const Facts& node);
/// Whether /sys ("gpu/ADDRESS/…"), NVIDIA's driver or NVML shows a GPU.
bool has_gpus(const Facts& node);
/// Whether the first GPU is a GeForce, which lacks GPUDirect RDMA, ECC and the like.
bool has_geforce(const Facts& node);
/// The largest count among those of /sys, NVIDIA's driver and NVML.
std::size_t count_gpus(const Facts& node);
/// Why a value is unusable: it is absent, unreadable, or not one of the possible values.
std::string why_silent(const machine::Reading& reading);

/// The number at the start of a value: 32 of "32.0 GT/s PCIe", 16 of "0x10"; "unlimited" is infinity.
std::optional<double> number_of(std::string_view value);

/// A port of an RDMA adapter.
struct Port {
  std::string device, port;  // "mlx5_0", "1"
  std::string key;           // prefix of its facts: "port/mlx5_0/1/"
  std::string name() const { return device + ":" + port; }
};
std::vector<Port> ports_of(const Facts& node);
/// Whether its state is one that the kernel defines.
bool tells_state(const Facts& node, const Port& port);
/// False, with a doubt, if the state is unknown. The next two do the same if the link layer is unknown.
bool is_active(const Facts& node, const Port& port);
bool is_infiniband(const Facts& node, const Port& port);
bool is_roce(const Facts& node, const Port& port);
/// Amazon's adapter, whose driver always reports ACTIVE.
bool is_efa(const Facts& node, const Port& port);
bool has_efa(const Facts& node);
/// "hca/…/verbs" of an adapter that a container lacks, beside others that it has.
inline constexpr const char* not_given = "not given";
/// Ports whose driver reports their real state; of these, the active ones.
std::vector<Port> real_ports(const Facts& node);
std::vector<Port> active_ports(const Facts& node);

/// PCI addresses from the root port down to the device itself, from the device's path in /sys.
std::vector<std::string> pci_path(const Facts& node, const std::string& device_key);

// Gathering of facts.

/// Asks NVML about the GPUs of this machine.
using AskGpus = std::function<machine::GpuReport()>;

/// Gathers the facts of a node below `root`. Returns after `limit_s` even if the kernel or the driver hangs: the fact
/// "unfinished" then names the stage that did not end, and its thread is left behind. `ask_gpus`: empty if `root` is
/// not this machine's own.
Facts gather_node(const std::string& root, const AskGpus& ask_gpus, double limit_s);

/// Gathers the facts of this process: limits, CPU binding, and the part of its environment that may be recorded. Leaves
/// out the limits if `root` is not "/", because they would be this machine's.
Facts gather_rank(const std::string& root);

// The parts of gather_node(), in this order: later ones use the facts of earlier ones.

void gather_system(const machine::Tree& tree, Facts& facts);     // CPUs, memory, kernel, clock
void gather_pci(const machine::Tree& tree, Facts& facts);        // GPUs, adapters and the bridges above them
void gather_ports(const machine::Tree& tree, Facts& facts);      // InfiniBand and RoCE; network interfaces
void gather_driver(const machine::Tree& tree, Facts& facts);     // NVIDIA's modules, daemons and devices; NCCL's files
void gather_nccl_file(const machine::Tree& tree, Facts& facts);  // /etc/nccl.conf: "nccl_conf/NCCL_ALGO"
/// The libraries that the linker finds: "library/libnccl.so.2" and NCCL's network plugins. Each lists its files in
/// search order; the first is the one that is loaded.
void gather_libraries(const machine::Tree& tree, Facts& facts);
void gather_kernel_log(const machine::Tree& tree, Facts& facts);
void gather_gpus(const machine::GpuReport& report, Facts& facts);

/// Whether a device file exists: "yes" or "no". Unreadable if there is no /dev, as in a copy of /proc and /sys.
machine::Reading device_in(const machine::Tree& tree, const std::string& path);
/// Whether a bridge redirects peer-to-peer requests to the root complex (PCIe's access control services), from its
/// configuration space: "on" or "off". Unreadable if the kernel shows only the first 64 bytes, as it does without
/// CAP_SYS_ADMIN.
machine::Reading acs_in(const machine::Reading& configuration);
/// Whether a process may lock memory beyond its limit, by its files status and uid_map in /proc. The kernel asks for
/// the capability in the initial user namespace: root of a rootless container does not have it.
bool locks_beyond_limit(const std::string& status, const std::string& users);
/// The linker's search path, in order: LD_LIBRARY_PATH (`search_path`), folders of /etc/ld.so.conf, default folders.
std::vector<std::string> library_folders(const machine::Tree& tree, std::string_view search_path);
/// The relevant events of a kernel log, with place and count, or "none": "log/severe_xid", "log/xid", and of NVLink
/// switches "log/fatal_sxid", "log/sxid", and of adapters "log/link_down".
Facts kernel_events(const std::string& log);

/// Time limit for a node to gather its facts; facts gathered by then count.
inline constexpr double node_limit_s = 5;
/// The limit at the start of a sweep, which waits for the facts.
inline constexpr double limit_in_a_sweep_s = 2;

/// How examine() looks.
struct HowToExamine {
  std::string sysroot = "/";
  double limit_s = node_limit_s;
  bool asks_nvml = true;  // if the root is "/"; NVML may have to initialise the driver, which takes seconds
};

/// Called on rank 0: returns the facts of all nodes, ordered by their first rank. The lowest rank of each node gathers
/// the node's facts, every rank its own. `sysroot` replaces "/". If it contains "{rank}", each rank reads a folder of
/// its own, and ranks whose folders name the same host form one node. Throws Error with exit code 3 if no node could be
/// read at all.
std::vector<Node> examine(job::Job& job, const HowToExamine& how);

/// A rank's answer to examine(): the `job::Answer` that a job is given.
std::string answer(int rank, const std::string& question);

}  // namespace harness::doctor
