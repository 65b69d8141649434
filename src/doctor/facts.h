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

/// What was read of a node or of a rank, by name: "port/mlx5_0/1/rate". What could not be read is a fact too, with the
/// reason; what is not there is none. Values are those of the kernel and the driver, a line each.
class Facts {
 public:
  void set(const std::string& name, std::string value) { set(name, {machine::Access::read, std::move(value), {}}); }
  /// A reading that is not there leaves no fact.
  void set(const std::string& name, machine::Reading reading);
  /// That all of `name` could not be read.
  void set_unreadable(const std::string& name, std::string why) {
    set(name, {machine::Access::unreadable, {}, std::move(why)});
  }
  /// The facts of others win.
  void merge(const Facts& others);

  /// Not there: an absent reading. The first one that cannot be read is kept in mind: who asked may not conclude that
  /// all is well (judge() in check.h).
  const machine::Reading& operator[](const std::string& name) const;
  /// The same without that, for a fact that another one replaces.
  const machine::Reading& peek(const std::string& name) const;
  const std::string& asked_in_vain() const { return asked_in_vain_; }
  void forget_what_was_asked() const { asked_in_vain_.clear(); }
  /// "" where it was not read.
  std::string text(const std::string& name) const { return (*this)[name].text; }
  bool has(const std::string& name) const { return (*this)[name].ok(); }
  /// Of a value that begins with a number: 32 of "32.0 GT/s PCIe".
  std::optional<double> number(const std::string& name) const;
  /// What stands after "prefix/" up to the next '/', each once, sorted: the GPUs under "gpu".
  std::vector<std::string> under(const std::string& prefix) const;
  /// Whether anything stands under "prefix/".
  bool any(const std::string& prefix) const { return !under(prefix).empty(); }

  auto begin() const { return readings_.begin(); }
  auto end() const { return readings_.end(); }
  std::size_t size() const { return readings_.size(); }

 private:
  std::map<std::string, machine::Reading> readings_;
  mutable std::string asked_in_vain_;  // the name
};

struct Rank {
  int rank = 0;
  Facts facts;  // its limits, its binding, its environment; "started_by": not the launcher, but this rank
};

struct Node {
  std::string host;
  std::vector<Rank> ranks;  // ascending
  Facts facts;
};

/// Variables of NCCL whose values are files that it reads. Whether they are there is the fact "exists/" with the path.
inline constexpr std::array<std::string_view, 3> variables_with_files{"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE",
                                                                      "NCCL_CONF_FILE"};

// What several checks want to know of a node.

/// Nothing of it was read: there is nothing that a check could look at.
bool told_nothing(const Facts& node);
/// Why, by the first reading that says so.
std::string why_nothing(const Facts& node);

/// Those of its ranks that the launcher started, in their order. What others, which these started, say of limits and
/// binding says nothing of the launch.
std::vector<Rank> launched_ranks(const Node& node);
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

/// The domain, and the part of it, in which GPUs of several nodes reach each other by NVLink; "": the GPU has none.
std::string nvlink_domain_of(const Facts& node, const std::string& gpu);

/// A port of an adapter for RDMA.
struct Port {
  std::string device, port;  // "mlx5_0", "1"
  std::string key;           // of its facts: "port/mlx5_0/1/"
  std::string name() const { return device + ":" + port; }
};
std::vector<Port> ports_of(const Facts& node);
bool is_active(const Facts& node, const Port& port);
/// Amazon's adapter, whose driver says ACTIVE whatever happens.
bool is_efa(const Facts& node, const Port& port);
bool is_roce(const Facts& node, const Port& port);
/// Of the adapters with a driver that tells the truth about its ports; those of them that are active.
std::vector<Port> real_ports(const Facts& node);
std::vector<Port> active_ports(const Facts& node);

/// Addresses of the bridges above a device, from its root port down to itself: what its place in /sys says.
std::vector<std::string> pci_path(const Facts& node, const std::string& device_key);

}  // namespace harness::doctor
