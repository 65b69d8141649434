#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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

/// The findings of one check on one node, in words.
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
  /// Where nothing was found: a pass, or a skip if there was nothing to look at.
  void conclude(bool looked, const std::string& passes, const std::string& skips) {
    if (list_.empty()) looked ? pass(passes) : skip(skips);
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Finding>& list() const { return list_; }

 private:
  std::vector<Finding> list_;
};

/// Knowledge that needs all nodes, gathered once for all checks.
struct Cluster {
  explicit Cluster(const std::vector<Node>& nodes);

  struct PortUse {
    std::size_t nodes = 0, active = 0;  // that have it, and on which it is active
  };
  std::map<std::string, PortUse> ports;  // by name: "mlx5_0:1"
};

/// A check as `doctor --list` and docs/doctor.md describe it.
struct About {
  std::string id;        // "ib.rate"
  std::string question;  // what it holds against what
  std::string reads;     // where that is from
  Verdict at_worst{};    // what it may say of a node
  std::string docs;      // a page about what is expected
};

/// An expectation of a fact. Numbers are those that values begin with.
struct Expected {
  enum class Kind : std::uint8_t { one_of, none_of, at_least, at_most, at_least_fact, as_its_equals } kind{};
  std::vector<std::string> values = {};  // of a fact: its name, of the same device
  double limit = 0;

  /// Whether a value may be of the kind: a number where numbers are expected, and nothing else.
  bool can_be(const std::string& value) const;
  /// Whether a value is otherwise. `other`: the value that it is held against.
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
/// No less than the most that a device of the same model has.
inline Expected as_its_equals() {
  return {Expected::Kind::as_its_equals};
}

/// A fact of each device, and what is said where it is otherwise.
struct Rule {
  std::string fact;  // "mig" of "nvml/0000:13:00.0/mig"
  Expected expected;
  Verdict level{};
  std::string evidence;  // {0}: the devices; {1}: the fact's value; {2}: the value that it is held against
  std::string remedy;    // {2}: the same
};

/// The devices that rules are about. Each says by itself where the node has none of them.
enum class Devices : std::uint8_t {
  node,        // the node itself, which need not have a fact
  gpus,        // as /sys shows them
  nvml,        // GPUs, by NVML, which need not tell a fact
  adapters,    // for RDMA
  end_points,  // GPUs and adapters
  links,       // these and the bridges above them, which need not tell a fact
  bridges,     // which need not tell a fact
  ports,       // active ones
  infiniband,  // active ports of InfiniBand
  roce,        // active ports of RoCE
  counters,    // of active ports
  ranks,       // which need not have a fact
};
struct Rules {
  Devices of{};
  std::vector<Rule> rules;
  std::string passes;                             // what is said where all is as expected
  std::string (*not_for)(const Node&) = nullptr;  // why a node is left out; "": it is not
};

/// A check that needs more than rules. It reports at least one finding.
using LookAt = void(const Node& node, const Cluster& cluster, Findings& out);

/// One thing that can be wrong with a node: a pure function of its facts, by code or by rules.
struct Check {
  Check(About row, LookAt* code) : about(std::move(row)), look(code) {}
  Check(About row, Rules by_rules) : about(std::move(row)), rules(std::move(by_rules)) {}

  About about;
  LookAt* look = nullptr;  // nullptr: by the rules
  Rules rules;
};
/// The table of all, in the order in which a page lists them (check_table.cpp).
const std::vector<Check>& checks();

/// Runs a check on a node. A pass that rests on an unreadable fact becomes unknown.
std::vector<Finding> judge(const Check& check, const Node& node, const Cluster& cluster);

// Shared by several checks.

/// "46.5 GB/s".
std::string rate_text(double bytes_per_s);
/// True, and said, where there is no adapter for RDMA whose driver tells of its ports.
bool no_ports(const Node& node, Findings& out);
/// The value that a rank is given for a variable: in its environment, else for those of NCCL in /etc/nccl.conf. "":
/// nothing.
std::string setting_of(const Node& node, const Rank& rank, const std::string& name);
/// The setting of the node's first rank; "" without one. That nodes differ is a finding of one check.
std::string setting_of(const Node& node, const std::string& name);

/// A finding of a stage.
struct StageFinding {
  std::string check;  // "nccl.network"
  Finding finding;
  std::string host;  // "": of the job as a whole
};

/// How a node departs from the others.
struct Difference {
  std::string check;    // "same.driver"
  std::string told_by;  // the check that says it better where it says anything bad of the node; "": none
  std::string host;
  Finding finding;
};

/// Who differs from the majority, fact by fact, without any table of expected values. Where no value has more than half
/// of the nodes, every node is named with its own. A fact that a node could not read says nothing of it. Facts of
/// several devices are compared as what there is, so that numbering does not matter.
std::vector<Difference> differences(const std::vector<Node>& nodes);

/// Everything that may be found, in the order in which a page lists it: checks of a node, what should be the same on
/// all nodes, and what the stages look at.
std::vector<About> all_checks();

/// A distinct finding with the nodes that it concerns.
struct Line {
  std::string check;
  Finding finding;
  std::string docs;
  std::vector<std::string> nodes;  // by host, in the order of their ranks; none: of the job as a whole
};

/// Where, in words: "node11", "all 16", "node1, node2, node3 and 4 more". all_nodes: how many there are.
std::string where_of(const Line& line, std::size_t all_nodes);

struct Diagnosis {
  std::vector<Line> lines;  // worst first, then in the order of checks
  std::size_t nodes = 0, ranks = 0, gpus = 0;
  std::size_t dark = 0;  // of the nodes, those of which nothing could be read

  std::size_t count(Verdict verdict) const;
};

/// Their sizes, and no findings.
Diagnosis count_nodes(const std::vector<Node>& nodes);
/// Every check of every node, and what differs between nodes. Findings that say the same are one line.
Diagnosis diagnose(const std::vector<Node>& nodes);

/// Adds the findings of stages, sorted in among the rest.
void add(Diagnosis& diagnosis, const std::vector<StageFinding>& said);

/// 0: all pass, or tell no more than there is to know; 2: a failure; 3: of a node nothing could be read; 1: a warning,
/// if `strict`.
int exit_code(const Diagnosis& diagnosis, bool strict);

}  // namespace harness::doctor

// The checks that need more than rules, as the table names them; each is described there.
namespace harness::doctor::look {

// node_checks.cpp
LookAt node_answers, gpu_count, gpu_nvml, rank_gpus, rank_near_gpu, cpu_quota, ib_state, topo_nearest;
// setting_checks.cpp
LookAt nccl_plugin_file, env_names, env_values, env_debugging, env_without_effect, env_devices, env_file;

}  // namespace harness::doctor::look
