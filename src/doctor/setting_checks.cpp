// Settings of NCCL, in the environment of the ranks and in /etc/nccl.conf, and their effect here.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "config/registry.h"
#include "doctor/check.h"
#include "nccl/names.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

using Settings = std::map<std::string, std::string>;

// NCCL's own of a rank: the environment wins over the file.
Settings settings_of(const Node& node, const Rank& rank) {
  Settings settings;
  for (const std::string& name : node.facts.under("nccl_conf")) settings[name] = node.facts.text("nccl_conf/" + name);
  for (const std::string& name : rank.facts.under("env")) {
    if (name.starts_with("NCCL_")) settings[name] = rank.facts.text("env/" + name);
  }
  return settings;
}

// The settings of all ranks of the node, each pair once. Ranks that differ are a check of their own.
std::set<std::pair<std::string, std::string>> all_settings(const Node& node) {
  std::set<std::pair<std::string, std::string>> all;
  for (const Rank& rank : node.ranks) {
    for (const auto& entry : settings_of(node, rank)) all.insert(entry);
  }
  return all;
}

std::string value_of(const Settings& settings, const std::string& name) {
  const auto at = settings.find(name);
  return at == settings.end() ? "" : at->second;
}

// Says unknown where the file cannot be read, and skip where nothing is set.
bool nothing_set(const Node& node, Findings& out) {
  if (const auto& file = node.facts["nccl_conf"]; file.access == machine::Access::unreadable) {
    out.unknown("/etc/nccl.conf", file.why);
  } else if (all_settings(node).empty()) {
    out.skip("nothing is set for NCCL");
  }
  return !out.empty();
}

// How NCCL misreads a value that people write otherwise; "" if it reads it as it is meant.
std::string misreading(const std::string& name, const std::string& value) {
  static const std::set<std::string> spelled_alike{"NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL",
                                                   "NCCL_BUFFSIZE"};
  if (nccl::reads_integer(name) && !nccl::parse_integer(value)) return nccl::misread_as(value);
  static const std::set<std::string> levels{"VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE"};
  if (name == "NCCL_DEBUG" && std::ranges::none_of(levels, [&](const auto& word) { return same_word(word, value); })) {
    return "NCCL knows no such level and logs nothing; allowed: VERSION, WARN, INFO, TRACE";
  }
  if (!spelled_alike.contains(name)) return "";
  const auto rows = config::registry();
  try {
    config::Settings settings;
    std::ranges::find(rows, name, &config::Variable::environment_name)->parse(settings, value);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// A setting that is for finding faults and costs speed.
struct Debugging {
  std::string name;
  std::function<bool(const std::string& value)> costs;
  std::string why;
};

std::function<bool(const std::string&)> is(const std::string& word) {
  return [word](const std::string& value) { return same_word(value, word); };
}

bool any_value(const std::string&) {
  return true;
}

const std::vector<Debugging>& debugging_settings() {
  static const std::vector<Debugging> all{
      {"NCCL_P2P_DISABLE", is("1"), "GPUs of a node exchange through host memory"},
      {"NCCL_SHM_DISABLE", is("1"), "processes of a node exchange over the network"},
      {"NCCL_IB_DISABLE", [](const std::string& value) { return value != "0"; }, "no InfiniBand and no RoCE"},
      {"NCCL_NET", is("Socket"), "no InfiniBand and no RoCE"},
      {"NCCL_NET_GDR_LEVEL", [](const std::string& value) { return value == "LOC" || value == "0"; },
       "no GPUDirect RDMA"},
      {"NCCL_DMABUF_ENABLE", is("0"), "no GPUDirect RDMA by dma-buf"},
      {"NCCL_NVLS_ENABLE", is("0"), "no reduction in the NVLink switches"},
      {"NCCL_CUMEM_ENABLE", is("0"), "no NVLS and no symmetric memory"},
      {"NCCL_ALGO", any_value, "NCCL no longer chooses by size"},
      {"NCCL_PROTO", any_value, "NCCL no longer chooses by size"},
      {"NCCL_MAX_NCHANNELS", any_value, "few channels cannot fill fast links"},
      {"NCCL_BUFFSIZE", any_value, "seldom better than NCCL's own, and more memory"},
      {"NCCL_DEBUG", [](const std::string& value) { return same_word(value, "TRACE") || same_word(value, "INFO"); },
       "each call writes to the log"}};
  return all;
}

// A list of algorithms that leaves out all whose names begin with `wanted`.
bool leaves_out(const std::string& algorithms, std::string_view wanted) {
  return !algorithms.empty() && algorithms.find('^') == std::string::npos &&
         lower(algorithms).find(lower(wanted)) == std::string::npos;
}

}  // namespace

void look::env_names(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  std::vector<std::string> others;
  for (const auto& [name, value] : all_settings(node)) {
    if (nccl::knows(name)) continue;
    const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
    if (foreign != nullptr && !foreign->owner.empty()) {
      others.push_back(fmt::format("{} ({})", name, foreign->owner));
      continue;
    }
    const std::string near = nccl::nearest_name(name);
    const std::string meant = near.empty() ? "unset it" : fmt::format("did you mean {}?", near);
    out.warn(fmt::format("{}={}: NCCL does not know this name and ignores it", name, value),
             foreign != nullptr ? std::string(foreign->note) : meant);
  }
  if (!out.empty()) return;
  out.pass(others.empty() ? "NCCL knows all names" : "NCCL knows all names but those of others: " + join(others, ", "));
}

void look::env_values(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  for (const auto& [name, value] : all_settings(node)) {
    if (!nccl::knows(name)) continue;
    if (const std::string problem = misreading(name, value); !problem.empty()) {
      out.warn(fmt::format("{}={}: {}", name, value, problem), "`harness doctor --explain " + name + "`");
    }
  }
  if (out.empty()) out.pass("NCCL reads them as they are written");
}

void look::env_debugging(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  for (const auto& [name, value] : all_settings(node)) {
    for (const Debugging& row : debugging_settings()) {
      if (row.name != name || !row.costs(value)) continue;
      out.warn(fmt::format("{}={}: {}", name, value, row.why), "unset it, or prove in a sweep that it helps");
    }
  }
  if (out.empty()) out.pass("none");
}

void look::env_combinations(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  std::set<std::string> said;
  const auto warn = [&](const std::string& evidence, const std::string& remedy) {
    if (said.insert(evidence).second) out.warn(evidence, remedy);
  };
  for (const Rank& rank : node.ranks) {
    const Settings settings = settings_of(node, rank);
    const std::string algorithms = value_of(settings, "NCCL_ALGO");
    const bool sharp = value_of(settings, "NCCL_COLLNET_ENABLE") == "1" || settings.contains("NCCL_SHARP_ENABLE");
    if (sharp && leaves_out(algorithms, "CollNet")) {
      warn(fmt::format("NCCL_ALGO={} turns off what SHARP needs (CollNetDirect, CollNetChain)", algorithms),
           "unset NCCL_ALGO");
    }
    if (value_of(settings, "NCCL_NVLS_ENABLE") == "1" && leaves_out(algorithms, "NVLS")) {
      warn(fmt::format("NCCL_ALGO={} turns off NVLS, which NCCL_NVLS_ENABLE=1 asks for", algorithms),
           "unset NCCL_ALGO");
    }
    if (value_of(settings, "NCCL_NVLS_ENABLE") == "0" && lower(algorithms).find("nvls") != std::string::npos &&
        algorithms.find('^') == std::string::npos) {
      warn(fmt::format("NCCL_NVLS_ENABLE=0 turns off what NCCL_ALGO={} names", algorithms), "unset one of them");
    }
    const std::string off = value_of(settings, "NCCL_IB_DISABLE");
    if (same_word(value_of(settings, "NCCL_NET"), "IB") && !off.empty() && off != "0") {
      warn("NCCL_IB_DISABLE turns off what NCCL_NET=IB asks for: NCCL does not start", "unset one of them");
    }
  }
  if (out.empty()) out.pass("none that contradict each other");
}

void look::env_without_effect(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  const Facts& facts = node.facts;
  bool infiniband = false, roce = false, efa = false;
  for (const Port& port : ports_of(facts)) {
    if (!is_active(facts, port)) continue;
    efa = efa || is_efa(facts, port);
    roce = roce || is_roce(facts, port);
    infiniband = infiniband || is_infiniband(facts, port);
  }
  if (facts["hcas"].access == machine::Access::unreadable) return out.unknown("the adapters", facts["hcas"].why);
  std::set<std::string> names;
  for (const auto& [name, value] : all_settings(node)) names.insert(name);
  for (const std::string& name : names) {
    const bool of_sockets = name == "NCCL_SOCKET_NTHREADS" || name == "NCCL_NSOCKS_PERTHREAD";
    if (name == "NCCL_IB_GID_INDEX" && infiniband && !roce) {
      out.info("NCCL_IB_GID_INDEX has no effect on InfiniBand: only RoCE looks at it", "unset it");
    } else if (name.starts_with("NCCL_IB_") && name != "NCCL_IB_DISABLE" && !infiniband && !roce) {
      out.info(fmt::format("{} has no effect: {}", name, efa ? "EFA is no InfiniBand" : "there is no active RDMA port"),
               "unset it");
    } else if (of_sockets && (infiniband || roce)) {
      out.info(name + " has no effect: NCCL uses RDMA here", "unset it");
    } else if (name.starts_with("NCCL_DEBUG_") && !names.contains("NCCL_DEBUG")) {
      out.info(name + " has no effect without NCCL_DEBUG", "unset it");
    }
  }
  if (out.empty()) out.pass("all can have an effect");
}

// A list of adapters or interfaces against what the node has.
void look::env_devices(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  const Facts& facts = node.facts;
  std::vector<std::string> ports;
  for (const Port& port : ports_of(facts)) ports.push_back(port.name());
  const std::vector<std::string> interfaces = facts.under("net");
  bool any = false;
  for (const auto& [name, value] : all_settings(node)) {
    const bool adapters = name == "NCCL_IB_HCA";
    if (!adapters && name != "NCCL_SOCKET_IFNAME") continue;
    any = true;
    const std::vector<std::string>& all = adapters ? ports : interfaces;
    if (all.empty()) {
      out.unknown(adapters ? "the list of adapters" : "the list of interfaces", "/sys shows none");
      continue;
    }
    const nccl::DeviceList list(value);
    std::vector<std::string> chosen = all;
    std::erase_if(chosen, [&](const std::string& device) { return !list.allows(device); });
    if (chosen.empty()) {
      out.fail(fmt::format("{}={} fits nothing here: {}", name, value, join_first(all, 8)),
               adapters ? "correct it: NCCL uses sockets without a word" : "correct it: NCCL does not start");
    }
    for (const std::string& word : list.names) {
      const auto fits =
          std::ranges::count_if(all, [&](const std::string& device) { return list.matches(word, device); });
      const bool whole = std::ranges::any_of(
          all, [&](const std::string& device) { return device.substr(0, device.find(':')) == word; });
      if (!list.exact && whole && fits > 1) {
        out.warn(fmt::format("{}={}: {} is also the beginning of other names", name, value, word),
                 fmt::format("write {}={}={}", name, list.all_but ? "^" : "", join(list.names, ",")));
      }
    }
    for (const std::string& device : chosen) {
      const bool poor = device == "lo" || device.starts_with("docker") || device.starts_with("virbr") ||
                        facts.text("net/" + device + "/state") == "down";
      if (!adapters && poor)
        out.warn(fmt::format("{}={} allows {}, which reaches no other node", name, value, device), "leave it out");
    }
  }
  out.conclude(any, "they fit", "no list of devices is set");
}

// Files that are named and not there. NCCL's log says so; who does not read it takes the file to be in use.
void look::env_files(const Node& node, const Cluster&, Findings& out) {
  if (nothing_set(node, out)) return;
  bool any = false;
  std::map<std::string, machine::Reading> seen;  // by "NAME=PATH"
  for (const Rank& rank : node.ranks) {
    for (const auto& [name, path] : settings_of(node, rank)) {
      if (std::ranges::find(variables_with_files, name) == variables_with_files.end()) continue;
      any = true;
      const std::string fact = "exists/" + path;
      const machine::Reading& own = rank.facts[fact];
      seen[fmt::format("{}={}", name, path)] = own.access != machine::Access::absent ? own : node.facts[fact];
    }
  }
  for (const auto& [setting, reading] : seen) {
    if (!reading.ok()) {
      out.unknown("the file of " + setting, reading.why.empty() ? "its path depends on the job's folder" : reading.why);
    } else if (reading.text == "no") {
      out.warn(setting + ": the file is not there, and NCCL goes on without it",
               "correct the path, give the container the file, or unset the variable");
    }
  }
  out.conclude(any, "they are there", "no file is named");
}

void look::env_ranks(const Node& node, const Cluster& cluster, Findings& out) {
  constexpr std::string_view unset = "(not set)";
  if (cluster.ranks < 2) return out.skip("one rank");
  for (const auto& [name, said] : cluster.settings) {
    auto values_of_name = said;
    std::size_t set = 0;
    for (const auto& [value, times] : said) set += times;
    if (set < cluster.ranks) values_of_name[std::string(unset)] = cluster.ranks - set;
    if (values_of_name.size() < 2) continue;
    const auto& [usual, times] =
        *std::ranges::max_element(values_of_name, {}, [](const auto& entry) { return entry.second; });
    std::map<std::string, std::vector<std::string>> others;
    for (const Rank& rank : node.ranks) {
      const std::string value = rank.facts.has("env/" + name) ? rank.facts.text("env/" + name) : std::string(unset);
      if (value != usual) others[value].push_back(std::to_string(rank.rank));
    }
    for (const auto& [value, with] : others) {
      out.warn(fmt::format("{} is {} at {} of the ranks here; {} of all {} have {}", name, value, with.size(), times,
                           cluster.ranks, usual),
               "mpirun -x " + name + ": mpirun passes the environment on only where it is asked to");
    }
  }
  if (out.empty()) out.pass("all ranks have the same");
}

void look::env_file(const Node& node, const Cluster&, Findings& out) {
  if (const auto& file = node.facts["nccl_conf"]; file.access == machine::Access::unreadable) {
    return out.unknown("/etc/nccl.conf", file.why);
  }
  const std::vector<std::string> names = node.facts.under("nccl_conf");
  if (names.empty()) return out.pass("sets nothing");
  std::vector<std::string> lines;
  for (const std::string& name : names) lines.push_back(name + "=" + node.facts.text("nccl_conf/" + name));
  out.info("/etc/nccl.conf sets " + join_first(lines, 4), "NCCL reads it without a word; the environment wins over it");
}

std::string explain(const std::string& name) {
  const std::string by_env = fmt::format("sweep it with `env: [{{{}: VALUE}}]`", name);
  if (const nccl::ForeignName* foreign = nccl::find_foreign_name(name); foreign != nullptr) {
    if (foreign->owner.empty()) return fmt::format("{}: read by nobody; {}\n", name, foreign->note);
    const std::string about = foreign->is_prefix() ? fmt::format("names that begin with {}: ", foreign->name) : "";
    return fmt::format("{}: not read by NCCL, but by {} ({}{}); {}\n", name, foreign->owner, about, foreign->note,
                       by_env);
  }
  if (!nccl::knows(name)) {
    if (!name.starts_with("NCCL_"))
      fail("{} is no variable of NCCL, nor of what is known to work with it, such as OFI_NCCL_…, FI_…, TORCH_NCCL_…",
           quote(name));
    const std::string near = nccl::nearest_name(name);
    const std::string advice = near.empty()
                                   ? fmt::format("; no name that it knows is near ({})",
                                                 "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html")
                                   : did_you_mean(near);
    return fmt::format("{}: NCCL does not know this name and ignores it{}\n", name, advice);
  }
  const auto rows = config::registry();
  const auto row = std::ranges::find(rows, name, &config::Variable::environment_name);
  if (row != rows.end())
    return fmt::format("{}: read by NCCL. {}; `{}` sweeps it ({})\n", name, row->help, config::example_of(*row),
                       row->allowed);
  return fmt::format("{}: read by NCCL{}; {}\n", name, nccl::reads_integer(name) ? " as a plain whole number" : "",
                     by_env);
}

}  // namespace harness::doctor
