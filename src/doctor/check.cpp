#include "doctor/check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/text.h"
#include "machine/tree.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

using Names = std::vector<std::string>;

// A device that rules apply to.
struct DeviceFacts {
  std::string name;  // "GPU 0000:13:00.0"; "" for the node itself
  std::string key;   // prefix of its facts: "nvml/0000:13:00.0/"
  const Facts& facts;
  std::string model = {};  // for a port: the board of its adapter, and its link layer

  const machine::Reading& operator[](const std::string& fact) const { return facts[key + fact]; }
};
using AllDevices = std::vector<DeviceFacts>;

// Reports skip or unknown if no active port is of this kind.
AllDevices ports_for_rules(const Node& node, Devices kind, Findings& out) {
  AllDevices all;
  if (no_ports(node, out)) return all;
  const std::vector<Port> active = active_ports(node.facts);
  for (const Port& port : active) {
    if (!may_take(node, port)) continue;
    if (kind == Devices::infiniband && !is_infiniband(node.facts, port)) continue;
    if (kind == Devices::roce && (!is_roce(node.facts, port) || is_spare(node, port))) continue;
    if (kind == Devices::counters) {
      for (const std::string& name : node.facts.under(port.key + "counter"))
        all.push_back({fmt::format("{} of {}", name, port.name()), port.key + "counter/" + name, node.facts});
    } else {
      all.push_back(
          {"port " + port.name(), port.key, node.facts,
           node.facts.text("hca/" + port.device + "/board") + " " + node.facts.text(port.key + "link_layer")});
    }
  }
  if (active.empty()) {
    out.skip("no port is known to be active: see ib.state");
  } else if (all.empty()) {
    out.skip("no active port of this kind that NCCL would take");
  }
  return all;
}

// Reports skip or unknown if there is none.
AllDevices devices_of(const Node& node, Devices kind, Findings& out) {
  const Facts& facts = node.facts;
  AllDevices all;
  const auto add = [&](const std::string& called, const std::string& prefix) {
    for (const std::string& name : facts.under(prefix))
      all.push_back({fmt::format("{} {}", called, name), fmt::format("{}/{}/", prefix, name), facts});
  };
  switch (kind) {
    case Devices::node:
      return {{"", "", facts}};
    case Devices::nvml:
      if (!has_gpus(facts)) {
        out.skip("no NVIDIA GPU");
      } else if (!facts["nvml"].ok()) {
        out.skip("NVML does not tell: see gpu.nvml");
      } else {
        add("GPU", "nvml");
      }
      return all;
    case Devices::ports:
    case Devices::infiniband:
    case Devices::roce:
    case Devices::counters:
      return ports_for_rules(node, kind, out);
    case Devices::ranks:
      for (const Rank& rank : node.ranks) all.push_back({fmt::format("rank {}", rank.rank), "", rank.facts});
      return all;
    case Devices::gpus:
      add("GPU", "gpu");
      if (all.empty()) out.skip("no NVIDIA GPU in /sys");
      return all;
    case Devices::bridges:
      add("bridge", "bridge");
      if (all.empty()) out.skip("no PCIe bridge above GPUs or adapters");
      return all;
    case Devices::adapters:
    case Devices::end_points:
    case Devices::links:
      break;
  }
  if (kind != Devices::adapters) add("GPU", "gpu");
  add("adapter", "hca");
  if (const auto& hcas = facts["hcas"]; kind == Devices::adapters && hcas.unreadable())
    out.unknown("/sys/class/infiniband", hcas.why);
  if (all.empty() && out.empty()) out.skip("no adapter for RDMA, or no GPU, in /sys");
  if (kind == Devices::links) add("bridge", "bridge");
  return all;
}

// The reading that a device's fact is compared with; nullptr: it is compared with values or a limit.
const machine::Reading* other_of(const Rule& rule, const DeviceFacts& device, const AllDevices& all) {
  if (rule.expected.kind == Expected::Kind::at_least_fact) return &device[rule.expected.values.front()];
  if (rule.expected.kind != Expected::Kind::as_its_equals) return nullptr;
  const machine::Reading* best = &device[rule.fact];
  for (const DeviceFacts& equal : all) {
    const machine::Reading& reading = equal[rule.fact];
    if (equal.model == device.model && number_of(reading.text) > number_of(best->text)) best = &reading;
  }
  return best;
}

// Why a reading that should be judged cannot be; "": it can, or it may be absent.
std::string why_hidden(const Expected& expected, const machine::Reading& reading, bool may_be_absent) {
  if (reading.unreadable()) return reading.why;
  if (reading.access == machine::Access::absent) return may_be_absent ? "" : "there is no such file";
  return expected.can_be(reading.text) ? "" : why_silent(reading);
}

// Judges one fact of all devices. Returns whether any device reported it.
bool judge_rule(const Check& check, const Rule& rule, const AllDevices& devices, Findings& out) {
  using enum Devices;
  const Devices kind = check.of;
  const bool may_be_absent = kind == node || kind == nvml || kind == links || kind == bridges || kind == ranks;
  constexpr std::size_t shown = 3;
  bool told = false;
  std::map<std::string, Names> hidden;                          // devices by reason
  std::map<std::pair<std::string, std::string>, Names> missed;  // devices by fact and compared value
  for (const DeviceFacts& device : devices) {
    const machine::Reading& reading = device[rule.fact];
    const machine::Reading* const other = other_of(rule, device, devices);
    std::string why = why_hidden(rule.expected, reading, may_be_absent);
    if (why.empty() && other != nullptr && reading.ok()) why = why_hidden(rule.expected, *other, true);
    if (!why.empty()) {
      hidden[why].push_back(device.name);
    } else if (reading.ok() && (other == nullptr || other->ok())) {
      told = true;
      const std::string against = other == nullptr ? "" : other->text;
      if (rule.expected.is_missed_by(reading.text, against)) missed[{reading.text, against}].push_back(device.name);
    } else if (rule.fact.starts_with("env/")) {  // an unset variable is an answer
      told = true;
    }
  }
  const std::string what = rule.fact.empty() ? "" : rule.fact + " of ";
  for (const auto& [why, names] : hidden) {
    out.unknown(kind == node ? check.about.reads : fmt::format("{}{}", what, join_first(names, shown)), why);
  }
  for (const auto& [seen, names] : missed) {
    const auto said = [&, &devices = names, &value = seen.first, &other = seen.second](const std::string& text) {
      return fmt::format(fmt::runtime(text), join_first(devices, shown), value, other);
    };
    out.add(rule.level, said(rule.evidence), said(rule.remedy));
  }
  return told;
}

void judge_rules(const Check& check, const Node& node, Findings& out) {
  if (const std::string why = check.not_for == nullptr ? "" : check.not_for(node); !why.empty()) return out.skip(why);
  const AllDevices devices = devices_of(node, check.of, out);
  bool told = false;
  for (const Rule& rule : check.rules) told = judge_rule(check, rule, devices, out) || told;
  out.conclude(told, check.passes, "the node does not tell it: " + check.about.reads);
}

}  // namespace

Cluster::Cluster(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    for (const Port& port : ports_of(node.facts)) {
      if (!node.facts.has(port.key + "state")) continue;
      PortUse& use = ports[port.name()];
      ++use.nodes;
      use.active += is_active(node.facts, port) ? 1 : 0;
    }
  }
}

std::string_view name_of(Verdict verdict) {
  static constexpr std::array names{"fail", "warn", "unknown", "info", "skip", "pass"};
  return names[static_cast<std::size_t>(verdict)];
}

bool Expected::can_be(const std::string& value) const {
  if (kind != Kind::one_of && kind != Kind::none_of) return number_of(value).has_value();
  const auto is_number = [](const std::string& text) { return number_of(text).has_value(); };
  const bool is_named = std::ranges::find(values, value) != values.end();
  return is_named || (!value.empty() && (is_number(value) || !std::ranges::all_of(values, is_number)));
}

bool Expected::is_missed_by(const std::string& value, const std::string& other) const {
  const bool is_named = std::ranges::find(values, value) != values.end();
  const std::optional<double> number = number_of(value);
  switch (kind) {
    case Kind::one_of:
      return !is_named;
    case Kind::none_of:
      return is_named;
    case Kind::at_least:
      return number < limit;
    case Kind::at_most:
      return number > limit;
    case Kind::at_least_fact:
    case Kind::as_its_equals:
      break;
  }
  return number < number_of(other);
}

bool no_ports(const Node& node, Findings& out) {
  if (const auto& hcas = node.facts["hcas"]; hcas.unreadable()) {
    out.unknown("/sys/class/infiniband", hcas.why);
  } else if (ports_of(node.facts).empty()) {
    out.skip("no adapter for RDMA");
  } else if (real_ports(node.facts).empty()) {
    out.skip("EFA: its driver does not tell");
  }
  return !out.empty();
}

bool may_take(const Node& node, const Port& port) {
  if (node.facts.peek("hca/" + port.device + "/verbs").text == not_given) return false;
  return node.ranks.empty() || std::ranges::any_of(node.ranks, [&](const Rank& rank) {
           const std::string chosen = setting_of(node, rank, "NCCL_IB_HCA");
           return chosen.empty() || nccl::DeviceList(chosen).allows(port.name());
         });
}

std::string setting_of(const Node& node, const Rank& rank, const std::string& name) {
  return rank.facts.has("env/" + name) ? rank.facts.text("env/" + name) : node.facts.text("nccl_conf/" + name);
}

std::string setting_of(const Node& node, const std::string& name) {
  return node.ranks.empty() ? "" : setting_of(node, node.ranks.front(), name);
}

std::vector<Finding> judge(const Check& check, const Node& node, const Cluster& cluster) {
  std::vector<const Facts*> all{&node.facts};
  for (const Rank& rank : node.ranks) all.push_back(&rank.facts);
  for (const Facts* facts : all) facts->forget_what_was_asked();
  Findings findings;
  if (check.look != nullptr) {
    check.look(node, cluster, findings);
  } else {
    judge_rules(check, node, findings);
  }
  const auto passes = [](const Finding& finding) { return finding.verdict == Verdict::pass; };
  if (!std::ranges::all_of(findings.list(), passes)) return findings.list();
  for (const Facts* facts : all) {
    const auto& [name, why] = facts->asked_in_vain();
    if (name.empty()) continue;
    Findings open;
    open.unknown(name, why);
    return open.list();
  }
  return findings.list();
}

}  // namespace harness::doctor
