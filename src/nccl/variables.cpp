#include "nccl/variables.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "nccl/choices.h"
#include "nccl/values.h"

namespace harness::nccl {
namespace {

using Canonical = std::function<std::string(std::string_view)>;

Canonical integer(std::int64_t low, std::int64_t high) {
  return [low, high](std::string_view text) { return canonical_integer(text, low, high); };
}

Canonical flag(bool as_number) {
  return [as_number](std::string_view text) { return canonical_flag(text, as_number); };
}

// NCCL's own value of a variable that people write as true or false.
std::string one_if_true(const std::string& printed) {
  return printed == "true" ? "1" : "0";
}

std::string one_if_false(const std::string& printed) {
  return printed == "false" ? "1" : "0";
}

std::string bytes_alone(const std::string& printed) {
  return std::to_string(parse_bytes(printed));
}

bool is_set(const Environment& environment, const std::string& name, std::string_view value) {
  const auto it = environment.find(name);
  return it != environment.end() && it->second == value;
}

bool network_is(const Environment& environment, std::string_view network) {
  const auto it = environment.find("NCCL_NET");
  return it != environment.end() && same_word(it->second, network);
}

std::string without_infiniband(const Environment& environment) {
  if (is_set(environment, "NCCL_IB_DISABLE", "1")) return "nccl_ib_disable is true";
  return network_is(environment, "Socket") ? "env sets NCCL_NET to Socket" : "";
}

std::string without_sockets(const Environment& environment) {
  return network_is(environment, "IB") ? "env sets NCCL_NET to IB" : "";
}

std::string without_rdma(const Environment& environment) {
  return network_is(environment, "Socket") ? "env sets NCCL_NET to Socket, which has no GPUDirect RDMA" : "";
}

std::string without_peer_to_peer(const Environment& environment) {
  return is_set(environment, "NCCL_P2P_DISABLE", "1") ? "env sets NCCL_P2P_DISABLE to 1" : "";
}

std::string without_block_threads(const Environment& environment) {
  return is_set(environment, "NCCL_PROTO", "LL128") ? "nccl_proto is LL128, which chooses its own thread count" : "";
}

std::string value_of(const Values& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? "" : it->second;
}

// Of a variable whose canonical values are integers; nothing where it is left to NCCL.
std::optional<std::int64_t> number_of(const Values& values, const std::string& name) {
  return parse_integer(value_of(values, name));
}

std::string min_above_max(const Values& values) {
  const auto low = number_of(values, "nccl_min_ctas"), high = number_of(values, "nccl_max_ctas");
  if (!low || !high || *low <= *high) return "";
  return fmt::format("nccl_min_ctas {} is above nccl_max_ctas {}; NCCL would use {} for both", *low, *high, *high);
}

std::string too_many_sockets(const Values& values) {
  constexpr std::int64_t most = 64;
  const auto threads = number_of(values, "nccl_socket_nthreads"), sockets = number_of(values, "nccl_nsocks_perthread");
  if (!threads || !sockets || *threads * *sockets <= most) return "";
  return fmt::format(
      "nccl_socket_nthreads {} * nccl_nsocks_perthread {} = {} sockets; NCCL opens at most {} and would lower "
      "nccl_nsocks_perthread to {}",
      *threads, *sockets, *threads * *sockets, most, most / *threads);
}

// The algorithms that a canonical nccl_algo wants, entry by entry, as ",Ring,Tree,"; an entry with '^' wants none.
template <class Each>
void each_wanted_list(const std::string& algorithms, Each&& each) {
  if (algorithms.empty()) return;
  for (const std::string_view part : split(algorithms, ';')) {
    const std::string_view entry = part.substr(part.find(':') + 1);  // npos + 1 is 0
    if (!entry.starts_with('^')) each(fmt::format(",{},", entry));
  }
}

bool wants_nvls(const std::string& algorithms) {
  bool wanted = false;
  each_wanted_list(algorithms, [&](const std::string& list) {
    wanted = wanted || list.find(",NVLS,") != std::string::npos || list.find(",NVLSTree,") != std::string::npos;
  });
  return wanted;
}

// An entry that leaves NCCL nothing but NVLS.
std::string algo_against_nvls(const Values& values) {
  if (value_of(values, "nccl_nvls") != "0") return "";
  const std::string algorithms = value_of(values, "nccl_algo");
  bool only = false;
  each_wanted_list(algorithms, [&](const std::string& list) {
    only = only || list == ",NVLS," || list == ",NVLSTree," || list == ",NVLS,NVLSTree,";
  });
  return only ? fmt::format("nccl_algo {} allows NCCL only NVLS, which nccl_nvls 0 turns off", algorithms) : "";
}

std::vector<VariableRow> choice_rows() {
  return {{.name = "nccl_algo",
           .environment_name = "NCCL_ALGO",
           .allowed = "default, Ring, Tree, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT, or by function, "
                      "such as AllReduce:Tree",
           .help = "NCCL's algorithm. A bare name applies to all functions; since NCCL 2.24 those without it fail: "
                   "write AllReduce:Tree, not Tree",
           .canonical = canonical_algo,
           .acts_on = {Part::tensor, Part::data, Part::embedding, Part::world},
           .conflict = algo_against_nvls,
           .needs_nvlink_reduction = wants_nvls},
          {.name = "nccl_proto",
           .environment_name = "NCCL_PROTO",
           .allowed = "default, LL, LL128, Simple, or by function, such as AllReduce:LL128",
           .help = "NCCL's protocol. NVLS, CollNet and PAT support only Simple; forcing LL128 on hardware that "
                   "NCCL does not choose it for can corrupt data",
           .canonical = canonical_proto,
           .acts_on = {Part::tensor, Part::data, Part::embedding, Part::world}}};
}

constexpr std::array<std::int64_t, 4> thread_counts{64, 128, 256, 512};
constexpr std::int64_t max_ctas = 64;  // MAXCHANNELS
constexpr std::int64_t min_buffer = 64 << 10, max_buffer = 1 << 30;

std::vector<VariableRow> resource_rows() {
  return {{.name = "nccl_min_ctas",
           .environment_name = "NCCL_MIN_CTAS",
           .allowed = "default, 1 to 64",
           .help = "minimum number of thread blocks (and so channels) of a collective; at most nccl_max_ctas",
           .canonical = integer(1, max_ctas),
           .unit = "blocks",
           .acts_on = {Part::tensor, Part::data},
           .conflict = min_above_max},
          {.name = "nccl_max_ctas",
           .environment_name = "NCCL_MAX_CTAS",
           .allowed = "default, 1 to 64",
           .help = "maximum number of thread blocks of a collective: how many of the GPU's SMs it may occupy",
           .canonical = integer(1, max_ctas),
           .unit = "blocks",
           .acts_on = {Part::tensor, Part::data}},
          {.name = "nccl_buffsize",
           .environment_name = "NCCL_BUFFSIZE",
           .allowed = "default, a power of two such as 8 MiB",
           .help = "buffer of a channel between two GPUs, for protocol Simple; NCCL's own is 4 MiB",
           .canonical = [](std::string_view text) { return canonical_bytes(text, min_buffer, max_buffer); },
           .unit = "B",
           .environment_text = bytes_alone,
           .acts_on = {Part::data, Part::pipeline}},
          {.name = "nccl_nthreads",
           .environment_name = "NCCL_NTHREADS",
           .allowed = "default, 64, 128, 256, 512",
           .help = "threads of a block, protocols Simple and LL; matters for Ring, since Tree and PAT always take 640",
           .canonical = [](std::string_view text) { return canonical_choice(text, thread_counts); },
           .unit = "threads",
           .without_effect = without_block_threads}};
}

std::vector<VariableRow> path_rows() {
  return {{.name = "nccl_nvls",
           .environment_name = "NCCL_NVLS_ENABLE",
           .allowed = "default, 0, 1, 2",
           .help = "reduction in the NVLink switches (Hopper and later): 0 off, 1 on or fail, 2 on where supported",
           .canonical = integer(0, 2),
           .acts_on = {Part::tensor, Part::data},
           .needs_nvlink_reduction = [](const std::string& value) { return value == "1"; }},
          {.name = "nccl_collnet",
           .environment_name = "NCCL_COLLNET_ENABLE",
           .allowed = "default, true, false",
           .help = "reduction in the network's switches (SHARP); needs a CollNet plug-in and two nodes or more",
           .canonical = flag(true),
           .environment_text = one_if_true},
          {.name = "nccl_p2p_level",
           .environment_name = "NCCL_P2P_LEVEL",
           .allowed = "default, LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS",
           .help = "how far apart two GPUs of a node may be and still copy to each other directly; LOC is never",
           .canonical = canonical_level,
           .without_effect = without_peer_to_peer},
          {.name = "nccl_net_gdr_level",
           .environment_name = "NCCL_NET_GDR_LEVEL",
           .allowed = "default, LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS",
           .help = "how far apart GPU and network card may be and still use GPUDirect RDMA; LOC is never",
           .canonical = canonical_level,
           .without_effect = without_rdma,
           .acts_on = {Part::data, Part::pipeline}},
          {.name = "nccl_cross_nic",
           .environment_name = "NCCL_CROSS_NIC",
           .allowed = "default, 0, 1, 2",
           .help = "may a ring enter and leave a node by different network cards: 0 never, 1 always, 2 as it fits",
           .canonical = integer(0, 2),
           .acts_on = {Part::data}},
          {.name = "nccl_pxn",
           .environment_name = "NCCL_PXN_DISABLE",
           .allowed = "default, true, false",
           .help = "may a GPU reach a far network card through another GPU over NVLink (false sets NCCL_PXN_DISABLE)",
           .canonical = flag(false),
           .environment_text = one_if_false,
           .acts_on = {Part::pipeline, Part::data},
           .fastest = "true"}};
}

std::vector<VariableRow> network_rows() {
  return {{.name = "nccl_ib_disable",
           .environment_name = "NCCL_IB_DISABLE",
           .allowed = "default, true, false",
           .help = "do not use InfiniBand or RoCE: shows what RDMA gains on this fabric",
           .canonical = flag(true),
           .environment_text = one_if_true},
          {.name = "nccl_ib_hca",
           .environment_name = "NCCL_IB_HCA",
           .allowed = "default, a list such as mlx5_0,mlx5_1:1; ^ before it: all but these; =: whole names",
           .help = "InfiniBand or RoCE devices to use; if none matches, NCCL silently falls back to sockets",
           .canonical = canonical_hca,
           .without_effect = without_infiniband},
          {.name = "nccl_ib_gid_index",
           .environment_name = "NCCL_IB_GID_INDEX",
           .allowed = "default, -1 to 255",
           .help = "RoCE address index; -1, the default since NCCL 2.21, finds it; a wrong one cannot connect",
           .canonical = integer(-1, 255),
           .without_effect = without_infiniband},
          {.name = "nccl_ib_qps",
           .environment_name = "NCCL_IB_QPS_PER_CONNECTION",
           .allowed = "default, 1 to 128",
           .help = "queue pairs of a connection: more of them spread it over more paths of the fabric",
           .canonical = integer(1, 128),
           .unit = "queue pairs",
           .without_effect = without_infiniband,
           .acts_on = {Part::data}},
          {.name = "nccl_socket_ifname",
           .environment_name = "NCCL_SOCKET_IFNAME",
           .allowed = "default, a list such as eth0,ib; ^ before it: all but these; =: whole names",
           .help = "network interfaces for sockets and for the bootstrap",
           .canonical = canonical_interfaces},
          {.name = "nccl_socket_nthreads",
           .environment_name = "NCCL_SOCKET_NTHREADS",
           .allowed = "default, 1 to 16",
           .help = "CPU threads of a socket connection; matters only where NCCL uses sockets",
           .canonical = integer(1, 16),
           .unit = "threads",
           .without_effect = without_sockets},
          {.name = "nccl_nsocks_perthread",
           .environment_name = "NCCL_NSOCKS_PERTHREAD",
           .allowed = "default, 1 to 64",
           .help = "sockets of each of these threads; multiplied by nccl_socket_nthreads, at most 64",
           .canonical = integer(1, 64),
           .unit = "sockets",
           .without_effect = without_sockets,
           .conflict = too_many_sockets}};
}

}  // namespace

std::vector<VariableRow> variables() {
  std::vector<VariableRow> rows;
  for (const auto& family : {choice_rows(), resource_rows(), path_rows(), network_rows()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  return rows;
}

}  // namespace harness::nccl
