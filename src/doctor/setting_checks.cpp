// Settings of NCCL, in the environment of the ranks and in /etc/nccl.conf, their effect on this node, and the files of
// NCCL that the linker finds.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "config/registry.h"
#include "doctor/check.h"
#include "nccl/log.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

using Settings = std::map<std::string, std::string>;

// NCCL's settings of a rank: the environment overrides the file.
Settings settings_of(const Node& node, const Rank& rank) {
  Settings settings;
  for (const std::string& name : node.facts.under("nccl_conf")) settings[name] = node.facts.text("nccl_conf/" + name);
  for (const std::string& name : rank.facts.under("env")) {
    if (name.starts_with("NCCL_")) settings[name] = rank.facts.text("env/" + name);
  }
  return settings;
}

// The settings of all ranks of the node, each pair once. Another check reports nodes that differ.
std::set<std::pair<std::string, std::string>> all_settings(const Node& node) {
  std::set<std::pair<std::string, std::string>> all;
  for (const Rank& rank : node.ranks) {
    for (const auto& entry : settings_of(node, rank)) all.insert(entry);
  }
  return all;
}

// Calls look(name, value) for each setting of the node. Reports unknown if the file cannot be read, skip if nothing is
// set, and `passes` if nothing was found.
template <class Look>
void look_at_settings(const Node& node, Findings& out, const std::string& passes, Look look) {
  if (const auto& file = node.facts["nccl_conf"]; file.unreadable()) return out.unknown("/etc/nccl.conf", file.why);
  const auto settings = all_settings(node);
  for (const auto& [name, value] : settings) look(name, value);
  out.conclude(!settings.empty(), passes, "nothing is set for NCCL");
}

// How NCCL misreads a value in another notation; "" if it reads it as intended.
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

// Whether a list has the value: "LOC,0"; "^0" is every value but 0, as in NCCL's own lists. Case-insensitive.
bool has_value(std::string_view list, std::string_view value) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  return all_but != std::ranges::any_of(split(list, ','), [&](auto word) { return same_word(word, value); });
}

// The value that NCCL takes: the number at the start of an integer, such as 0 of "False". "": its default.
std::string as_read(const std::string& name, const std::string& value) {
  return value.empty() || !nccl::reads_integer(name) ? value : std::to_string(std::strtoll(value.c_str(), nullptr, 0));
}

// A setting for debugging that costs performance.
struct Debugging {
  std::string_view name, costs;  // `costs`: a list of values; "": any value
  std::string_view why;
};
constexpr auto debugging = std::to_array<Debugging>({
    {"NCCL_P2P_DISABLE", "1", "GPUs of a node exchange through host memory"},
    {"NCCL_P2P_LEVEL", "LOC", "GPUs of a node exchange through host memory"},
    {"NCCL_SHM_DISABLE", "1", "processes of a node exchange over the network"},
    {"NCCL_IB_DISABLE", "^0", "no InfiniBand and no RoCE"},
    {"NCCL_NET", "Socket", "no InfiniBand and no RoCE"},
    {"NCCL_NET_GDR_LEVEL", "LOC,0", "no GPUDirect RDMA"},
    {"NCCL_DMABUF_ENABLE", "0", "no GPUDirect RDMA by dma-buf"},
    {"NCCL_NVLS_ENABLE", "0", "no reduction in the NVLink switches"},
    {"NCCL_CUMEM_ENABLE", "0", "no NVLS and no symmetric memory"},
    {"NCCL_ALGO", "", "NCCL no longer chooses by size"},
    {"NCCL_PROTO", "", "NCCL no longer chooses by size"},
    {"NCCL_MAX_NCHANNELS", "", "few channels cannot fill fast links"},
    {"NCCL_BUFFSIZE", "", "seldom better than NCCL's own, and more memory"},
    {"NCCL_DEBUG", "TRACE,INFO", "each call writes to the log"},
});

// Reports an NCCL_IB_GID_INDEX that is no RoCE address of a port, and ports whose addresses cannot be read.
void judge_gid_index(const Node& node, const std::string& index, Findings& out) {
  if (index == "-1" || setting_of(node, "NCCL_IB_ADDR_FAMILY") == "AF_INET6") return;
  for (const Port& port : active_ports(node.facts)) {
    if (!is_roce(node.facts, port) || !may_take(node, port) || is_spare(node, port)) continue;
    const machine::Reading& addresses = node.facts[port.key + "roce_addresses"];
    if (!addresses.ok()) {
      out.unknown("the addresses of " + port.name(), why_silent(addresses));
    } else if ((", " + addresses.text + ",").find(", " + index + ",") == std::string::npos) {
      out.fail(fmt::format("NCCL_IB_GID_INDEX={} is no RoCE v2 address of IPv4 on {}, where these are: {}", index,
                           port.name(), addresses.text),
               "unset NCCL_IB_GID_INDEX: since 2.21 NCCL finds the address itself");
    }
  }
}

// Compares a list of adapters or interfaces with those of the node.
void judge_list(const Facts& facts, const std::string& name, const std::string& value, Findings& out) {
  const bool adapters = name == "NCCL_IB_HCA";
  std::vector<std::string> all;
  if (!adapters) all = facts.under("net");
  for (const Port& port : adapters ? real_ports(facts) : std::vector<Port>()) all.push_back(port.name());
  if (adapters && has_efa(facts) && all.empty()) return;  // see env.without_effect
  if (all.empty()) return out.unknown(adapters ? "the list of adapters" : "the list of interfaces", "/sys shows none");
  const nccl::DeviceList list(value);
  std::vector<std::string> chosen = all;
  std::erase_if(chosen, [&](const std::string& device) { return !list.allows(device); });
  if (chosen.empty()) {
    out.fail(fmt::format("{}={} fits nothing here: {}", name, value, join_first(all, 8)),
             adapters ? "correct it: NCCL uses sockets without a word" : "correct it: NCCL does not start");
  }
  for (const std::string& word : list.names) {
    const auto is_whole = [&](const std::string& device) { return device.substr(0, device.find(':')) == word; };
    const auto fits = [&](const std::string& device) { return list.matches(word, device); };
    const auto fits_more = [&](const std::string& device) { return fits(device) && !is_whole(device); };
    if (!list.exact && std::ranges::any_of(all, is_whole) && std::ranges::any_of(all, fits_more)) {
      out.warn(fmt::format("{}={}: {} is also the beginning of other names", name, value, word),
               fmt::format("write {}={}={}", name, list.all_but ? "^" : "", join(list.names, ",")));
    }
    if (adapters && !list.all_but && !chosen.empty() && std::ranges::none_of(all, fits))
      out.warn(fmt::format("{}={}: {} fits no adapter here", name, value, quote(word)),
               "correct it: blanks count, and adapters that are not named are not used");
  }
  if (adapters) return;
  // An interface that is down is no choice, unless it is asked for.
  std::erase_if(chosen, [&](const std::string& device) {
    const bool is_down = !list.all_but && facts.text("net/" + device + "/state") == "down";
    return !is_down && !nccl::is_virtual_interface(device);
  });
  if (!chosen.empty())
    out.warn(fmt::format("{}={} allows {}: no way to other nodes", name, value, join_first(chosen, 3)), "leave it out");
}

bool wants_sockets(const Settings& settings) {
  const auto has = [&](const std::string& name, std::string_view list) {
    const auto at = settings.find(name);
    const std::string read = at == settings.end() ? "" : as_read(name, at->second);
    return !read.empty() && has_value(list, read);
  };
  return has("NCCL_IB_DISABLE", "^0") || has("NCCL_NET", "Socket");
}

// Why a setting has no effect on a node; "": it has one.
std::string why_without_effect(const Facts& facts, const Settings& settings, const std::string& name) {
  const std::vector<Port> ports = active_ports(facts);
  const bool any_roce = std::ranges::any_of(ports, [&](const Port& port) { return is_roce(facts, port); });
  if (name == "NCCL_IB_GID_INDEX" && !ports.empty() && !any_roce) return "on InfiniBand: only RoCE looks at it";
  if (name.starts_with("NCCL_IB_") && name != "NCCL_IB_DISABLE" && ports.empty())
    return has_efa(facts) ? "on EFA, which is no InfiniBand" : "without an active RDMA port";
  if ((name == "NCCL_SOCKET_NTHREADS" || name == "NCCL_NSOCKS_PERTHREAD") && !ports.empty() && !wants_sockets(settings))
    return "where NCCL uses RDMA";
  if (name.starts_with("NCCL_DEBUG_") && !settings.contains("NCCL_DEBUG")) return "without NCCL_DEBUG";
  return "";
}

// The file of a network plug-in that NCCL loads, found as NCCL does; "": none. `wanted`: since 2.27 also a list.
std::string plugin_of(const Node& node, const std::string& wanted) {
  for (const std::string& one : split_text(wanted, ",")) {
    if (one.starts_with('/')) return one;  // an absolute path needs no search
    for (const std::string& name : {one, fmt::format("libnccl-net-{}.so", one)}) {
      if (const std::string files = node.facts.text("library/" + name); !files.empty())
        return files.substr(0, files.find(", "));  // the first one
    }
  }
  return "";
}

}  // namespace

void look::env_names(const Node& node, const Cluster&, Findings& out) {
  look_at_settings(node, out, "somebody reads each of them", [&](const std::string& name, const std::string& value) {
    const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
    if (nccl::knows(name) || (foreign != nullptr && !foreign->owner.empty())) return;
    const std::string near = nccl::nearest_name(name);
    const std::string meant = near.empty() ? "unset it" : fmt::format("did you mean {}?", near);
    out.warn(fmt::format("{}={}: NCCL does not know this name and ignores it", name, value),
             foreign != nullptr ? std::string(foreign->note) : meant);
  });
}

void look::env_values(const Node& node, const Cluster&, Findings& out) {
  look_at_settings(node, out, "NCCL reads them as they are written",
                   [&](const std::string& name, const std::string& value) {
                     const std::string problem = nccl::knows(name) ? misreading(name, value) : "";
                     if (!problem.empty())
                       out.warn(fmt::format("{}={}: {}", name, value, problem),
                                "correct it: NCCL's page of environment variables has the values");
                   });
}

void look::env_debugging(const Node& node, const Cluster&, Findings& out) {
  look_at_settings(node, out, "none", [&](const std::string& name, const std::string& value) {
    const std::string read = as_read(name, value);
    for (const Debugging& row : debugging) {
      if (row.name == name && !read.empty() && (row.costs.empty() || has_value(row.costs, read)))
        out.warn(fmt::format("{}={}: {}", name, value, row.why), "unset it, or prove in a sweep that it helps");
    }
  });
}

void look::env_without_effect(const Node& node, const Cluster&, Findings& out) {
  if (const auto& hcas = node.facts["hcas"]; hcas.unreadable()) return out.unknown("the adapters", hcas.why);
  Settings settings;
  for (const auto& [name, value] : all_settings(node)) settings[name] = value;
  look_at_settings(node, out, "all can have an effect", [&](const std::string& name, const std::string&) {
    const std::string why = why_without_effect(node.facts, settings, name);
    if (!why.empty()) out.info(fmt::format("{} has no effect {}", name, why), "unset it");
  });
}

void look::env_devices(const Node& node, const Cluster&, Findings& out) {
  look_at_settings(node, out, "they fit", [&](const std::string& name, const std::string& value) {
    if (name == "NCCL_IB_HCA" || name == "NCCL_SOCKET_IFNAME") judge_list(node.facts, name, value, out);
    if (name == "NCCL_IB_GID_INDEX") judge_gid_index(node, value, out);
  });
}

void look::env_file(const Node& node, const Cluster&, Findings& out) {
  if (const auto& file = node.facts["nccl_conf"]; file.unreadable()) return out.unknown("/etc/nccl.conf", file.why);
  std::vector<std::string> lines;
  for (const std::string& name : node.facts.under("nccl_conf"))
    lines.push_back(name + "=" + node.facts.text("nccl_conf/" + name));
  if (lines.empty()) return out.pass("sets nothing");
  out.info("/etc/nccl.conf sets " + join_first(lines, 4), "NCCL reads it without a word; the environment wins over it");
}

void look::nccl_plugin_file(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const std::string wanted = setting_of(node, "NCCL_NET_PLUGIN"), network = setting_of(node, "NCCL_NET");
  if (const std::string found = plugin_of(node, wanted.empty() ? "libnccl-net.so" : wanted); !found.empty())
    return out.pass(found);
  if (const auto& folders = node.facts["library"]; folders.unreadable())
    return out.unknown("the linker's folders", folders.why);
  const bool will_fail = !network.empty() && !has_value("IB,Socket", network);
  const std::string needs_it = will_fail                                        ? "NCCL_NET=" + network
                               : has_efa(node.facts)                            ? "EFA"
                               : !wanted.empty() && wanted != "none"            ? "NCCL_NET_PLUGIN=" + wanted
                               : setting_of(node, "NCCL_COLLNET_ENABLE") == "1" ? "SHARP (NCCL_COLLNET_ENABLE=1)"
                                                                                : "";
  if (needs_it.empty()) return out.pass("none, and none is needed");
  out.warn(
      fmt::format("NCCL finds no plugin ({}), which {} needs: {}", wanted.empty() ? "libnccl-net.so" : wanted, needs_it,
                  will_fail ? "it does not start" : "it goes on without"),
      "let LD_LIBRARY_PATH lead to aws-ofi-nccl (EFA; NCCL_NET_PLUGIN=ofi where its file is libnccl-net-ofi.so) or "
      "to HPC-X (SHARP), inside of a container too; or unset the variable");
}

}  // namespace harness::doctor
