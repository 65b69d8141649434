#include "doctor/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "machine/tree.h"
#include "nccl/names.h"

namespace harness::doctor {
namespace {

// Which settings decide how ranks talk to each other. What images and build systems set with such a name does not.
bool must_agree(std::string_view name) {
  const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
  if (foreign != nullptr && !foreign->is_prefix()) return false;
  return name.starts_with("NCCL_") || name.starts_with("UCX_") || name.starts_with("FI_") ||
         name == "CUDA_DEVICE_MAX_CONNECTIONS" || name == "CUDA_LAUNCH_BLOCKING";
}

// A device whose facts rules look at.
struct DeviceFacts {
  std::string name;  // "GPU 0000:13:00.0"; "" of the node itself
  std::string key;   // how the names of its facts begin: "nvml/0000:13:00.0/"
  const Facts& facts;
};

// Decimal or, as the identifiers of ports are, hexadecimal.
bool is_whole_number(std::string_view text) {
  if (text.starts_with("0x")) return number_in<std::uint64_t>(text.substr(2), 16).has_value();
  if (text.starts_with('-')) text.remove_prefix(1);
  return number_in<std::uint64_t>(text).has_value();
}

// Says skip or unknown where there is none.
std::vector<DeviceFacts> devices_of(const Node& node, Devices kind, Findings& out) {
  const Facts& facts = node.facts;
  std::vector<DeviceFacts> all;
  const auto add = [&](const std::string& called, const std::string& prefix) {
    for (const std::string& name : facts.under(prefix))
      all.push_back({fmt::format("{} {}", called, name), fmt::format("{}/{}/", prefix, name), facts});
  };
  switch (kind) {
    case Devices::node:
      return {{"", "", facts}};
    case Devices::nvml:
      if (!no_nvml(node, out)) add("GPU", "nvml");
      break;
    case Devices::end_points:
    case Devices::links:
      add("GPU", "gpu");
      add("adapter", "hca");
      if (all.empty()) out.skip("no GPU and no adapter for RDMA");
      if (kind == Devices::links) add("bridge", "bridge");
      break;
    case Devices::adapters:
      if (!no_ports(node, out)) add("adapter", "hca");
      break;
    case Devices::infiniband:
      if (no_active_ports(node, out)) break;
      for (const Port& port : active_ports(facts)) {
        if (is_infiniband(facts, port)) all.push_back({"port " + port.name(), port.key, facts});
      }
      if (all.empty()) out.skip("no InfiniBand");
      break;
    case Devices::ranks:
      for (const Rank& rank : node.ranks) all.push_back({fmt::format("rank {}", rank.rank), "", rank.facts});
  }
  return all;
}

// Whether a device of this kind may be silent about a fact.
bool may_be_silent(Devices kind) {
  return kind == Devices::node || kind == Devices::nvml || kind == Devices::links || kind == Devices::ranks;
}

// The kinds of devices, by the names of their facts, whose equals tell the same facts. Bridges differ.
std::vector<std::string> kinds_with_equals(Devices kind) {
  if (kind == Devices::nvml) return {"nvml"};
  if (kind == Devices::links) return {"gpu", "hca"};
  return {};
}

// The devices of a kind whose equals tell what a rule is about.
std::vector<std::string> silent_in(const Rule& rule, const Facts& facts, const std::string& kind) {
  std::vector<std::string> silent = silent_among_equals(facts, kind, rule.fact);
  if (rule.expected.is_by_fact()) {
    for (const std::string& name : silent_among_equals(facts, kind, rule.expected.values.front())) {
      if (std::ranges::find(silent, name) == silent.end()) silent.push_back(name);
    }
  }
  return silent;
}

// The rules' part of it.
void judge_rules(const Check& check, const Node& node, Findings& out) {
  const auto& [kind, rules, passes, not_for] = check.rules;
  if (const std::string why = not_for == nullptr ? "" : not_for(node); !why.empty()) return out.skip(why);
  const std::vector<DeviceFacts> devices = devices_of(node, kind, out);
  constexpr std::size_t shown = 3;
  bool told = false;
  for (const Rule& rule : rules) {
    std::map<std::string, std::vector<std::string>> hidden;                          // devices by the reason
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> missed;  // by the fact and the other one
    for (const DeviceFacts& device : devices) {
      const machine::Reading& reading = device.facts[device.key + rule.fact];
      const machine::Reading other =
          rule.expected.is_by_fact() ? device.facts[device.key + rule.expected.values.front()] : machine::Reading{};
      if (reading.access == machine::Access::unreadable) {
        hidden[reading.why].push_back(device.name);
      } else if (!reading.ok() && !may_be_silent(kind)) {
        hidden["there is no such file"].push_back(device.name);
      } else if (reading.ok() && !rule.expected.can_be(reading.text)) {
        hidden[why_silent(reading)].push_back(device.name);
      } else if (rule.expected.is_by_fact() && other.ok() && !rule.expected.can_be(other.text)) {
        hidden[fmt::format("{}: {}", rule.expected.values.front(), why_silent(other))].push_back(device.name);
      } else if (!reading.ok() || (rule.expected.is_by_fact() && !other.ok())) {
        told = told || kind == Devices::ranks;
      } else {
        told = true;
        if (rule.expected.is_missed_by(reading.text, other.text))
          missed[{reading.text, other.text}].push_back(device.name);
      }
    }
    for (const std::string& one : devices.empty() ? std::vector<std::string>() : kinds_with_equals(kind)) {
      for (const std::string& name : silent_in(rule, node.facts, one))
        hidden["it does not tell it, its equals do"].push_back((one == "hca" ? "adapter " : "GPU ") + name);
    }
    for (const auto& [why, names] : hidden) {
      out.unknown(
          kind == Devices::node ? check.about.reads : fmt::format("{} of {}", rule.fact, join_first(names, shown)),
          why);
    }
    for (const auto& [seen, names] : missed) {
      const auto said = [&, &devices = names, &value = seen.first, &other = seen.second](const std::string& text) {
        return fmt::format(fmt::runtime(text), join_first(devices, shown), value, other);
      };
      out.add(rule.level, said(rule.evidence), said(rule.remedy));
    }
  }
  out.conclude(told, passes, "the node does not tell it: " + check.about.reads);
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
    ranks += node.ranks.size();
    for (const Rank& rank : node.ranks) {
      for (const std::string& name : rank.facts.under("env")) {
        if (must_agree(name)) ++settings[name][rank.facts.text("env/" + name)];
      }
    }
  }
}

std::string_view name_of(Verdict verdict) {
  static constexpr std::array names{"fail", "warn", "unknown", "info", "skip", "pass"};
  return names[static_cast<std::size_t>(verdict)];
}

bool Findings::nothing_in(const machine::Reading& reading, const std::string& what, const std::string& without) {
  if (reading.access == machine::Access::unreadable) unknown(what, reading.why);
  if (reading.access == machine::Access::absent) skip(without);
  return !reading.ok();
}

bool Expected::can_be(const std::string& value) const {
  const bool is_named = std::ranges::find(values, value) != values.end();
  switch (kind) {
    case Kind::one_of:
    case Kind::none_of:
      return is_named || (!value.empty() && (is_whole_number(value) || !std::ranges::all_of(values, is_whole_number)));
    case Kind::at_least_fact:
      return machine::number(value).has_value();
    case Kind::same_as_fact:
      break;
  }
  return !value.empty();
}

bool Expected::is_missed_by(const std::string& value, const std::string& other) const {
  const bool named = std::ranges::find(values, value) != values.end();
  switch (kind) {
    case Kind::one_of:
      return !named;
    case Kind::none_of:
      return named;
    case Kind::at_least_fact: {
      const auto number = machine::number(value), least = machine::number(other);
      return number && least && *number < *least;
    }
    case Kind::same_as_fact:
      break;
  }
  return value != other;
}

bool no_nvml(const Node& node, Findings& out) {
  if (!has_gpus(node.facts)) {
    out.skip("no NVIDIA GPU");
  } else if (!node.facts["nvml"].ok()) {
    out.skip("NVML does not tell: see gpu.nvml");
  }
  return !out.empty();
}

bool no_ports(const Node& node, Findings& out) {
  if (const auto& hcas = node.facts["hcas"]; hcas.access == machine::Access::unreadable) {
    out.unknown("/sys/class/infiniband", hcas.why);
  } else if (ports_of(node.facts).empty()) {
    out.skip("no adapter for RDMA");
  } else if (real_ports(node.facts).empty()) {
    out.skip("EFA: its driver does not tell");
  }
  return !out.empty();
}

bool no_active_ports(const Node& node, Findings& out) {
  if (no_ports(node, out)) return true;
  if (active_ports(node.facts).empty()) out.skip("no port is known to be active: see ib.state");
  return !out.empty();
}

std::string rate_text(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
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
