#include "job/mpi/site.h"

#include <algorithm>
#include <array>

#include "base/identity.h"
#include "job/mpi/launcher.h"
#include "job/wire.h"
#include "machine/cgroups.h"
#include "machine/cpus.h"
#include "machine/numa.h"
#include "machine/proc.h"

namespace harness::mpi {
namespace {

// One bit per CPU for MPI's bitwise or, and a last word of flags.
constexpr std::size_t words = machine::cpu_capacity / 64;
using Bits = std::array<std::uint64_t, words + 1>;

Bits bits_of(const machine::CpuSet& cpus) {
  Bits bits{};
  for (std::size_t i = 0; i < machine::cpu_capacity; ++i) {
    if (cpus[i]) bits[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return bits;
}

machine::CpuSet cpus_of(const Bits& bits) {
  machine::CpuSet cpus;
  for (std::size_t i = 0; i < machine::cpu_capacity; ++i) cpus[i] = (bits[i / 64] >> (i % 64)) & 1u;
  return cpus;
}

}  // namespace

machine::GpuView visible_gpus() {
  const char* root = test_hook("HARNESS_TEST_GPU_ROOT");  // tests show a node that is not this one
  return machine::find_gpus(gpu_environment(own_environment), root != nullptr ? root : "/");
}

Site find_site(Ranks& ranks) {
  Site site;
  site.rank = ranks.rank();
  site.node_ranks = ranks.node_ranks();
  site.host = machine::host_name();
  site.device = machine::cpu_model();
  site.memory_bytes = machine::memory_bytes();
  site.gpus = visible_gpus();
  const machine::CpuSet bound = machine::bound_cpus();
  const machine::CpuSet allowed = machine::allowed_cpus();
  Bits bits = bits_of(bound);
  bits[words] = machine::cores_of(bound).size() == 1 && machine::cores_of(allowed).size() > 1 ? 1 : 0;
  ranks.node_union(bits, {});
  // One core per rank is what mpirun does unasked; it was not meant for processes with threads.
  const bool ignore_binding = bits[words] != 0;
  bits[words] = 0;
  site.cores = machine::cores_of(ignore_binding ? allowed : cpus_of(bits));
  for (const std::vector<int>& core : site.cores) site.numa_nodes.push_back(machine::numa_node_of(core.front()));
  site.usable_cores = machine::limited_by_quota(static_cast<int>(std::max<std::size_t>(1, site.cores.size())));
  return site;
}

// What a rank says of its place; rank and node follow from the order of the reports.
struct PlaceReport {
  job::RankPlace place;
  std::int32_t leader = 0;  // the lowest rank of its node
};

template <job::MessageOf<PlaceReport> M, class Each>
void each_field(M& m, Each& each) {
  auto& p = m.place;
  each(p.local_rank, p.local_ranks, p.host, p.device, p.cores, p.memory_bytes, p.gpus.on_node, p.gpus.count,
       p.gpus.names, m.leader);
}

std::vector<job::RankPlace> gather_places(Ranks& ranks, const Site& site) {
  PlaceReport own;
  const auto local = std::ranges::find(site.node_ranks, site.rank) - site.node_ranks.begin();
  own.place.local_rank = static_cast<int>(local);
  own.place.local_ranks = static_cast<int>(site.node_ranks.size());
  own.place.host = site.host;
  own.place.device = site.device;
  own.place.cores = site.usable_cores;
  own.place.memory_bytes = site.memory_bytes;
  own.place.gpus = site.gpus;
  own.leader = site.node_ranks.front();
  std::vector<job::RankPlace> places;
  std::vector<std::int32_t> leaders;  // by node: its lowest rank
  for (const std::string& bytes : ranks.gather(job::encode_fields(own), {})) {
    auto [place, leader] = job::decode_fields<PlaceReport>(bytes);
    place.rank = static_cast<int>(places.size());
    // A node's lowest rank comes before its others, so leaders are met in ascending order.
    if (leader == place.rank) leaders.push_back(leader);
    place.node = static_cast<int>(std::ranges::lower_bound(leaders, leader) - leaders.begin());
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace harness::mpi
