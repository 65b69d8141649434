#include <algorithm>

#include "base/text.h"
#include "evidence/nccl_use.h"

// Finds faults: first the earliest warning that is a cause, then the network, then missing ranks. Compares facts
// between hosts.

namespace harness::evidence {
namespace {

// Returns the words of a value that another value lacks; for lists of adapters only the difference matters.
std::string beyond(const std::string& value, const std::string& other) {
  const std::vector<std::string_view> known = words_of(other);
  std::vector<std::string> more;
  for (const std::string_view word : words_of(value))
    if (std::ranges::find(known, word) == known.end()) more.emplace_back(word);
  return more.empty() ? "no other" : join(more, " ");
}

/// A log, its hosts and what it proves about their nodes.
struct Scene {
  const NcclUse& use;
  std::vector<const NcclUse::Host*> hosts = use.named_hosts();
  bool on_one_node = false, on_several_nodes = false;
  bool in_one_domain = false;  // NVLink joins all ranks, of several hosts too: NCCL counts such hosts as one node

  template <class Which>
  std::vector<std::string> names_of(const Which& which) const {
    std::vector<std::string> names;
    for (const NcclUse::Host* host : hosts) {
      if (which(*host)) names.push_back(host->name);
    }
    return names;
  }
};

Scene scene_of(const NcclUse& use) {
  Scene scene{use};
  const NcclUse::Communicator* largest = use.largest();
  const bool networked = std::ranges::any_of(scene.hosts, [](const auto*host) { return host->networked; }),
             spans_nodes = std::ranges::any_of(use.communicators, [](const auto&row) { return row.second.nodes > 1; });
  scene.on_one_node = scene.hosts.size() == 1 && !spans_nodes && largest != nullptr &&
                      (largest->nodes == 1 || (largest->is_whole() && !use.lost_hosts));
  scene.on_several_nodes = scene.hosts.size() > 1 || spans_nodes || (!scene.on_one_node && networked);
  scene.in_one_domain = !use.communicators.empty() && !networked &&
                        std::ranges::all_of(use.communicators, [](const auto& row) { return row.second.nodes == 1; });
  return scene;
}

// Reports the warnings. Returns the earliest known one that is not an effect, otherwise the earliest known one.
const NcclUse::Warning* first_cause(const NcclUse& use, Answer& out) {
  std::map<std::string, std::int64_t> counts;
  std::vector<std::string> order;
  const NcclUse::Warning* cause = nullptr;
  for (const NcclUse::Warning& warning : use.warnings) {
    const std::string name(warning.kind != nullptr ? warning.kind->name : "others");
    if (counts[name] == 0) order.push_back(name);
    counts[name] += warning.count;
    if (warning.kind == nullptr && out.notes.size() < 4) out.notes.push_back("NCCL warned: " + warning.text);
    if (warning.kind != nullptr && (cause == nullptr || (cause->kind->effect && !warning.kind->effect)))
      cause = &warning;
  }
  std::vector<std::string> parts;
  for (const std::string& name : order) parts.push_back(fmt::format("{} {}", name, times(counts[name])));
  out.fact_and_tell("warnings", "warnings", join(parts, "; "));
  return cause;
}

void judge_warnings(const NcclUse& use, Answer& out) {
  const NcclUse::Warning* cause = first_cause(use, out);
  if (cause == nullptr) return;
  std::map<std::string, std::set<std::string>> hosts_by_peer;
  std::map<std::string, std::int64_t> by_peer;
  std::int64_t all = 0;
  for (const NcclUse::Warning& warning : use.warnings) {
    if (!cause->kind->of_peer || warning.kind != cause->kind || warning.peer.empty()) continue;
    hosts_by_peer[warning.peer].insert(warning.host);
    by_peer[warning.peer] += warning.count;
    all += warning.count;
  }
  std::string peer = cause->peer, text, suspect = cause->host;
  if (all > 0) {
    const auto most = std::ranges::max_element(by_peer, {}, [](const auto& row) { return row.second; });
    peer = most->first;
    const bool late = cause->kind->name == "status=12";
    std::string share = fmt::format("{} of {}", most->second, all);
    if (most->second == all) share = all == 2 ? "both" : fmt::format("all {}", all);
    suspect = fmt::format("{} (peer of {} {}{})", peer, all == 1 ? "the" : share, late ? "time-out" : "failure",
                          all == 1 ? "" : "s");
    const std::size_t named_by = hosts_by_peer[peer].size();
    if (named_by > 1)
      text = fmt::format("{} nodes {} one peer, {}", named_by == 2 ? "two" : std::to_string(named_by),
                         late ? "timed out on" : "cannot reach", peer);
  }
  const auto filled = [&](std::string_view pattern) {
    return fmt::format(fmt::runtime(pattern), fmt::arg("host", cause->host.empty() ? "a rank" : cause->host),
                       fmt::arg("peer", peer.empty() ? "its peer" : peer));
  };
  out.fact_and_tell("suspect", "suspect", suspect);
  out.tell("first", fmt::format("line {}: {}", cause->line, cause->text.substr(0, 100)));
  out.problem(text.empty() ? filled(cause->kind->headline) : text, filled(cause->kind->remedy));
}

void judge_sockets(const Scene& scene, Answer& out) {
  const std::vector<std::string> on_sockets = scene.names_of([](const auto& host) { return host.on_sockets(); });
  if (on_sockets.empty() || scene.on_one_node) return;
  if (scene.in_one_domain)
    return out.notes.push_back("NCCL's network is TCP sockets, but NVLink joins all ranks: nothing goes over it");
  if (!scene.on_several_nodes)
    return out.notes.push_back(
        "NCCL uses TCP sockets, and the log does not say whether there are other nodes: to them it is slow");
  const std::string hca = scene.use.anywhere("NCCL_IB_HCA"), disabled = scene.use.anywhere("NCCL_IB_DISABLE"),
                    chosen = scene.use.anywhere("NCCL_NET");
  const bool none = contains(scene.use.anywhere("network_devices"), "none (IB)");
  const auto of_libfabric = [](const auto& warning) {
    return warning.kind != nullptr && warning.kind->name == "libfabric";
  };
  std::string why = none ? "no InfiniBand or RoCE adapter was found" : "the log does not say why";
  std::string remedy = "ibv_devinfo on the node, /dev/infiniband in the container, libibverbs in the image";
  if (!hca.empty() && none) {
    why = fmt::format("NCCL_IB_HCA={} matches no adapter", hca);
    remedy = "unset it, or name the adapters that ibv_devinfo lists";
  } else if (!disabled.empty() && disabled != "0") {
    why = fmt::format("NCCL_IB_DISABLE={} turns InfiniBand off", disabled);
    remedy = "unset NCCL_IB_DISABLE";
  } else if (same_word(chosen, "Socket")) {
    why = fmt::format("NCCL_NET={} asks for it", chosen);
    remedy = "unset NCCL_NET";
  } else if (std::ranges::any_of(scene.use.warnings, of_libfabric)) {
    why = "libfabric (aws-ofi-nccl) did not start";
    remedy = "`fi_info -p efa` (Slingshot: cxi) on the node and in the container";
  } else if (!scene.use.anywhere("libibverbs").empty()) {
    why = "libibverbs could not be opened";
    remedy = "libibverbs (rdma-core) in the image, with /dev/infiniband in the container";
  }
  const bool all = on_sockets.size() == scene.hosts.size();
  out.problem(fmt::format("{} over TCP sockets: {}", all ? "NCCL runs" : some_of(on_sockets) + " run", why), remedy);
}

void judge_interfaces(const Scene& scene, Answer& out) {
  if (scene.on_one_node) return;
  std::set<std::string> found;
  const std::vector<std::string> on = scene.names_of([&](const auto& host) {
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
  out.fact("warn_interface", some_of(names) + " is among the interfaces");
  std::string all_but = "^docker,lo";  // NCCL's default exclusions
  for (const std::string& name : names) {
    if (!name.starts_with("docker") && name != "lo") all_but += "," + name;
  }
  out.problem(fmt::format("NCCL uses {} on {}: virtual interfaces reach no other node, or not fast", some_of(names),
                          some_of(on)),
              "NCCL_SOCKET_IFNAME=" + all_but);
}

// Reports ranks of one host that differ in a fact, otherwise hosts that differ from the majority.
void judge_fact(const Scene& scene, const std::string& fact, const std::string& noun, const char* remedy, Answer& out) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const NcclUse::Host* host : scene.hosts) {
    const std::string value = host->seen.fact(fact);
    if (value.empty()) continue;
    if (contains(value, nccl::fact_separator)) {
      out.problem(fmt::format("ranks of {} differ in {}: {}", host->name, noun, value), remedy);
    } else {
      groups[value].push_back(host->name);
    }
  }
  if (groups.size() < 2) return;
  const auto usual = std::ranges::max_element(groups, {}, [](const auto& row) { return row.second.size(); });
  const auto odd = std::ranges::find_if(groups, [&](const auto& row) { return row.first != usual->first; });
  out.problem(
      fmt::format("{} {} on {}, {} on {}", noun, beyond(odd->first, usual->first), some_of(odd->second),
                  beyond(usual->first, odd->first), usual->second.size() > 1 ? "the others" : usual->second.front()),
      remedy);
}

void judge_differences(const Scene& scene, Answer& out) {
  judge_fact(scene, "version", "NCCL", "one version on all nodes: LD_LIBRARY_PATH, container", out);
  judge_fact(scene, "network", "network", "the nodes that differ fall back: see what NCCL says of their adapters", out);
  // Ranks that are each assigned their own adapter differ on purpose.
  const bool own_adapters = contains(scene.use.anywhere("network_devices"), nccl::fact_separator);
  if (!scene.use.anywhere("network").starts_with("Socket") && !own_adapters)
    judge_fact(scene, "network_devices", "adapters", "adapters or ports that are missing: ibstat on the nodes", out);
  std::set<std::string> settings;
  for (const NcclUse::Host* host : scene.hosts) {
    for (const auto& [name, value] : host->seen.facts) {
      constexpr std::size_t most = 64;
      // aws-ofi-nccl sets NCCL_TOPO_FILE to a file of the process.
      const bool own = name == "NCCL_DEBUG_FILE" || value.starts_with("/proc/self/");
      if (name.starts_with("NCCL_") && !own && settings.size() < most) settings.insert(name);
    }
  }
  if (own_adapters) settings.erase("NCCL_IB_HCA");
  for (const std::string& name : settings) judge_fact(scene, name, name, "set it alike on all ranks", out);
}

void judge_multicast(const Scene& scene, Answer& out) {
  const auto hosts_that_say = [&](std::string_view what) {
    return scene.names_of([&](const auto& host) { return host.seen.fact("nvls").starts_with(what); });
  };
  const std::vector<std::string> lacking = hosts_that_say("not available");
  const std::string text = "no NVLink SHARP (NVLS) on " + some_of(lacking),
                    remedy = "GPUs from Hopper on have it behind NVLink switches, once nvidia-fabricmanager runs";
  if (!lacking.empty() && !hosts_that_say("available").empty()) return out.problem(text, remedy);
  if (!lacking.empty()) out.notes.push_back(text + ": " + remedy);
}

void judge_direct(const Scene& scene, Answer& out) {
  const auto without = [&](const NcclUse::Host& host) {
    if (host.on_sockets() || host.uses_direct()) return false;
    return host.sends.all + host.receives.all > 0 ||
           (host.seen.fact("gpu_direct") == "disabled" && !scene.on_one_node && !scene.in_one_domain);
  };
  const std::vector<std::string> lacking = scene.names_of(without),
                                 having = scene.names_of([](const auto&host) { return host.uses_direct(); });
  const bool any_sends = std::ranges::any_of(scene.hosts, [](const auto* host) { return host->sends.direct > 0; });
  const bool asked = scene.use.anywhere("NCCL_NET_GDR_READ") == "1";
  for (const NcclUse::Host* host : scene.hosts) {
    const std::int64_t ends = host->sends.all + host->receives.all, direct = host->sends.direct + host->receives.direct;
    if (direct == 0 || direct == ends) continue;
    const std::string text = fmt::format("{} {}", host->name, host->direct_text());
    if (!any_sends && !asked && host->receives.direct == host->receives.all)
      out.notes.push_back("GPUDirect RDMA: " + text +
                          ": so NCCL does with NCCL_NET_GDR_READ=0, and on GPUs before Ampere without NVLink");
    else
      out.problem("GPUDirect RDMA is used in part: " + text,
                  "compare `nvidia-smi topo -m` of the GPUs; NCCL_NET_GDR_LEVEL raises the limit of the distance, "
                  "NCCL_NET_GDR_READ=1 is for what is sent; ACS off");
  }
  if (lacking.empty()) return;
  const auto told = std::ranges::find_if(
      scene.hosts, [&](const auto* host) { return without(*host) && contains(host->direct_reason, " > "); });
  std::string text = fmt::format("{} {} not use GPUDirect RDMA", some_of(lacking), lacking.size() == 1 ? "does" : "do");
  std::string remedy = "nvidia-peermem or DMA-BUF on these nodes; ACS off; compare `nvidia-smi topo -m`";
  if (contains(scene.use.anywhere("network"), "Libfabric"))
    remedy =
        "`fi_info -c FI_HMEM` must list the adapters; on AWS, only P instances from p4d on have it, and libfabric "
        "before 1.18 needs FI_EFA_USE_DEVICE_RDMA=1";
  if (has_any(scene.use.anywhere("network"), "TCPX|FasTrak"))
    remedy =
        "the receive daemon of Google's plug-in (RxDM: tcpx-daemon, tcpxo-daemon) must run on these nodes, in the "
        "version that belongs to the plug-in's, and see every GPU";
  if (told != scene.hosts.end()) {
    const std::vector<std::string> parts = split_text((*told)->direct_reason, " > ");
    text += fmt::format(" (GPU to adapter at distance {}, limit {})", parts[0], parts[1]);
    remedy = "compare `nvidia-smi topo -m` of the nodes; NCCL_NET_GDR_LEVEL raises the limit";
  }
  if (!having.empty()) text += fmt::format("; {} {}", some_of(having), having.size() == 1 ? "does" : "do");
  out.problem(text, remedy);
}

void judge_idle_adapters(const Scene& scene, Answer& out) {
  const auto inner = std::ranges::find_if(scene.hosts, [](const auto* host) { return host->inner_network > 0; });
  if (inner != scene.hosts.end())
    out.problem(
        fmt::format("ranks of {} talk to each other over the network", (*inner)->name),
        "P2P and shared memory are off or broken there: NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, container per rank");
  const NcclUse::Communicator* largest = scene.use.largest();
  bool idle = false, one_for_all = false;  // idle adapters; a single adapter for several GPUs
  for (const NcclUse::Host* host : scene.hosts) {
    if (host->adapters.empty() || host->adapters.size() >= host->devices()) continue;
    idle = true;
    one_for_all = one_for_all || (largest != nullptr && host->adapters.size() == 1 && host->gpus.size() > 1);
  }
  const bool whole = !scene.use.thinned && (largest == nullptr || largest->is_whole());
  if (!idle || !whole) return;  // missing ranks may use the others
  const std::string text = "adapters in use: " + adapters_text(scene.hosts);
  const std::string why = "a ring uses one per channel: NCCL_IB_HCA, NCCL_CROSS_NIC, GPUs per node";
  if (one_for_all) out.problem(text, why);
  if (!one_for_all) out.notes.push_back(text + "; " + why);
}

// Reports GPUs that reach others in their node only through host memory while other GPUs of the job use direct access.
void judge_host_memory(const Scene& scene, Answer& out) {
  std::vector<std::string> over_memory, by_peer;
  for (const NcclUse::Host* host : scene.hosts) {
    std::vector<std::string> without_peer, with_peer;
    for (const auto& [name, gpu] : host->gpus) {
      if (gpu.by_peer > 0) with_peer.push_back(name);
      if (gpu.by_peer == 0 && gpu.through_memory > 0) without_peer.push_back(name);
    }
    if (without_peer.empty()) {
      if (!with_peer.empty()) by_peer.push_back(host->name);
    } else if (with_peer.empty()) {
      if (host->seen.fact("pxn").empty()) over_memory.push_back(host->name);
    } else {
      out.problem(fmt::format("{} of {}: only through host memory (SHM) to others of the node, {} directly (P2P)",
                              some_of(without_peer), host->name, some_of(with_peer)),
                  "nvidia-smi topo -m and topo -p2p r; nvidia-smi nvlink -s of that GPU");
    }
  }
  if (over_memory.empty()) return;
  const std::string text = fmt::format("GPUs of {} talk through host memory (SHM)", some_of(over_memory));
  if (by_peer.empty()) return out.notes.push_back(text + ": no NVLink or P2P between them");
  out.problem(fmt::format("{}, those of {} directly (P2P)", text, some_of(by_peer)),
              "NCCL_P2P_DISABLE, container, ACS; nvidia-smi topo -p2p r on both");
}

void judge_missing_ranks(const NcclUse& use, Answer& out) {
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr && !largest->is_whole())
    say(out.notes, "{} of {} ranks are in this log: nothing is said about the others", largest->host_of.size(),
        largest->ranks);
  const auto open = std::ranges::find_if(use.communicators, [](const auto& row) {
    const NcclUse::Communicator& c = row.second;
    return c.complete.size() < std::min(c.started.size(), static_cast<std::size_t>(c.ranks));
  });
  if (open == use.communicators.end()) return;
  const NcclUse::Communicator& communicator = open->second;
  std::set<std::string> waiting;
  for (const std::int64_t rank : communicator.started) {
    const auto host = communicator.host_of.find(rank);
    if (!communicator.complete.contains(rank) && host != communicator.host_of.end())
      waiting.insert(use.hosts[host->second].name);
  }
  std::vector<std::string> absent;
  for (std::int64_t rank = 0; rank < communicator.ranks; ++rank)
    if (!communicator.host_of.contains(rank)) absent.push_back(std::to_string(rank));
  if (!absent.empty() && std::ssize(absent) <= communicator.ranks / 4)  // more: the log is partial
    out.problem(
        fmt::format("{} of {} ranks never began to initialise: {}", absent.size(), communicator.ranks, some_of(absent)),
        "the others wait; did it start, and does it reach the first rank?");
  out.problem(fmt::format("{} of {} ranks began to initialise and did not end",
                          communicator.started.size() - communicator.complete.size(), communicator.ranks),
              "the job hung or was stopped there: " + some_of({waiting.begin(), waiting.end()}));
}

}  // namespace

void judge_nccl(const NcclUse& use, Answer& out) {
  const Scene scene = scene_of(use);
  judge_warnings(use, out);
  judge_sockets(scene, out);
  judge_interfaces(scene, out);
  judge_differences(scene, out);
  judge_multicast(scene, out);
  judge_direct(scene, out);
  judge_idle_adapters(scene, out);
  if (use.thinned) return;  // what is not in the log may have been left out
  judge_host_memory(scene, out);
  judge_missing_ranks(use, out);
}

}  // namespace harness::evidence
