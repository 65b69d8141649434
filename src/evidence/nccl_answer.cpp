#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/nccl_use.h"

namespace harness::evidence {
namespace {

using Hosts = std::vector<const NcclUse::Host*>;

// "n01 sends and receives with it; n02: GPU 0 sends and receives with it, GPU 1 does neither"
std::string direct_text(const Hosts& hosts) {
  std::vector<std::pair<std::string, Hosts>> groups;
  for (const NcclUse::Host* host : hosts) {
    const std::string does = host->direct_text();
    if (does.empty() || host->on_sockets()) continue;
    auto group = std::ranges::find(groups, does, [](const auto& row) { return row.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {does, {}});
    group->second.push_back(host);
  }
  std::vector<std::string> parts;
  for (const auto& [does, same] : groups) parts.push_back(direct_text_of(same));
  return join(parts, "; ");
}

// "P2P/CUMEM/read 4, NET/IB 2 (senders)": adapters' numbers say nothing about the kind.
std::string transports_text(const NcclUse& use) {
  std::map<std::string, std::int64_t> counts;
  for (const NcclUse::Host& host : use.hosts) {
    for (const auto& [name, value] : host.seen.facts) {
      constexpr std::string_view prefix = "transport ";
      if (!name.starts_with(prefix)) continue;
      std::vector<std::string> parts = split_text(std::string_view(name).substr(prefix.size()), "/");
      if (parts.front() == "NET") {
        std::erase_if(parts, [](const std::string& part) { return as_number(part).has_value(); });
      }
      counts[join(parts, "/")] += static_cast<std::int64_t>(as_number(value).value_or(0));
    }
  }
  std::vector<std::string> near, far;
  for (const auto& [kind, count] : counts)
    (kind.starts_with("NET") ? far : near).push_back(fmt::format("{} {}", kind, count));
  near.insert(near.end(), far.begin(), far.end());
  return near.empty() ? "" : join(near, ", ") + " (senders)";
}

// "AllReduce 64 MiB: Ring Simple, 3 times"
std::string algorithms_text(const NcclUse& use) {
  std::map<std::string, std::int64_t> counts;
  for (const NcclUse::Host& host : use.hosts) {
    for (const nccl::Call& call : host.seen.calls) {
      const std::string function = call.function.empty() ? "collective" : call.function;
      counts[fmt::format("{} {}: {} {}", function, print_bytes_exact(call.bytes), call.algorithm, call.protocol)] +=
          call.calls;
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& [text, count] : counts) rows.emplace_back(count, text);
  std::ranges::stable_sort(rows, std::greater<>(), [](const auto& row) { return row.first; });
  std::vector<std::string> parts;
  for (const auto& [count, text] : rows) parts.push_back(fmt::format("{}, {}", text, times(count)));
  return join_first(parts, 3);
}

// "1 -> 2 and 3 -> 0, adapter 0 each time"
std::string crossings_text(const NcclUse::Communicator& communicator) {
  std::vector<std::string> pairs;
  std::set<int> adapters;
  for (const auto& [pair, used] : communicator.ring_crossings()) {
    pairs.push_back(fmt::format("{} -> {}", pair.first, pair.second));
    adapters.insert(used.begin(), used.end());
  }
  if (pairs.empty()) return "";
  std::string text = some_of(pairs);
  return adapters.size() == 1 ? fmt::format("{}, adapter {} each time", text, *adapters.begin())
                              : fmt::format("{}, {} adapters", text, adapters.size());
}

std::string environment_text(const NcclUse& use) {
  std::map<std::string, std::string> values;
  for (const NcclUse::Host& host : use.hosts) {
    for (const auto& [name, value] : host.seen.facts) {
      if (name.starts_with("NCCL_")) values[name] = value;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(fmt::format("{}={}", name, value));
  return join(parts, " ");
}

void add_facts(const NcclUse& use, const Hosts& hosts, Answer& out) {
  const auto fact = [&](const char* key, Value value, const char* label = nullptr) {
    if (value.is_string() && value.get_ref<const std::string&>().empty()) return;
    if (label != nullptr && value.is_string()) out.tell(label, value.get<std::string>());
    out.fact(key, std::move(value));
  };
  const std::string version = use.anywhere("version");
  fact("nccl", version.substr(0, version.find('+')));
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr) fact("ranks", largest->ranks);
  if (!hosts.empty()) fact("hosts", std::ssize(hosts));
  if (largest != nullptr) fact("communicators", std::ssize(use.communicators));
  const std::string network = use.anywhere("network");
  const std::size_t devices = hosts.empty() ? 0 : hosts.front()->devices();
  const bool counted = !network.empty() && devices > 0 && !network.starts_with("Socket");
  fact("network",
       counted ? fmt::format("{}, {}", network, plural(static_cast<std::int64_t>(devices), "adapter")) : network,
       "network");
  fact("transports", transports_text(use), "transports");
  fact("gpu_direct", direct_text(hosts), "GPUDirect");
  if (largest != nullptr) fact("ring_crosses", crossings_text(*largest), "crossings");
  if (!network.starts_with("Socket") &&
      std::ranges::any_of(hosts, [](const auto* host) { return !host->adapters.empty(); }))
    fact("adapters_used", adapters_text(hosts), "adapters");
  if (const auto channels = integer_after(use.anywhere("channels"), "")) fact("channels", *channels);
  fact("algorithms", algorithms_text(use), "algorithms");
  fact("env", environment_text(use), "settings");
}

}  // namespace

std::string direct_text_of(const Hosts& alike) {
  std::vector<std::string> names;
  for (const NcclUse::Host* host : alike) names.push_back(host->name);
  const std::string does = alike.front()->direct_text(alike.size() > 1);
  const bool of_gpus = does != alike.front()->together().direct_text(alike.size() > 1);
  return fmt::format("{}{} {}", some_of(names), of_gpus ? ":" : "", does);
}

std::string adapters_text(const Hosts& hosts) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const NcclUse::Host* host : hosts) {
    if (host->adapters.empty()) continue;
    const std::size_t there = host->devices();
    groups[there > 0 ? fmt::format("{} of {}", host->adapters.size(), there) : std::to_string(host->adapters.size())]
        .push_back(host->name);
  }
  if (groups.size() == 1) return groups.begin()->first + " on each host";
  std::vector<std::string> parts;
  for (const auto& [used, names] : groups) parts.push_back(fmt::format("{} on {}", used, some_of(names)));
  return join(parts, "; ");
}

Answer answer_of(const NcclUse& use) {
  Answer out = Answer::of("nccl", "nccl log");
  const Hosts hosts = use.named_hosts();
  add_facts(use, hosts, out);
  judge_nccl(use, out);
  const NcclUse::Communicator* largest = use.largest();
  const std::int64_t nodes = std::max(std::ssize(hosts), largest == nullptr ? 0 : largest->nodes);
  if (out.headline.empty()) {
    const std::string network = use.anywhere("network");
    const bool whole = largest == nullptr || largest->is_whole();
    out.headline = fmt::format(
        "{}{}{}{}: {}", largest == nullptr ? "NCCL" : plural(largest->ranks, "rank"),
        nodes == 0 ? "" : " on " + plural(nodes, "host"),
        whole ? "" : fmt::format(", of which this log has {}", plural(std::ssize(largest->host_of), "rank")),
        network.empty() ? "" : ", network " + network, "nothing is wrong that this log shows");
  }
  if (use.communicators_may_merge)
    out.notes.emplace_back(
        "the log names no commId (NCCL 2.16 and later do): communicators of equal size count as one");
  if (use.cut) out.notes.emplace_back("the log has more hosts or connections than are kept: counts are too low");
  const bool connected = std::ranges::any_of(hosts, [](const auto* host) { return !host->adapters.empty(); });
  if (!connected && hosts.size() > 1 && use.warnings.empty())
    out.notes.emplace_back("no connection over the network: since NCCL 2.22 they are made at the first collective");
  const std::int64_t ranks = largest == nullptr ? 0 : largest->ranks;
  if (ranks > 1 && nodes > 0 && ranks % nodes == 0) {
    out.next.push_back(fmt::format("mpirun -np {} --map-by ppr:{}:node ./harness doctor", ranks, ranks / nodes));
  } else {
    out.next.emplace_back("./harness doctor --stages static     # on the node that is named");
  }
  return out;
}

// Texts of NCCL 2.7 to 2.30 (src/transport, src/misc, src/bootstrap.cc, src/init.cc). Status numbers are those of
// ibv_wc_status (rdma-core, libibverbs/verbs.h).

namespace {

constexpr std::array<NcclWarningKind, 38> kinds{{
    {"status=12", "completion&status=12|completion&error 12|completion&RETRY_EXC", "{host} got no answer from {peer}",
     "look at that node's adapter, cable and switch port first; ib_write_bw between the two; on RoCE "
     "NCCL_IB_GID_INDEX, PFC "
     "and routing; NCCL_IB_TIMEOUT=22 only bridges link flaps",
     false, true},
    {"status=5", "completion&status=5 |completion&error 5,|completion&error 5 |completion&WR_FLUSH",
     "{host}: a queue pair was torn down", "an effect of another error: look for the first one", true},
    {"memory access refused",
     "completion&status=4 |completion&status=9 |completion&status=10 |completion&error 4,|completion&error 9,|"
     "completion&error 10,|completion&_ERR(4)|completion&_ERR(9)|completion&_ERR(10)|async fatal event&access",
     "{host}: an adapter may not reach the memory that it was given",
     "GPUDirect RDMA: NCCL_NET_GDR_LEVEL=LOC confirms it; then nvidia-peermem or DMA-BUF, ACS and the IOMMU"},
    {"ibv_modify_qp failed", "ibv_modify_qp|incompatible devices|incompatible with the local",
     "{host}: queue pairs of two adapters cannot be connected",
     "the same NCCL_IB_GID_INDEX on all nodes; NCCL_IB_HCA with the ports of one fabric only"},
    {"locked memory limit", "ibv_reg_mr&Cannot allocate memory|ibv_create&Cannot allocate memory",
     "{host}: memory cannot be registered: the locked-memory limit is too low",
     "ulimit -l unlimited inside what the launcher starts (Slurm: LimitMEMLOCK of slurmd)"},
    {"port error", "async event&port error|async fatal event", "{host}: a port of its adapter went down",
     "cable, optic and switch port of that adapter; the kernel log of {host}"},
    {"GID table changed", "GID table change|unknown event type (18)",
     "{host}: a RoCE port flapped or changed its address",
     "link and address of that port; restart the job if status=12 follows"},
    {"collectives differ", "collective mismatch|Message truncated|bytes instead of",
     "ranks call different collectives, sizes or orders ({host})",
     "compare NCCL_* and versions of all ranks; find the first call that differs"},
    {"versions differ", "Mismatched NCCL version|NCCL version mismatch",
     "{host}: ranks load different versions of NCCL", "LD_LIBRARY_PATH and the container of each node"},
    {"no socket interface",
     "no socket interface found|No usable listening interface|no device found&IFNAME|connecting to address&with family",
     "{host}: NCCL_SOCKET_IFNAME matches no interface", "unset it, or name an interface that every node has"},
    {"libfabric", "NET/OFI&completed with error|NET/OFI&failed|NET/OFI&Couldn't|NET/OFI&Unable",
     "{host}: an operation of libfabric (EFA, Slingshot) failed",
     "one release of aws-ofi-nccl and libfabric on all nodes; a security group that lets the nodes reach each other "
     "with every protocol; FI_LOG_LEVEL=warn says more"},
    {"no libfabric provider", "NET/OFI&eligible providers|NET/OFI&Failed to initialize",
     "{host}: libfabric finds no adapter", "fi_info -p efa on the node; the EFA device inside the container"},
    {"adapter cannot be opened", "Unable to open device", "{host}: an adapter is there but cannot be opened",
     "/dev/infiniband of the container (device plug-in, cgroup), or NCCL_IB_HCA without that adapter on all nodes"},
    {"connect failed",
     "onnect to&failed|onnect to&onnection refused|No route to host|exceeded retries|exceeded error retry|"
     "onnect to&timed out",
     "{host} cannot reach {peer}", "NCCL_SOCKET_IFNAME (docker0?), firewall; is the first rank still alive?", false,
     true},
    {"connection closed", "Connection closed by remote peer|Connection reset by peer",
     "{peer} closed its connection to {host}", "an effect: it died or exited; look for the first error of {peer}", true,
     true},
    {"fatal error seen", "communicator encountered a fatal error", "{host}: a communicator broke",
     "an effect of another error: look for the first one", true},
    {"proxy failed", "[Service thread]&closing connection|[Proxy Service&Failed to execute",
     "{host}: NCCL's proxy could not make a connection", "an effect of another error: look for the first one", true},
    {"stranger on the port", "wrong type|wrong magic|invalid magic", "{host}: something that is not this job connected",
     "a port scanner or a second job; NCCL 2.27 ignores strangers"},
    {"duplicate GPU", "Duplicate GPU detected|using the same GPU", "{host}: two ranks chose the same GPU",
     "cudaSetDevice(LOCAL_RANK), CUDA_VISIBLE_DEVICES, ranks per node"},
    {"/dev/shm too small", "failed to extend /dev/shm|Error while creating shared memory segment|posix_fallocate",
     "{host}: /dev/shm is too small", "docker --shm-size=1g --ulimit memlock=-1; Kubernetes: emptyDir with Memory"},
    {"shared memory not found", "Error while attaching to shared memory",
     "{host}: a shared memory segment of another rank is not visible",
     "RemoveIPC=no; one IPC namespace for all ranks; --cap-add SYS_NICE or NCCL_CUMEM_HOST_ENABLE=0"},
    {"out of GPU memory", "Cuda failure&out of memory", "{host}: no GPU memory is left for NCCL's buffers",
     "create communicators before the model; fewer channels (NCCL_MAX_NCHANNELS) or communicators"},
    {"Failed to bind NVLink SHARP", "Failed to bind NVLink SHARP|nvls&invalid argument|system not yet initialized",
     "the fabric manager or the NVLink switches of {host} are not set up",
     "start nvidia-fabricmanager of the driver's version; NCCL_NVLS_ENABLE=0 runs without"},
    {"MNNVL not working", "MNNVL&not working|Cuda failure 800", "{host}: IMEX does not let it use multi-node NVLink",
     "nvidia-imex-ctl -N; IMEX channel devices in the container; NCCL_MNNVL_ENABLE=0 runs without"},
    {"P2P disabled", "P2P is disabled between NVLINK", "{host}: NVLink between two of its GPUs is out of order",
     "nvidia-smi nvlink -s; reset or replace the GPU"},
    {"no algorithm", "no algorithm/protocol available",
     "NCCL_ALGO or NCCL_PROTO excludes all algorithms of a collective",
     "name the collective: NCCL_ALGO=allreduce:tree"},
    {"too many peers", "peer mapping resources exhausted|Cuda failure 711",
     "{host}: a GPU can map the memory of 8 others and no more",
     "8 GPUs per communicator on this node, or NCCL_P2P_DISABLE=1 in processes of one GPU each"},
    {"no peer access", "open CUDA IPC handle|peer access is not supported",
     "{host}: two of its GPUs cannot reach each other's memory",
     "nvidia-smi topo -p2p r; one container for all ranks; IOMMU and ACS off; NCCL_P2P_DISABLE=1 runs without"},
    {"no such GPU", "invalid device ordinal", "{host}: a rank chose a GPU that it does not have",
     "cudaSetDevice(LOCAL_RANK), CUDA_VISIBLE_DEVICES, ranks per node"},
    {"too many open files", "Too many open files|Accept failed Resource", "{host}: the limit of open files is too low",
     "ulimit -n 65536 inside what the launcher starts"},
    {"network not found", "Error: network&not found", "{host}: the network that NCCL_NET names is not loaded",
     "NCCL_NET, NCCL_NET_PLUGIN and LD_LIBRARY_PATH: the plug-in's library must be found"},
    {"topology file", "Attribute&of node&not found", "{host}: NCCL cannot read a topology file",
     "NCCL_TOPO_FILE: write the file again with this NCCL (NCCL_TOPO_DUMP_FILE)"},
    {"CUDA failure", "Cuda failure", "{host}: a CUDA call failed within NCCL",
     "the first CUDA error of that rank; Xid "
     "in the kernel log"},
    {"system call failed", "Call to&failed", "{host}: a system call of NCCL failed", "the text of the call says which"},
    {"no libibverbs", "Failed to open libibverbs", "",
     "without it NCCL sees no InfiniBand or RoCE; on one node it needs none"},
    {"iommu", "Missing \"iommu=pt\"", "",
     "the kernel's command line needs iommu=pt: without it GPUs may be slow or hang"},
    {"NUMA balancing", "NUMA auto balancing enabled", "", "sysctl kernel.numa_balancing=0: it makes times vary"},
    {"no path for a pattern", "Could not find a path for pattern", "", "NCCL took its simple order: slower, not wrong"},
}};

}  // namespace

const NcclWarningKind* nccl_warning_kind(std::string_view text) {
  const auto found = std::ranges::find_if(kinds, [&](const NcclWarningKind& kind) {
    return std::ranges::any_of(split(kind.pattern, '|'), [&](std::string_view parts) { return has_all(text, parts); });
  });
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace harness::evidence
