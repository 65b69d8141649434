#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/facts.h"

namespace harness::doctor {

/// Worst first. `unknown`: a fact could not be read; never a pass or a fail. `skip`: the node has no such device.
enum class Verdict : std::uint8_t { fail, warn, unknown, info, skip, pass };
std::string_view name_of(Verdict verdict);

struct Finding {
  Verdict verdict = Verdict::pass;
  std::string evidence;  // what was seen, and what was expected
  std::string remedy;    // what to do; "": nothing

  bool is_bad() const { return verdict == Verdict::fail || verdict == Verdict::warn; }
};

/// The findings of one check on one node.
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
  /// If nothing was found: adds a pass, or a skip if there was nothing to look at.
  void conclude(bool looked, const std::string& passes, const std::string& skips) {
    if (list_.empty()) looked ? pass(passes) : skip(skips);
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Finding>& list() const { return list_; }

 private:
  std::vector<Finding> list_;
};

/// Facts that need all nodes, gathered once for all checks.
struct Cluster {
  explicit Cluster(const std::vector<Node>& nodes);

  struct PortUse {
    std::size_t nodes = 0, active = 0;  // nodes that have the port, and nodes on which it is active
  };
  std::map<std::string, PortUse> ports;  // by name: "mlx5_0:1"
};

/// A check as `doctor --list` and docs/doctor.md describe it.
struct About {
  std::string id;        // "ib.rate"
  std::string question;  // what it compares
  std::string reads;     // where its facts come from
  std::string docs;      // a page that documents the expected value
  Verdict at_worst{};    // the worst verdict that it can give a node; Check takes it from its rules
};

/// The expected value of a fact. Numeric kinds compare the number at the start of a value.
struct Expected {
  enum class Kind : std::uint8_t { one_of, none_of, at_least, at_most, at_least_fact, as_its_equals } kind{};
  std::vector<std::string> values = {};  // for at_least_fact: the name of the other fact of the same device
  double limit = 0;

  /// Whether the value can be compared at all: numeric kinds need a number, the others a value like the expected ones.
  bool can_be(const std::string& value) const;
  /// Whether the value violates the expectation. `other`: the value that it is compared with.
  bool is_missed_by(const std::string& value, const std::string& other) const;
};
inline Expected is(std::vector<std::string> values) {
  return {Expected::Kind::one_of, std::move(values)};
}
inline Expected is_not(std::vector<std::string> values) {
  return {Expected::Kind::none_of, std::move(values)};
}
inline Expected at_least(double limit) {
  return {Expected::Kind::at_least, {}, limit};
}
inline Expected at_most(double limit) {
  return {Expected::Kind::at_most, {}, limit};
}
inline Expected at_least(std::string fact) {
  return {Expected::Kind::at_least_fact, {std::move(fact)}};
}
/// At least the highest value among devices of the same model.
inline Expected as_its_equals() {
  return {Expected::Kind::as_its_equals};
}

/// The expected value of one fact of each device, and the finding where it is violated.
struct Rule {
  std::string fact;  // "mig" of "nvml/0000:13:00.0/mig"
  Expected expected;
  Verdict level{};
  std::string evidence;  // {0}: the devices; {1}: the fact's value; {2}: the value that it is compared with
  std::string remedy;    // the same placeholders
};

/// The devices that rules apply to. If the node has none, the check reports that itself. A fact may be absent only
/// where noted.
enum class Devices : std::uint8_t {
  node,        // the node itself; facts may be absent
  gpus,        // as /sys shows them
  nvml,        // GPUs as NVML lists them; facts may be absent
  adapters,    // RDMA adapters
  end_points,  // GPUs and adapters
  links,       // end points and the bridges above them; facts may be absent
  bridges,     // PCIe bridges; facts may be absent
  ports,       // active ones that NCCL can take
  infiniband,  // of these, those of InfiniBand
  roce,        // of these, those of RoCE
  counters,    // their error counters
  ranks,       // the node's ranks; facts may be absent
};
/// A check in code, where rules do not suffice. Reports at least one finding.
using LookAt = void(const Node& node, const Cluster& cluster, Findings& out);
/// Why a check by rules skips a node; "": it does not.
using WhyNot = std::string(const Node& node);

/// One thing that can be wrong with a node. A check is a pure function of the node's facts, given as code or as rules.
struct Check {
  Check(About row, LookAt* code) : about(std::move(row)), look(code) {}
  Check(About row, Devices kind, std::vector<Rule> list, std::string evidence_of_pass, WhyNot* why_not = nullptr)
      : about(std::move(row)), of(kind), rules(std::move(list)), passes(std::move(evidence_of_pass)), not_for(why_not) {
    about.at_worst = std::ranges::min(rules, {}, &Rule::level).level;
  }

  About about;
  LookAt* look = nullptr;  // nullptr: judged by the rules
  Devices of{};
  std::vector<Rule> rules;
  std::string passes;         // the evidence of a pass
  WhyNot* not_for = nullptr;  // none: the rules are for every node
};
/// All checks, in the order in which documents list them (check_table.cpp).
const std::vector<Check>& checks();

/// Runs a check on a node. A pass becomes `unknown` if the check asked for a fact that could not be read.
std::vector<Finding> judge(const Check& check, const Node& node, const Cluster& cluster);

// Shared by several checks.

/// Reports why and returns true if the node has no RDMA adapter whose driver reports the state of its ports.
bool no_ports(const Node& node, Findings& out);
/// Whether NCCL can take the port: NCCL_IB_HCA does not leave it out, and a container was given its adapter.
bool may_take(const Node& node, const Port& port);
/// Whether NCCL prefers other ports that it can take: those of faster adapters, or equally fast ones near all GPUs.
bool is_spare(const Node& node, const Port& port);
/// The value of a variable for a rank: from its environment, else from /etc/nccl.conf. "": not set.
std::string setting_of(const Node& node, const Rank& rank, const std::string& name);
/// The setting of the node's first rank; "" if the node has no rank. Another check reports ranks that differ.
std::string setting_of(const Node& node, const std::string& name);

/// A finding of a stage, or of a comparison of the nodes.
struct StageFinding {
  std::string check;  // "nccl.network"
  Finding finding;
  std::string host;  // "": the job as a whole
};

/// Checks by the hosts that they have found bad.
using BadHosts = std::set<std::pair<std::string, std::string>>;

/// Compares the nodes with each other, fact by fact, without expected values, and returns those that differ from the
/// majority. If no value is held by more than half of the nodes that have one, every node is reported with its own. A
/// node that could not read a fact is left out for that fact. Facts of several devices are compared as a set, so
/// numbering does not matter. Leaves out a difference that one of the `known` checks explains.
std::vector<StageFinding> differences(const std::vector<Node>& nodes, const BadHosts& known = {});

/// Every check, in the order in which documents list them: checks of a node, facts that should be the same on all
/// nodes, and checks of the stages.
std::vector<About> all_checks();

/// A distinct finding with the nodes that have it.
struct Line {
  std::string check;
  Finding finding;
  std::string docs;
  std::vector<std::string> nodes;  // hosts, in the order of their ranks; empty: the job as a whole
};

/// The nodes of a line in words: "node11", "all 16", "node1, node2, node3 and 4 more". all_nodes: the number of nodes.
std::string where_of(const Line& line, std::size_t all_nodes);

struct Diagnosis {
  std::vector<Line> lines;  // worst first, then in the order of checks
  std::size_t nodes = 0, ranks = 0, gpus = 0;
  std::size_t dark = 0;  // nodes of which nothing could be read

  std::size_t count(Verdict verdict) const {
    return static_cast<std::size_t>(
        std::ranges::count(lines, verdict, [](const Line& line) { return line.finding.verdict; }));
  }
};

/// Counts nodes, ranks and GPUs; without findings.
Diagnosis count_nodes(const std::vector<Node>& nodes);
/// Runs every check on every node and compares the nodes. Equal findings share a line.
Diagnosis diagnose(const std::vector<Node>& nodes);

/// Adds the findings of stages and sorts all of them by severity.
void add(Diagnosis& diagnosis, const std::vector<StageFinding>& said);

/// 2: a failure; else 3: nothing could be read of some node; else 1: a warning, if `strict`; else 0.
int exit_code(const Diagnosis& diagnosis, bool strict);

}  // namespace harness::doctor

// Checks in code, by their names in the table, which describes them.
namespace harness::doctor::look {

// node_checks.cpp
LookAt node_answers, gpu_count, gpu_nvml, rank_gpus, rank_near_gpu, cpu_quota, ib_state, topo_nearest;
// setting_checks.cpp
LookAt nccl_plugin_file, env_names, env_values, env_debugging, env_without_effect, env_devices, env_file;

}  // namespace harness::doctor::look
