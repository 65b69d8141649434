#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "evidence/nccl_use.h"

// Judges the network, on all hosts, on some, or within one: a fact is compared between hosts, then between
// the GPUs and the processes of each.

namespace harness::evidence {
namespace {

// The words of a value that another one lacks: of a list of adapters only these are of interest.
std::string beyond(const std::string& value, const std::string& other) {
  const std::vector<std::string_view> known = words_of(other);
  std::vector<std::string> more;
  for (const std::string_view word : words_of(value))
    if (std::ranges::find(known, word) == known.end()) more.emplace_back(word);
  return more.empty() ? "no other" : join(more, " ");
}

struct NetworkJudge {
  const NcclUse& use;
  Answer& out;
  std::vector<const NcclUse::Host*> hosts = use.named_hosts();
  bool on_one_node = is_on_one_node(), on_several_nodes = is_on_several_nodes();

  bool is_on_one_node() const;
  bool is_on_several_nodes() const;
  bool sends_without_on_purpose(const NcclUse::Host& host) const;
  void sockets();
  void interfaces();
  void differences();
  void differences_inside();
  void direct();
  void direct_in_part();
  void adapters();
};

// True only where the log proves it.
bool NetworkJudge::is_on_one_node() const {
  if (hosts.size() != 1) return false;
  const NcclUse::Communicator* largest = use.largest();
  if (largest == nullptr) return !hosts.front()->ends.empty() && !hosts.front()->reaches_others();
  return largest->nodes == 1 || largest->host_of.size() == static_cast<std::size_t>(largest->ranks);
}

// A connection over the network whose other end is not in the log of its host goes to another node.
bool NetworkJudge::is_on_several_nodes() const {
  if (hosts.size() > 1) return true;
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr && largest->nodes > 1) return true;
  return !is_on_one_node() && std::ranges::any_of(hosts, [](const auto* host) { return host->reaches_others(); });
}

// Whether no GPU of the host sends with GPUDirect RDMA, though all that is received uses it, and nothing in the log
// speaks against NCCL's having chosen so.
bool NetworkJudge::sends_without_on_purpose(const NcclUse::Host& host) const {
  const NcclUse::Gpu all = host.together();
  const std::string set = host.seen.fact("NCCL_NET_GDR_READ");
  if (all.sends.all == 0 || all.sends.direct > 0 || all.receives.direct < all.receives.all) return false;
  if (set == "0") return true;
  const bool asked = !set.empty() || host.reads_directly;
  return all.receives.all > 0 && !asked &&
         std::ranges::none_of(hosts, [](const auto* other) { return other->together().sends.direct > 0; });
}

void NetworkJudge::sockets() {
  const std::vector<std::string> on_sockets = names_of(hosts, [](const auto& host) { return host.on_sockets(); });
  if (!on_sockets.empty() && !on_several_nodes && !on_one_node)
    out.notes.emplace_back(
        "NCCL uses TCP sockets, and the log does not say whether there are other nodes: to them it is slow");
  if (!on_sockets.empty() && on_several_nodes) {
    const std::string hca = use.anywhere("NCCL_IB_HCA"), disabled = use.anywhere("NCCL_IB_DISABLE");
    const bool none = use.anywhere("network_devices").find("none (IB)") != std::string::npos;
    const std::string chosen = use.anywhere("NCCL_NET");
    std::string why = none ? "no InfiniBand or RoCE adapter was found" : "the log does not say why";
    std::string remedy = "ibv_devinfo on the node, /dev/infiniband in the container, libibverbs in the image";
    const bool no_library = std::ranges::any_of(use.warnings, [](const auto& warning) {
      return warning.kind != nullptr && warning.kind->name == "no libibverbs";
    });
    if (no_library) why = "libibverbs cannot be opened, so NCCL sees no InfiniBand or RoCE adapter";
    if (!hca.empty() && none) {
      why = fmt::format("NCCL_IB_HCA={} matches no adapter", hca);
      remedy = "unset it, or name the adapters that ibv_devinfo lists";
    } else if (!disabled.empty() && disabled != "0") {
      why = fmt::format("NCCL_IB_DISABLE={} turns InfiniBand off", disabled);
      remedy = "unset NCCL_IB_DISABLE";
    } else if (same_word(chosen, "Socket")) {
      why = fmt::format("NCCL_NET={} asks for it", chosen);
      remedy = "unset NCCL_NET";
    }
    const bool all = on_sockets.size() == hosts.size();
    out.problem(fmt::format("{} over TCP sockets: {}", all ? "NCCL runs" : some_of(on_sockets) + " run", why), remedy);
  }
}

void NetworkJudge::interfaces() {
  if (on_one_node) return;
  std::set<std::string> found;
  const std::vector<std::string> on = names_of(hosts, [&](const auto& host) {
    bool any = false;
    const std::string devices = host.seen.fact("network_devices") + " " + host.seen.fact("bootstrap_interface");
    for (const std::string_view device : words_of(devices)) {
      if (!nccl::is_virtual_interface(device)) continue;
      found.emplace(device);
      any = true;
    }
    return any;
  });
  if (on.empty()) return;
  const std::vector<std::string> names(found.begin(), found.end());
  out.fact("warn_interface",
           fmt::format("{} {} among the interfaces", some_of(names), names.size() == 1 ? "is" : "are"));
  std::string all_but = "^docker,lo";  // what NCCL leaves out where nothing is set
  for (const std::string& name : names) {
    if (!name.starts_with("docker") && name != "lo") all_but += "," + name;
  }
  out.problem(fmt::format("NCCL uses {} on {}: virtual interfaces reach no other node, or not fast", some_of(names),
                          some_of(on)),
              "NCCL_SOCKET_IFNAME=" + all_but);
}

// The parts of each host that differ from the others of it: "GPU 3" and what it has. Hosts where it is the same are
// told together.
void NetworkJudge::differences_inside() {
  using Values = std::vector<std::pair<std::string, std::string>>;  // a part of a host, its value
  const auto compare = [&](const char* noun, const char* remedy, const auto& values_of) {
    std::map<std::string, std::vector<std::string>> hosts_of;
    for (const NcclUse::Host* host : hosts) {
      std::map<std::string, std::vector<std::string>> groups;
      const Values values = values_of(*host);
      for (const auto& [part, value] : values) groups[value].push_back(part);
      if (groups.size() < 2) continue;
      const auto usual = std::ranges::max_element(groups, {}, [](const auto& row) { return row.second.size(); });
      std::vector<std::string> parts;
      for (const auto& [value, names] : groups) {
        if (value != usual->first) parts.push_back(fmt::format("{} {} on {}", noun, value, some_of(names)));
      }
      hosts_of[fmt::format("{}, {} on {}", join_first(parts, 4), usual->first, some_of(usual->second))].push_back(
          host->name);
    }
    for (const auto& [text, names] : hosts_of) out.problem(fmt::format("within {}: {}", some_of(names), text), remedy);
    return !hosts_of.empty();
  };
  const auto of_processes = [](std::string NcclUse::Process::*fact) {
    return [fact](const NcclUse::Host& host) {
      Values values;
      for (const NcclUse::Process& process : host.processes) {
        const bool only = std::ranges::count(host.processes, process.gpu, &NcclUse::Process::gpu) == 1;
        const bool by_gpu = only && !process.gpu.empty();
        if (!(process.*fact).empty())
          values.emplace_back(by_gpu ? "GPU " + process.gpu : "process " + process.id, process.*fact);
      }
      return values;
    };
  };
  const auto networks = [](const NcclUse::Host& host) {
    Values values;
    for (const auto& [name, gpu] : host.gpus) {
      for (const std::string& network : gpu.networks) values.emplace_back(name, network);
    }
    return values;
  };
  constexpr const char* fallback = "one of them falls back: see what NCCL says of its adapters; NCCL_IB_HCA, NCCL_NET";
  if (!compare("network", fallback, networks)) compare("network", fallback, of_processes(&NcclUse::Process::network));
  compare("NCCL", "one version for all ranks: LD_LIBRARY_PATH, container", of_processes(&NcclUse::Process::version));
  // Ranks that are each given an adapter of their own differ on purpose.
  const auto devices = [&](const NcclUse::Host& host) {
    const bool assigned = contains(host.seen.fact("NCCL_IB_HCA"), nccl::fact_separator);
    return assigned || host.on_sockets() ? Values{} : of_processes(&NcclUse::Process::devices)(host);
  };
  compare("adapters", "adapters or ports that are missing there: NCCL_IB_HCA, the devices of its container", devices);
}

void NetworkJudge::differences() {
  const auto compare = [&](const char* fact, const char* noun, const char* remedy) {
    std::map<std::string, std::vector<std::string>> groups;
    for (const NcclUse::Host* host : hosts) {
      const std::string value = host->seen.fact(fact);
      const bool single = !value.empty() && value.find(nccl::fact_separator) == std::string::npos;
      if (single) groups[value].push_back(host->name);
    }
    if (groups.size() < 2) return;
    const auto usual = std::ranges::max_element(groups, {}, [](const auto& row) { return row.second.size(); });
    for (const auto& [value, names] : groups) {
      if (value == usual->first) continue;
      out.problem(
          fmt::format("{} {} on {}, {} on {}", noun, beyond(value, usual->first), some_of(names),
                      beyond(usual->first, value), usual->second.size() > 1 ? "the others" : usual->second.front()),
          remedy);
      return;
    }
  };
  compare("version", "NCCL", "one version on all nodes: LD_LIBRARY_PATH, container");
  compare("network", "network", "the nodes that differ fall back: see what NCCL says of their adapters");
  if (!use.anywhere("network").starts_with("Socket"))
    compare("network_devices", "adapters", "adapters or ports that are missing: ibstat on the nodes");
  std::set<std::string> settings;
  for (const NcclUse::Host* host : hosts) {
    for (const auto& [name, value] : host->seen.facts) {
      constexpr std::size_t most = 64;
      if (name.starts_with("NCCL_") && name != "NCCL_DEBUG_FILE" && settings.size() < most) settings.insert(name);
    }
  }
  for (const std::string& name : settings) compare(name.c_str(), name.c_str(), "set it alike on all ranks");
  for (const NcclUse::Host* host : hosts) {
    for (const auto& [name, value] : host->seen.facts) {
      if (name.starts_with("NCCL_") && value.find(nccl::fact_separator) != std::string::npos)
        out.problem(fmt::format("ranks of {} differ in {}: {}", host->name, name, value), "set it alike on all ranks");
    }
  }
}

void NetworkJudge::direct() {
  const auto without = [&](const NcclUse::Host& host) {
    const NcclUse::Gpu all = host.together();
    if (host.on_sockets() || sends_without_on_purpose(host)) return false;
    if (all.sends.all + all.receives.all > 0) return all.sends.direct + all.receives.direct == 0;
    return host.seen.fact("gpu_direct") == "disabled" && !on_one_node;
  };
  const auto with = [](const NcclUse::Host& host) {
    const NcclUse::Gpu all = host.together();
    return all.sends.direct + all.receives.direct > 0;
  };
  const std::vector<std::string> lacking = names_of(hosts, without), having = names_of(hosts, with);
  direct_in_part();
  if (lacking.empty()) return;
  std::string reason;
  for (const NcclUse::Host* host : hosts) {
    int distance = 0, limit = 0;
    Cursor c{host->direct_reason};
    if (!without(*host) || !c.integer(distance) || !c.literal(" > ") || !c.integer(limit)) continue;
    reason = fmt::format(" (GPU to adapter at distance {}, limit {})", distance, limit);
    break;
  }
  std::string text =
      fmt::format("{} {} not use GPUDirect RDMA{}", some_of(lacking), lacking.size() == 1 ? "does" : "do", reason);
  if (!having.empty()) text += fmt::format("; {} {}", some_of(having), having.size() == 1 ? "does" : "do");
  int major = 0, minor = 0;
  const std::string version = use.anywhere("version");
  Cursor c{version};
  const bool known = c.integer(major) && c.literal(".") && c.integer(minor);
  constexpr int sees_module = 23;
  const bool old = known && major == 2 && minor < sees_module;
  std::string remedy = "compare `nvidia-smi topo -m` of the nodes; NCCL_NET_GDR_LEVEL raises the limit";
  if (reason.empty())
    remedy = fmt::format("nvidia-peermem{} or DMA-BUF on these nodes; ACS off; compare `nvidia-smi topo -m`",
                         old ? " (of some drivers NCCL sees it from 2.23 on)" : "");
  out.problem(text, remedy);
}

// Judges parts of a host: a GPU, a direction, an adapter.
void NetworkJudge::direct_in_part() {
  std::map<std::string, std::vector<const NcclUse::Host*>> in_part, on_purpose;
  for (const NcclUse::Host* host : hosts) {
    const NcclUse::Gpu all = host->together();
    const std::int64_t ends = all.sends.all + all.receives.all, direct = all.sends.direct + all.receives.direct;
    if (sends_without_on_purpose(*host)) {
      on_purpose[host->direct_text()].push_back(host);
    } else if (!host->on_sockets() && direct > 0 && direct < ends) {
      in_part[host->direct_text()].push_back(host);
    }
    std::vector<std::string> with, without;
    for (const auto& [name, enabled] : host->direct_adapters) (enabled ? with : without).push_back(name);
    if (!with.empty() && !without.empty())
      out.problem(fmt::format("{} of {} {} no GPUDirect RDMA, {} {} it", some_of(without), host->name,
                              without.size() == 1 ? "has" : "have", some_of(with), with.size() == 1 ? "has" : "have"),
                  "nvidia-peermem or DMA-BUF for that adapter; its firmware and driver");
  }
  for (const auto& [text, alike] : in_part) {
    out.problem("GPUDirect RDMA is used in part: " + direct_text_of(alike),
                "compare `nvidia-smi topo -m` of GPUs with and without it; NCCL_NET_GDR_LEVEL raises the limit of the "
                "distance, NCCL_NET_GDR_READ=1 is for what is sent; ACS off");
  }
  for (const auto& [text, alike] : on_purpose) {
    out.notes.push_back("GPUDirect RDMA: " + direct_text_of(alike) +
                        ": so NCCL does with NCCL_NET_GDR_READ=0, and on GPUs before Ampere without NVLink");
  }
}

void NetworkJudge::adapters() {
  for (const NcclUse::Host* host : hosts) {
    if (host->inner_network > 0) {
      out.problem(
          fmt::format("ranks of {} talk to each other over the network", host->name),
          "P2P and shared memory are off or broken there: NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, container per rank");
      break;
    }
  }
  const NcclUse::Communicator* largest = use.largest();
  bool idle = false, one_for_all = false;  // of adapters
  for (const NcclUse::Host* host : hosts) {
    if (host->adapters.empty() || host->adapters.size() >= host->devices()) continue;
    idle = true;
    one_for_all = one_for_all || (largest != nullptr && host->adapters.size() == 1 && host->gpus.size() > 1);
  }
  if (idle && (largest == nullptr || largest->is_whole())) {  // ranks that are not there use others
    const std::string text = "adapters in use: " + adapters_text(hosts);
    const std::string why = "a ring uses one per channel: NCCL_IB_HCA, NCCL_CROSS_NIC, GPUs per node";
    if (one_for_all) out.problem(text, why);
    if (!one_for_all) out.notes.push_back(text + "; " + why);
  }
  std::vector<std::string> over_memory;
  for (const NcclUse::Host* host : hosts) {
    std::vector<std::string> without_peer, with_peer;
    for (const auto& [name, gpu] : host->gpus) {
      if (gpu.by_peer > 0) with_peer.push_back(name);
      if (gpu.by_peer == 0 && gpu.through_memory > 0) without_peer.push_back(name);
    }
    if (!with_peer.empty() && !without_peer.empty()) {
      out.problem(fmt::format("{} of {} {} to others of the node through host memory (SHM), {} directly (P2P)",
                              some_of(without_peer), host->name, without_peer.size() == 1 ? "talks" : "talk",
                              some_of(with_peer)),
                  "nvidia-smi topo -m and topo -p2p r; nvidia-smi nvlink -s of that GPU");
    } else if (host->seen.fact("pxn").empty() && host->together().through_memory > 0) {
      over_memory.push_back(host->name);
    }
  }
  const auto by_peer = names_of(
      hosts, [](const auto& host) { return host.together().by_peer > 0 && host.together().through_memory == 0; });
  if (over_memory.empty()) return;
  const std::string text = fmt::format("GPUs of {} talk through host memory (SHM)", some_of(over_memory));
  if (by_peer.empty()) {
    out.notes.push_back(text + ": no NVLink or P2P between them");
  } else {
    out.problem(fmt::format("{}, those of {} directly (P2P)", text, some_of(by_peer)),
                "NCCL_P2P_DISABLE, container, ACS; nvidia-smi topo -p2p r on both");
  }
}

}  // namespace

void judge_network(const NcclUse& use, Answer& out) {
  NetworkJudge judge{use, out};
  judge.sockets();
  judge.interfaces();
  judge.differences_inside();
  judge.differences();
  judge.direct();
  judge.adapters();
}

}  // namespace harness::evidence
