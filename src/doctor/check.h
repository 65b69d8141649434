#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.h"

namespace harness::doctor {

/// Worst first. What cannot be read is `unknown`, never a pass or a fail; `skip`: the node has nothing of the kind.
enum class Verdict : std::uint8_t { fail, warn, unknown, info, skip, pass };
std::string_view name_of(Verdict verdict);

struct Finding {
  Verdict verdict = Verdict::pass;
  std::string evidence;  // what was seen, with what was expected
  std::string remedy;    // what to do; "" where there is nothing to do
};

/// What one check says of one node, in words.
class Findings {
 public:
  void fail(std::string evidence, std::string remedy) { add(Verdict::fail, std::move(evidence), std::move(remedy)); }
  void warn(std::string evidence, std::string remedy) { add(Verdict::warn, std::move(evidence), std::move(remedy)); }
  void info(std::string evidence, std::string remedy = "") {
    add(Verdict::info, std::move(evidence), std::move(remedy));
  }
  void skip(std::string why) { add(Verdict::skip, std::move(why), ""); }
  void pass(std::string evidence) { add(Verdict::pass, std::move(evidence), ""); }
  void unknown(std::string what, std::string why, std::string remedy = "") {
    add(Verdict::unknown, std::move(what) + " cannot be read: " + std::move(why), std::move(remedy));
  }
  void add(Verdict verdict, std::string evidence, std::string remedy) {
    list_.push_back({verdict, std::move(evidence), std::move(remedy)});
  }
  /// True, and said, where a reading tells nothing: unknown where it cannot be read, skip for `without` where it is not
  /// there.
  bool nothing_in(const machine::Reading& reading, const std::string& what, const std::string& without);

  /// Where nothing was found: a pass, or a skip if there was nothing to look at.
  void conclude(bool looked, const std::string& passes, const std::string& skips) {
    if (list_.empty()) looked ? pass(passes) : skip(skips);
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Finding>& list() const { return list_; }

 private:
  std::vector<Finding> list_;
};

/// "46.5 GB/s".
std::string rate_text(double bytes_per_s);

/// True, and said, where there is nothing to judge by NVML. That it is silent is a finding of one check, not of each.
bool no_nvml(const Node& node, Findings& out);
/// The same of adapters for RDMA, and of active ports.
bool no_ports(const Node& node, Findings& out);
bool no_active_ports(const Node& node, Findings& out);
/// What a rank is given for a variable: in its environment, else for those of NCCL in /etc/nccl.conf. "": nothing.
std::string setting_of(const Node& node, const Rank& rank, const std::string& name);
/// Of the node's first rank; "" without one. That ranks differ is a finding of one check.
std::string setting_of(const Node& node, const std::string& name);

/// What only all nodes together show, gathered once for all checks.
struct Cluster {
  explicit Cluster(const std::vector<Node>& nodes);

  struct PortUse {
    std::size_t nodes = 0, active = 0;  // that have it, and on which it is active
  };
  std::map<std::string, PortUse> ports;  // by name: "mlx5_0:1"
  std::size_t ranks = 0;
  /// By name of an environment variable that ranks must agree on: how many ranks have which value.
  std::map<std::string, std::map<std::string, std::size_t>> settings;
};

/// One thing that can be wrong with a node. A pure function of its facts.
struct Check {
  std::string id;     // "ib.rate"
  std::string what;   // what it holds against what, for docs/doctor.md
  std::string reads;  // where that is from
  std::string docs;   // the address of a page about it
  /// Says at least one thing.
  std::function<void(const Node& node, const Cluster& cluster, Findings& out)> look;
};

/// What a check says of a node. A pass that rests on a fact that could not be read is none: then that is unknown.
std::vector<Finding> judge(const Check& check, const Node& node, const Cluster& cluster);

std::vector<Check> system_checks();
std::vector<Check> rank_checks();
std::vector<Check> pcie_checks();
std::vector<Check> port_checks();
std::vector<Check> gpu_checks();
std::vector<Check> nvlink_checks();
std::vector<Check> gdr_checks();
std::vector<Check> nccl_file_checks();
std::vector<Check> lint_checks();
std::vector<Check> mpi_checks();
/// All, in the order in which a page lists them.
const std::vector<Check>& checks();

}  // namespace harness::doctor
