#include "doctor/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "doctor/load_stage.h"
#include "doctor/stage.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

using Value = std::optional<std::string>;

constexpr const char* page = "docs/doctor.md";

// A property that all nodes should share. `told_by`: the check that is reported instead if it finds the node bad.
struct Sameness {
  std::string check, what;
  Verdict verdict;
  std::function<Value(const Node&)> value;
  std::string told_by = {}, remedy = "make the node like the others, or leave it out";
};

// The distinct values alone: the number of devices is left to the rules that count them, so that a missing device
// counts as one difference, not as one in each fact.
Value distinct(const std::set<std::string>& values) {
  if (values.empty()) return std::nullopt;
  return join(std::vector<std::string>(values.begin(), values.end()), ", ");
}

// The value of one fact.
std::function<Value(const Node&)> fact(const std::string& name) {
  return [name](const Node& node) { return node.facts.has(name) ? Value(node.facts.text(name)) : std::nullopt; };
}

// "prefix/*/name" of all devices; nullopt if one of them could not be read.
std::function<Value(const Node&)> of_devices(const std::string& prefix, const std::string& name) {
  return [=](const Node& node) -> Value {
    std::set<std::string> values;
    for (const std::string& device : node.facts.under(prefix)) {
      const machine::Reading& reading = node.facts[fmt::format("{}/{}/{}", prefix, device, name)];
      if (reading.unreadable()) return std::nullopt;
      if (reading.ok()) values.insert(reading.text);
    }
    return distinct(values);
  };
}

std::function<Value(const Node&)> of_ports(const std::string& name) {
  return [=](const Node& node) -> Value {
    std::set<std::string> values;
    for (const Port& port : ports_of(node.facts)) {
      if (is_active(node.facts, port) && node.facts.has(port.key + name))
        values.insert(node.facts.text(port.key + name));
    }
    return distinct(values);
  };
}

Value shown_gpus(const Node& node) {
  const std::size_t pci = node.facts.under("gpu").size(), driver = node.facts.under("driver/gpu").size();
  if (node.facts["pci"].unreadable() && driver == 0) return std::nullopt;
  return plural(static_cast<std::int64_t>(std::max(pci, driver)), "GPU");
}

Value active_ports(const Node& node) {
  const auto ports = ports_of(node.facts);
  if (node.facts["hcas"].unreadable()) return std::nullopt;
  const auto active = std::ranges::count_if(ports, [&](const Port& port) { return is_active(node.facts, port); });
  return fmt::format("{} active", plural(active, "RDMA port"));
}

Value memory(const Node& node) {  // firmware reserves a varying part of it
  const auto kb = node.facts.number("memory/total_kb");
  if (!kb) return std::nullopt;
  const double gib = *kb / (1 << 20), step = std::exp2(std::floor(std::log2(std::max(gib, 8.0) / 8)));
  return fmt::format("about {:.0f} GiB of memory", step * std::max(1.0, std::round(gib / step)));
}

Value nccl_file(const Node& node) {
  if (node.facts["nccl_conf"].unreadable()) return std::nullopt;
  std::vector<std::string> lines;
  for (const std::string& name : node.facts.under("nccl_conf")) {
    lines.push_back(name + "=" + node.facts.text("nccl_conf/" + name));
  }
  return lines.empty() ? "no /etc/nccl.conf" : join(lines, " ");
}

Value ranks(const Node& node) {
  return plural(std::ssize(node.ranks), "rank");
}

// The settings that affect communication between ranks; names that images and build systems set do not.
bool must_agree(std::string_view name) {
  const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
  if (foreign != nullptr && !foreign->is_prefix()) return false;
  return name.starts_with("NCCL_") || name.starts_with("UCX_") || name.starts_with("FI_") ||
         name == "CUDA_DEVICE_MAX_CONNECTIONS" || name == "CUDA_LAUNCH_BLOCKING";
}

// One rule for each variable that ranks must agree on and that any of them has set.
std::vector<Sameness> samenesses_of_settings(const std::vector<Node>& nodes) {
  std::set<std::string> names;
  for (const Node& node : nodes) {
    for (const Rank& rank : node.ranks) {
      for (const std::string& name : rank.facts.under("env"))
        if (must_agree(name)) names.insert(name);
    }
  }
  std::vector<Sameness> all;
  for (const std::string& name : names) {
    const auto values = [name](const Node& node) {
      std::set<std::string> found;
      for (const Rank& rank : node.ranks)
        found.insert(rank.facts.has("env/" + name) ? rank.facts.text("env/" + name) : "(not set)");
      return distinct(found);
    };
    all.push_back({"same.settings", name, Verdict::warn, values, "",
                   fmt::format("mpirun -x {}: mpirun passes the environment on only where it is asked to", name)});
  }
  return all;
}

const std::vector<Sameness>& samenesses() {
  static const std::vector<Sameness> all{
      {"same.gpus", "number of GPUs", Verdict::fail, shown_gpus, "rank.gpus"},
      {"same.driver", "version of NVIDIA's driver", Verdict::fail, fact("driver/version")},
      {"same.gpu_model", "GPU by its device number", Verdict::fail, of_devices("gpu", "device")},
      {"same.power_limit", "power limit of the GPUs", Verdict::warn, of_devices("nvml", "power_limit_w"), "gpu.power"},
      {"same.nvlinks", "active NVLinks of the GPUs", Verdict::fail, of_devices("nvml", "nvlinks_active"), "gpu.nvlink"},
      {"same.ports", "number of active RDMA ports", Verdict::fail, active_ports, "ib.state"},
      {"same.rate", "rates of active ports", Verdict::fail, of_ports("rate"), "ib.rate"},
      {"same.link_layer", "InfiniBand or Ethernet", Verdict::fail, of_ports("link_layer")},
      {"same.pkey", "partition key of the ports", Verdict::fail, of_ports("pkey")},
      {"same.firmware", "firmware of the adapters", Verdict::warn, of_devices("hca", "firmware")},
      {"same.mtu", "MTU of the adapters' interfaces", Verdict::warn, of_ports("interface_mtu"), "ib.mtu"},
      {"same.cpu", "model of the CPUs", Verdict::warn, fact("cpu/model")},
      {"same.memory", "memory", Verdict::warn, memory},
      {"same.kernel", "version of the kernel", Verdict::warn, fact("os/kernel")},
      {"same.nccl_conf", "/etc/nccl.conf", Verdict::fail, nccl_file},
      {"same.nccl", "NCCL that the linker finds", Verdict::warn, fact("library/libnccl.so.2")},
      {"same.ranks", "ranks on a node", Verdict::warn, ranks, "rank.gpus"}};
  return all;
}

void compare(const Sameness& rule, const std::vector<Node>& nodes, const BadHosts& known,
             std::vector<StageFinding>& out) {
  std::map<std::string, std::size_t> count;
  std::vector<Value> values;
  for (const Node& node : nodes) {
    const bool complete = !told_nothing(node.facts) && !node.facts.has("unfinished") &&
                          !node.facts.has("silent");  // facts missing from the other nodes may only be late
    values.push_back(complete ? rule.value(node) : std::nullopt);
    if (values.back()) ++count[*values.back()];
  }
  if (count.size() < 2) return;
  const auto& [usual, holders] = *std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; });
  std::size_t telling = 0;
  for (const auto& [value, times] : count) telling += times;
  const bool majority = 2 * holders > telling;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!values[i] || (majority && *values[i] == usual) || known.contains({rule.told_by, nodes[i].host})) continue;
    const std::string evidence =
        majority ? fmt::format("{}: {}; {} of {} nodes: {}", rule.what, *values[i], holders, telling, usual)
                 : fmt::format("{}: {}; the nodes differ", rule.what, *values[i]);
    out.push_back({rule.check, {rule.verdict, evidence, rule.remedy}, nodes[i].host});
  }
}

// Adds to a diagnosis, one check after another; equal findings share a line.
class Lines {
 public:
  explicit Lines(Diagnosis& diagnosis) : all_(diagnosis.lines) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      places_.try_emplace({all_[i].check, all_[i].finding.verdict, all_[i].finding.evidence}, i);
  }
  void add(const std::string& check, const Finding& finding, const std::string& docs, const std::string& host) {
    const auto [at, is_new] = places_.try_emplace({check, finding.verdict, finding.evidence}, all_.size());
    if (is_new) all_.push_back({check, finding, docs, {}});
    std::vector<std::string>& nodes = all_[at->second].nodes;
    if (!host.empty() && (nodes.empty() || nodes.back() != host)) nodes.push_back(host);
  }
  // Worst first. Nothing can be added afterwards.
  void sort() {
    std::ranges::stable_sort(all_, {}, [](const Line& line) { return line.finding.verdict; });
  }

 private:
  std::vector<Line>& all_;
  std::map<std::tuple<std::string, Verdict, std::string>, std::size_t> places_;
};

}  // namespace

std::vector<StageFinding> differences(const std::vector<Node>& nodes, const BadHosts& known) {
  std::vector<StageFinding> all;
  if (nodes.size() < 2) return all;
  for (const auto& rules : {samenesses(), samenesses_of_settings(nodes)})
    for (const Sameness& rule : rules) compare(rule, nodes, known, all);
  return all;
}

std::vector<About> all_checks() {
  std::vector<About> all;
  for (const Check& check : checks()) all.push_back(check.about);
  for (const Sameness& rule : samenesses())
    all.push_back(
        {rule.check, "is it the same on all nodes: " + rule.what, "the facts of all nodes", page, rule.verdict});
  all.push_back({"same.settings", "is it the same on all nodes: settings of NCCL, UCX and libfabric",
                 "the environment of each rank", page, Verdict::warn});
  for (const auto& stage : {nccl_checks(), load_checks()}) all.insert(all.end(), stage.begin(), stage.end());
  return all;
}

std::string where_of(const Line& line, std::size_t all_nodes) {
  if (line.nodes.size() == all_nodes && all_nodes > 1) return fmt::format("all {}", all_nodes);
  constexpr std::size_t shown = 3;
  return join_first(line.nodes, shown);
}

Diagnosis count_nodes(const std::vector<Node>& nodes) {
  Diagnosis diagnosis;
  diagnosis.nodes = nodes.size();
  for (const Node& node : nodes) {
    diagnosis.ranks += node.ranks.size();
    diagnosis.dark += told_nothing(node.facts) ? 1 : 0;
    diagnosis.gpus += count_gpus(node.facts);
  }
  return diagnosis;
}

Diagnosis diagnose(const std::vector<Node>& nodes) {
  Diagnosis diagnosis = count_nodes(nodes);
  const Cluster cluster(nodes);
  Lines lines(diagnosis);
  for (const Check& check : checks()) {
    for (const Node& node : nodes) {
      for (const Finding& finding : judge(check, node, cluster))
        lines.add(check.about.id, finding, check.about.docs, node.host);
    }
  }
  BadHosts known;
  for (const Line& line : diagnosis.lines) {
    if (!line.finding.is_bad()) continue;
    for (const std::string& host : line.nodes) known.emplace(line.check, host);
  }
  for (const StageFinding& one : differences(nodes, known)) lines.add(one.check, one.finding, page, one.host);
  lines.sort();
  return diagnosis;
}

void add(Diagnosis& diagnosis, const std::vector<StageFinding>& said) {
  Lines lines(diagnosis);
  for (const StageFinding& one : said) lines.add(one.check, one.finding, page, one.host);
  lines.sort();
}

int exit_code(const Diagnosis& diagnosis, bool strict) {
  if (diagnosis.count(Verdict::fail) > 0) return 2;
  if (diagnosis.dark > 0) return 3;
  return strict && diagnosis.count(Verdict::warn) > 0 ? 1 : 0;
}

}  // namespace harness::doctor
