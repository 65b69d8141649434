#include "job/mpi/share.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace harness::mpi {
namespace {

using Cores = std::vector<std::size_t>;  // as the site numbers them

void take(const Site& site, const Cores& cores, Share& share) {
  for (const std::size_t core : cores) {
    for (const int cpu : site.cores[core]) share.cpus.set(static_cast<std::size_t>(cpu));
  }
}

// The part of `cores` that is a rank's, of ranks that share them evenly. A rank that sits the block out has no place
// among them; any will do.
Cores part_of(const Cores& cores, const Share& share) {
  const auto ranks = static_cast<std::size_t>(share.local_ranks);
  const auto turn = static_cast<std::size_t>(std::min(share.local_rank, share.local_ranks - 1));
  const std::size_t each = cores.size() / ranks;
  if (each == 0) return {cores[turn % cores.size()]};
  const auto first = cores.begin() + static_cast<std::ptrdiff_t>(turn * each);
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

Cores all_cores(const Site& site) {
  Cores cores(site.cores.size());
  std::iota(cores.begin(), cores.end(), std::size_t{0});
  return cores;
}

void bind_if_enough(const Site& site, Share& share) {
  const auto cores = static_cast<std::int64_t>(site.cores.size());
  const bool enough = static_cast<std::int64_t>(share.threads) * share.local_ranks <= cores;
  const bool own = enough && site.usable_cores == cores;
  take(site, own ? part_of(all_cores(site), share) : all_cores(site), share);
}

// The first ranks are of the first NUMA node, and so on, evenly.
void bind_to_numa_node(const Site& site, Share& share) {
  std::map<int, Cores> by_node;
  for (std::size_t core = 0; core < site.cores.size(); ++core) by_node[site.numa_nodes[core]].push_back(core);
  Cores order(by_node.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto turn = static_cast<std::size_t>(std::min(share.local_rank, share.local_ranks - 1));
  const std::size_t place = turn * by_node.size() / static_cast<std::size_t>(share.local_ranks);
  const auto& [node, cores] = *std::next(by_node.begin(), static_cast<std::ptrdiff_t>(place));
  take(site, cores, share);
  share.numa_node = node;
}

void bind_to_own_cores(const Site& site, Share& share) {
  Cores cores = all_cores(site);  // those of a NUMA node together
  std::ranges::stable_sort(cores, {}, [&](std::size_t core) { return site.numa_nodes[core]; });
  if (cores.size() < static_cast<std::size_t>(share.local_ranks)) {
    share.warnings.push_back(fmt::format(
        "host_binding: core: {} ranks on {} have {} cores, so some share one; start fewer, or take host_binding: numa",
        share.local_ranks, site.host, cores.size()));
  }
  const Cores own = part_of(cores, share);
  take(site, own, share);
  share.numa_node = site.numa_nodes[own.front()];
}

void bind(const Site& site, config::HostBinding binding, Share& share) {
  switch (binding) {
    case config::HostBinding::automatic:
      return bind_if_enough(site, share);
    case config::HostBinding::none:
      return take(site, all_cores(site), share);
    case config::HostBinding::numa:
      bind_to_numa_node(site, share);
      break;
    case config::HostBinding::core:
      bind_to_own_cores(site, share);
      break;
  }
  if (share.numa_node < 0) {
    share.warnings.push_back(fmt::format(
        "host_binding: the kernel of {} does not tell which CPUs are of which NUMA node, so memory is taken as usual; "
        "a container needs /sys",
        site.host));
  }
}

}  // namespace

Share share_of(const Site& site, const Members& members, const job::BlockRequest& request) {
  Share share;
  int taking_part = 0;
  for (const int rank : site.node_ranks) {
    if (!members.contains(rank)) continue;
    if (rank < site.rank) ++share.local_rank;
    ++taking_part;
  }
  share.local_ranks = std::max(1, taking_part);
  const int threads = request.settings.threads;
  share.threads = threads > 0 ? threads : std::max(1, site.usable_cores / share.local_ranks);
  share.memory_limit_bytes = request.memory_limit_bytes;
  if (config::traits_of(request.backend).ranks_are_gpus) {
    take(site, all_cores(site), share);
    return share;
  }
  if (share.memory_limit_bytes <= 0)
    share.memory_limit_bytes = job::share_of_memory(site.memory_bytes, share.local_ranks);
  if (!site.cores.empty()) bind(site, request.settings.host_binding, share);
  return share;
}

InPlace::InPlace(Share& share) : cpus_before_(machine::bound_cpus()) {
  machine::bind_to(share.cpus);
  if (share.numa_node < 0) return;
  std::string problem = machine::get_memory_policy(policy_before_);
  if (problem.empty()) problem = machine::set_memory_policy(machine::preferring(share.numa_node));
  policy_changed_ = problem.empty();
  if (!policy_changed_) {
    share.warnings.push_back(
        fmt::format("host_binding: memory is taken as usual, since the kernel refuses to prefer a NUMA node: {}",
                    machine::with_advice(problem)));
  }
}

InPlace::~InPlace() {
  machine::bind_to(cpus_before_);
  if (policy_changed_) machine::set_memory_policy(policy_before_);
}

}  // namespace harness::mpi
