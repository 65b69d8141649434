#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "evidence/nccl_use.h"

namespace harness::evidence {
namespace {

std::vector<std::string> names_of(const std::vector<const NcclUse::Host*>& hosts,
                                  const std::function<bool(const NcclUse::Host&)>& which) {
  std::vector<std::string> names;
  for (const NcclUse::Host* host : hosts) {
    if (which(*host)) names.push_back(host->name);
  }
  return names;
}

struct Judge {
  const NcclUse& use;
  Answer& out;
  std::vector<const NcclUse::Host*> hosts = use.named_hosts();

  void warnings();
  void sockets();
  void differences();
  void direct();
  void adapters();
  void missing_ranks();
  void failures();
};

void Judge::warnings() {
  std::map<std::string, std::set<std::string>> hosts_by_peer;
  std::map<std::string, std::int64_t> counts, by_peer;
  std::vector<std::string> order;
  const NcclUse::Warning* cause = nullptr;
  for (const NcclUse::Warning& warning : use.warnings) {
    const std::string name(warning.kind != nullptr ? warning.kind->name : "others");
    if (counts[name] == 0) order.push_back(name);
    counts[name] += warning.count;
    if (warning.kind == nullptr) {
      if (out.notes.size() < 4) out.notes.push_back("NCCL warned: " + warning.text);
      continue;
    }
    if (warning.kind->headline.empty()) {
      if (counts[name] == warning.count) out.notes.push_back(fmt::format("{}: {}", name, warning.kind->remedy));
      continue;
    }
    if (warning.kind->of_peer && !warning.peer.empty()) {
      hosts_by_peer[warning.peer].insert(warning.host);
      by_peer[warning.peer] += warning.count;
    }
    const bool better = cause == nullptr || (cause->kind->effect && !warning.kind->effect);
    if (better) cause = &warning;
  }
  if (order.empty()) return;
  std::vector<std::string> parts;
  for (const std::string& name : order) parts.push_back(fmt::format("{} {}", name, times(counts[name])));
  out.facts.emplace_back("warnings", join(parts, "; "));
  out.evidence.emplace_back("warnings", join_first(parts, 4));
  if (cause == nullptr) return;

  std::string peer = cause->peer, text, suspect = cause->host;
  if (cause->kind->of_peer && !by_peer.empty()) {
    const auto most = std::ranges::max_element(by_peer, {}, [](const auto& row) { return row.second; });
    peer = most->first;
    std::int64_t all = 0;
    for (const auto& [name, count] : by_peer) all += count;
    std::string share = fmt::format("{} of {}", most->second, all);
    if (most->second == all) share = all == 2 ? "both" : fmt::format("all {}", all);
    suspect = fmt::format("{} (peer of {} time-outs)", peer, all == 1 ? "the" : share);
    const std::size_t named_by = hosts_by_peer[peer].size();
    if (named_by > 1) {
      text = fmt::format("{} nodes timed out on one peer, {}", named_by == 2 ? "two" : std::to_string(named_by), peer);
    }
  }
  const auto filled = [&](std::string_view pattern) {
    std::string filled_text(pattern);
    const auto put = [&](const std::string& mark, const std::string& value) {
      if (const std::size_t at = filled_text.find(mark); at != std::string::npos)
        filled_text.replace(at, mark.size(), value);
    };
    put("{host}", cause->host.empty() ? "a rank" : cause->host);
    put("{peer}", peer.empty() ? "its peer" : peer);
    return filled_text;
  };
  if (text.empty()) text = filled(cause->kind->headline);
  if (!suspect.empty()) {
    out.facts.emplace_back("suspect", suspect);
    out.evidence.emplace_back("suspect", suspect);
  }
  out.evidence.emplace_back("first", fmt::format("line {}: {}", cause->line, cause->text.substr(0, 100)));
  out.problem(text, filled(cause->kind->remedy));
  if (cause->kind->effect)
    out.notes.push_back(fmt::format("\"{}\" is what the others see: an effect, never a cause", cause->kind->name));
}

void Judge::sockets() {
  const std::vector<std::string> on_sockets = names_of(hosts, [](const auto& host) { return host.on_sockets(); });
  const std::vector<std::string> odd_interfaces = names_of(hosts, [](const auto& host) {
    const std::string devices = host.seen.fact("network_devices") + " " + host.seen.fact("bootstrap_interface");
    return std::ranges::any_of(words_of(devices), [](std::string_view device) {
      return device.starts_with("docker") || device.starts_with("virbr") || device == "lo";
    });
  });
  if (!on_sockets.empty() && hosts.size() > 1) {
    const std::string hca = use.anywhere("NCCL_IB_HCA"), disabled = use.anywhere("NCCL_IB_DISABLE");
    const bool none = use.anywhere("network_devices").find("none (IB)") != std::string::npos;
    std::string why = "no InfiniBand or RoCE adapter was found";
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
    }
    const bool all = on_sockets.size() == hosts.size();
    out.problem(fmt::format("{} over TCP sockets: {}", all ? "NCCL runs" : some_of(on_sockets) + " run", why), remedy);
  }
  if (!odd_interfaces.empty()) {
    out.facts.emplace_back("warn_interface", use.anywhere("network_devices").find("docker0") != std::string::npos
                                                 ? "docker0 is among the interfaces"
                                                 : "a loopback or virtual interface is among the interfaces");
    out.problem("an interface that reaches no other node (docker0, virbr, lo) is in use on " + some_of(odd_interfaces),
                "NCCL_SOCKET_IFNAME=^docker0,virbr0,lo");
  }
}

void Judge::differences() {
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
      out.problem(fmt::format("{} {} on {}, {} on the others", noun, value, some_of(names), usual->first), remedy);
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

void Judge::direct() {
  const NcclUse::Communicator* largest = use.largest();
  const bool one_node = hosts.size() == 1 && largest != nullptr &&
                        (largest->nodes == 1 || largest->host_of.size() == static_cast<std::size_t>(largest->ranks));
  const auto without = [&](const NcclUse::Host& host) {
    return host.seen.fact("gpu_direct") == "disabled" && (host.on_adapters() || !(host.on_sockets() || one_node));
  };
  const auto with = [](const NcclUse::Host& host) { return host.sends_directly() || host.receives_directly(); };
  const std::vector<std::string> lacking = names_of(hosts, without), having = names_of(hosts, with);
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

void Judge::adapters() {
  for (const NcclUse::Host* host : hosts) {
    if (host->inner_network > 0) {
      out.problem(
          fmt::format("ranks of {} talk to each other over the network", host->name),
          "P2P and shared memory are off or broken there: NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, container per rank");
      break;
    }
  }
  const auto idle =
      names_of(hosts, [](const auto& host) { return !host.adapters.empty() && host.adapters.size() < host.devices(); });
  if (!idle.empty())
    out.notes.push_back("adapters in use: " + adapters_text(hosts) +
                        "; a ring uses one per channel: NCCL_IB_HCA, NCCL_CROSS_NIC, GPUs per node");
  const auto shared = [](const NcclUse::Host& host) {
    return host.seen.fact("pxn").empty() &&
           std::ranges::any_of(host.seen.facts, [](const auto& row) { return row.first.starts_with("transport SHM"); });
  };
  const auto over_memory = names_of(hosts, shared);
  if (!over_memory.empty())
    out.notes.push_back(
        fmt::format("GPUs of {} talk through host memory (SHM): no NVLink or P2P between them", some_of(over_memory)));
}

void Judge::missing_ranks() {
  for (const auto& [id, communicator] : use.communicators) {
    if (!communicator.started.empty() && communicator.complete.size() < communicator.started.size() &&
        communicator.complete.size() < static_cast<std::size_t>(communicator.ranks)) {
      std::set<std::string> waiting;
      for (const std::int64_t rank : communicator.started) {
        const auto host = communicator.host_of.find(rank);
        if (!communicator.complete.contains(rank) && host != communicator.host_of.end())
          waiting.insert(use.hosts[host->second].name);
      }
      out.problem(fmt::format("{} of {} ranks began to initialise and did not end",
                              communicator.started.size() - communicator.complete.size(), communicator.ranks),
                  "the job hung or was stopped there: " + some_of({waiting.begin(), waiting.end()}));
      return;
    }
  }
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr && largest->host_of.size() < static_cast<std::size_t>(largest->ranks))
    out.notes.push_back(fmt::format("{} of {} ranks are in this log: nothing is said about the others",
                                    largest->host_of.size(), largest->ranks));
}

// "bootstrap.cc:275 -> 2": NCCL hands an error upwards. Where no warning names a cause, the place tells the stage.
void Judge::failures() {
  const bool warned = std::ranges::any_of(
      use.warnings, [](const auto& warning) { return warning.kind != nullptr && !warning.kind->headline.empty(); });
  struct Stage {
    std::string_view file, when, remedy;
  };
  static constexpr std::array<Stage, 6> stages{{
      {"net_ib", "in the InfiniBand or RoCE transport",
       "ibv_devinfo and ibstat on the node; NCCL_IB_HCA, NCCL_IB_GID_INDEX"},
      {"p2p", "while GPUs of a node were connecting", "nvidia-smi topo -p2p r; NCCL_P2P_DISABLE=1 runs without"},
      {"shm", "in shared memory", "/dev/shm: its size, and one IPC namespace for all ranks"},
      {"bootstrap", "while the ranks were meeting over TCP",
       "NCCL_SOCKET_IFNAME with an interface that all nodes share, firewall; does every rank run?"},
      {"socket", "in a TCP connection", "NCCL_SOCKET_IFNAME with an interface that all nodes share, firewall"},
      {"", "in an unknown stage", "NCCL_DEBUG=WARN on all ranks: the first warning names the cause"},
  }};
  static constexpr std::array<std::string_view, 7> results{"no error",          "a CUDA error",        "a system error",
                                                           "an internal error", "an invalid argument", "an invalid use",
                                                           "a lost peer"};
  const std::vector<std::string> failed = names_of(hosts, [](const auto& host) { return host.result > 0; });
  if (warned || failed.empty()) return;
  const auto first = std::ranges::find_if(hosts, [](const auto* host) { return host->result > 0; });
  const auto stage = std::ranges::find_if(
      stages, [&](const Stage& row) { return (*first)->error_path.find(row.file) != std::string::npos; });
  out.problem(fmt::format("{}: NCCL failed with {} {}", some_of(failed),
                          results[static_cast<std::size_t>((*first)->result)], stage->when),
              std::string(stage->remedy));
  out.evidence.emplace_back("error path", (*first)->error_path);
}

}  // namespace

void judge_nccl(const NcclUse& use, Answer& out) {
  Judge judge{use, out};
  judge.warnings();
  judge.sockets();
  judge.differences();
  judge.direct();
  judge.adapters();
  judge.failures();
  judge.missing_ranks();
}

}  // namespace harness::evidence
