#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// The number that a value begins with: 32 of "32.0 GT/s PCIe". A value without one counts as one that cannot be
  /// read.
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

/// Variables of NCCL whose values are files that it reads. Whether they are there is the fact "exists/" with the path.
inline constexpr std::array<std::string_view, 3> variables_with_files{"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE",
                                                                      "NCCL_CONF_FILE"};

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
/// The model, as the driver or NVML gives it; "" if neither does.
std::string gpu_model(const Facts& node, const std::string& gpu);
/// By its device number, as /sys shows it; false where it does not.
bool is_older_than_ampere(const Facts& node, const std::string& gpu);
/// Without GPUDirect RDMA, ECC and the like, by its name.
bool is_geforce(const std::string& model);
/// GB200, GB300: GPUs on trays of one NVLink domain per rack.
bool is_rack_scale(const std::string& model);

/// The devices of a kind ("nvml", "gpu", "hca") that do not tell a fact which one of the same model tells. A GPU that
/// tells NVML not even its name is like all others: it fell off the bus.
std::vector<std::string> silent_among_equals(const Facts& node, const std::string& kind, const std::string& fact);
/// Why a value tells nothing: there is none, it cannot be read, or it says what none of its kind can be.
std::string why_silent(const machine::Reading& reading);

/// The domain, and the part of it, in which GPUs of several nodes reach each other by NVLink; "": the GPU has none.
std::string nvlink_domain_of(const Facts& node, const std::string& gpu);

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

// PCIe links as the kernel shows them; who asks says what follows where they are not shown. Devices and bridges go by
// the names of their facts: "gpu/0000:1b:00.0", "hca/mlx5_0", "bridge/0000:10:01.0".

/// Lanes of a link; nothing where a hypervisor hides them ("", "0", "255"), or the device fell off the bus ("63").
std::optional<double> lanes(const Facts& node, const std::string& name);
/// Transfers of a lane per nanosecond: 32 of "32.0 GT/s PCIe"; nothing of "Unknown", nor of what no PCIe has.
std::optional<double> gigatransfers(const Facts& node, const std::string& name);

/// The limit that both ends of a link share: never more than the lesser. `name`: "/max_width", which `read` is for.
std::optional<double> both_ends(const Facts& node, const std::string& key, const std::string& name,
                                std::optional<double> (*read)(const Facts&, const std::string&));

/// The rate of the links between a GPU and its host in one direction, in bytes/s, while `busy`, GPUs of the node and
/// this one among them, all use theirs: those below one switch share the link above it. Links count with what both of
/// their ends can do. Nothing where that is not known: /sys does not tell all links of the way, a hypervisor shows
/// links of its own making, or the GPU is not on PCIe (Grace).
std::optional<double> host_link_bytes_per_s(const Facts& node, const std::string& gpu,
                                            const std::vector<std::string>& busy);

}  // namespace harness::doctor
