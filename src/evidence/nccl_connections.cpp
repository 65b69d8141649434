#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "evidence/nccl_use.h"

// Which ranks NCCL connects: over what, and whether as neighbours of a ring or of a tree.

namespace harness::evidence {
namespace {

constexpr std::size_t most_of_a_ring = 1024;

// "[1]" behind the number of a rank: its GPU, until 2.18 by its address on the bus.
std::string gpu_of(std::int64_t rank, Cursor& c) {
  if (!c.literal("[")) return fmt::format("rank {}", rank);
  return fmt::format("GPU {}", c.until("]").substr(0, 16));
}

}  // namespace

std::map<NcclUse::Pair, std::set<int>> NcclUse::Communicator::ring_crossings() const {
  std::map<Pair, std::set<int>> of_rings = connections.crossings;
  std::erase_if(of_rings, [&](const auto& crossing) {
    return connections.in_trees.contains(crossing.first) && !connections.in_rings.contains(crossing.first);
  });
  return of_rings.empty() ? connections.crossings : of_rings;
}

void NcclUseReader::take_connections(const std::string& rank) {
  const auto current = communicator_of_.find(rank);
  if (current == communicator_of_.end() || current->second.empty()) return;
  auto found = open_connections_.extract(rank);
  if (found.empty()) return;
  NcclUse::Connections& all = use_.communicators[current->second].connections;
  for (auto& [pair, adapters] : found.mapped().crossings) all.crossings[pair].merge(adapters);
  all.in_rings.merge(found.mapped().in_rings);
  all.in_trees.merge(found.mapped().in_trees);
}

// "Channel 00/02 : 0 1 2 3" is a ring, of which the end may be cut; "Trees [0] 1/-1/-1->0->2 [1] …" are the ranks below
// one and above it, until 2.6 "[0] 1/-1/-1->0->2|2->0->1/-1/-1".
void NcclUseReader::neighbours(std::string_view message, const Origin& origin) {
  const auto add = [&](std::set<NcclUse::Pair> NcclUse::Connections::*into, std::int64_t from, std::int64_t to) {
    if (kept_ < most_connections && (open_connections_[origin.rank].*into).emplace(from, to).second) ++kept_;
  };
  if (message.starts_with("Trees ")) {
    const std::string trees = replaced(message, {{'|', " "}});
    for (const std::string_view tree : words_of(trees)) {
      const std::size_t self = tree.find("->"), up = tree.rfind("->");
      if (self == std::string_view::npos || up == self) continue;
      const auto rank = number_in<std::int64_t>(tree.substr(self + 2, up - self - 2));
      const std::string others = fmt::format("{}/{}", tree.substr(0, self), tree.substr(up + 2));
      for (const std::string_view word : split(others, '/')) {
        const auto other = number_in<std::int64_t>(word);
        if (!rank || !other || *other < 0) continue;
        add(&NcclUse::Connections::in_trees, *rank, *other);
        add(&NcclUse::Connections::in_trees, *other, *rank);
      }
    }
    return;
  }
  Cursor c{message};
  if (!c.literal("Channel ") || !c.after(" :")) return;
  std::vector<std::int64_t> ring;
  for (const std::string_view word : words_of(c.rest, most_of_a_ring)) {
    const auto rank = number_in<std::int64_t>(word);
    if (!rank) break;
    if (!ring.empty()) add(&NcclUse::Connections::in_rings, ring.back(), *rank);
    ring.push_back(*rank);
  }
  if (ring.size() > 1 && !contains(c.rest, "...")) add(&NcclUse::Connections::in_rings, ring.back(), ring.front());
}

// "Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0(2)/GDRDMA"; until 2.4 "Ring 00 : 15 -> 0 [receive] via NET/Socket/0"
void NcclUseReader::connection(std::string_view message, const Origin& origin) {
  Cursor c{message};
  std::int64_t from = 0, to = 0;
  if (!c.literal("Channel ") && !c.literal("Ring ")) return;
  if (!c.after(" : ") || !c.integer(from)) return;
  const std::string sender = gpu_of(from, c);
  if (!c.after("-> ") || !c.integer(to)) return;
  const std::string receiver = gpu_of(to, c);
  const bool receives = contains(c.rest, "[receive] ");
  if (!c.after(" via ")) return;
  NcclUse::Host& host = use_.hosts[host_at(origin.host)];
  const auto gpu_named = [&](const std::string& name) -> NcclUse::Gpu* {
    if (host.gpus.size() >= NcclUse::most_of_a_host && !host.gpus.contains(name)) return nullptr;
    return &host.gpus[name];
  };
  const bool by_peer = c.rest.starts_with("P2P/");
  if (by_peer || c.rest.starts_with("SHM") || c.rest.starts_with("direct shared memory")) {
    for (const std::string& name : {sender, receiver}) {
      if (NcclUse::Gpu* gpu = gpu_named(name); gpu != nullptr && !contains(c.rest, "MNNVL"))
        ++(by_peer ? gpu->by_peer : gpu->through_memory);
    }
  }
  if (!c.literal("NET/")) return;
  const bool sockets = c.rest.starts_with("Socket");
  host.sockets = host.sockets || sockets;
  if (NcclUse::Gpu* gpu = gpu_named(receives ? receiver : sender); gpu != nullptr) {
    constexpr std::size_t most_networks = 8;
    if (gpu->networks.size() < most_networks)
      gpu->networks.emplace(c.rest.substr(0, std::min<std::size_t>(c.rest.find('/'), 60)));
    NcclUse::Gpu::Ends& ends = receives ? gpu->receives : gpu->sends;
    ends.all += sockets ? 0 : 1;
    ends.direct += !sockets && contains(c.rest, "/GDRDMA") ? 1 : 0;
  }
  if (kept_ < most_connections) {
    const auto [known, fresh] = host.ends.emplace(std::pair{from, to}, 0);
    known->second |= receives ? 2 : 1;
    kept_ += fresh ? 1 : 0;
  }
  int adapter = -1;
  if (!c.after("/") || !c.integer(adapter) || adapter < 0 || adapter > 4096) return;
  host.adapters.insert(adapter);
  if (receives) return;
  if (kept_ >= most_connections) {
    use_.cut = true;
    return;
  }
  if (open_connections_[origin.rank].crossings[{from, to}].insert(adapter).second) ++kept_;
}

}  // namespace harness::evidence
