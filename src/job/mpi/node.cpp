#include "job/mpi/node.h"

#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "base/identity.h"
#include "base/text.h"
#include "job/mpi/mpi_job.h"
#include "machine/tree.h"

namespace harness::mpi {
namespace {

// What the ranks of a node tell each other, for MPI's bitwise or.
struct Binding {
  machine::CpuSet cpus;
  std::uint64_t is_to_one_core = 0;  // of several that are allowed
};
using Words = std::array<std::uint64_t, sizeof(Binding) / sizeof(std::uint64_t)>;

machine::CpuSet cpus_of(const Site& site, std::size_t first_core, std::size_t count) {
  machine::CpuSet cpus;
  for (std::size_t core = first_core; core < first_core + count; ++core) {
    for (const int cpu : site.cores[core]) cpus.set(static_cast<std::size_t>(cpu));
  }
  return cpus;
}

machine::CpuSet all_cpus(const Site& site) {
  return cpus_of(site, 0, site.cores.size());
}

// Divides the cores evenly among the ranks. A rank that sits the block out may get any part.
machine::CpuSet cpus_of(const Site& site, const Share& share) {
  const std::size_t cores = site.cores.size(), ranks = static_cast<std::size_t>(share.local_ranks);
  const bool enough = static_cast<std::size_t>(share.threads) * ranks <= cores;
  if (!enough || static_cast<std::size_t>(site.place.cores) != cores) return all_cpus(site);
  const auto turn = static_cast<std::size_t>(std::min(share.local_rank, share.local_ranks - 1));
  return cpus_of(site, turn * (cores / ranks), cores / ranks);
}

using Clock = std::chrono::steady_clock;

double own_cpu_s() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return NodeReport::nan;
  return machine::cpu_seconds(used);
}

bool beyond(double value, double worst) {
  return std::isnan(worst) ? !std::isnan(value) : value > worst;
}

}  // namespace

Site find_site(Ranks& ranks) {
  Site site;
  site.node_ranks = ranks.node_ranks();
  job::RankPlace& place = site.place;
  place.rank = ranks.rank();
  place.local_rank = static_cast<int>(std::ranges::find(site.node_ranks, place.rank) - site.node_ranks.begin());
  place.local_ranks = static_cast<int>(site.node_ranks.size());
  place.host = machine::host_name();
  place.device = machine::cpu_model();
  place.memory_bytes = machine::memory_bytes();
  const char* root = test_hook("HARNESS_TEST_GPU_ROOT");  // tests substitute another node's files
  place.gpus = machine::find_gpus(gpu_environment(own_environment), root != nullptr ? root : "/");
  const machine::CpuSet bound = machine::bound_cpus();
  const machine::CpuSet allowed = machine::allowed_cpus();
  const bool to_one = machine::cores_of(bound).size() == 1 && machine::cores_of(allowed).size() > 1;
  auto words = std::bit_cast<Words>(Binding{bound, to_one ? 1U : 0U});
  ranks.node_union(words, {});
  const auto of_node = std::bit_cast<Binding>(words);
  // mpirun binds each rank to one core by default, which does not suit processes with threads.
  site.cores = machine::cores_of(of_node.is_to_one_core != 0 ? allowed : of_node.cpus);
  place.cores = machine::limited_by_quota(static_cast<int>(std::max<std::size_t>(1, site.cores.size())));
  return site;
}

std::vector<job::RankPlace> gather_places(Ranks& ranks, const Site& site) {
  const std::pair own(site.place, site.node_ranks.front());
  std::vector<job::RankPlace> places;
  std::vector<int> leaders;  // by node: its lowest rank
  for (const std::string& bytes : ranks.gather(job::encode(own), {})) {
    auto [place, leader] = job::decode<std::pair<job::RankPlace, int>>(bytes);
    // A node's lowest rank comes before its others, so leaders are met in ascending order.
    if (leader == place.rank) leaders.push_back(leader);
    place.node = static_cast<int>(std::ranges::lower_bound(leaders, leader) - leaders.begin());
    places.push_back(std::move(place));
  }
  return places;
}

Share share_of(const Site& site, const Members& members, const job::BlockRequest& request) {
  Share share;
  int taking_part = 0;
  for (const int rank : site.node_ranks) {
    if (!members.contains(rank)) continue;
    if (rank < site.place.rank) ++share.local_rank;
    ++taking_part;
  }
  share.local_ranks = std::max(1, taking_part);
  share.threads = request.settings.compute_threads(site.place.cores / share.local_ranks);
  share.memory_limit_bytes = request.memory_limit_bytes;
  if (config::traits_of(request.backend).ranks_are_gpus) {
    share.cpus = all_cpus(site);
    return share;
  }
  if (share.memory_limit_bytes <= 0)
    share.memory_limit_bytes = job::share_of_memory(site.place.memory_bytes, share.local_ranks);
  share.cpus = cpus_of(site, share);
  return share;
}

NodeWatch::NodeWatch(const Site& site, const Members& members)
    : site_(site),
      watches_(site.place.rank == site.node_ranks.front() &&
               std::ranges::any_of(site.node_ranks, [&](int rank) { return members.contains(rank); })),
      start_(Clock::now()),
      supervisor_s_(own_cpu_s()) {
  if (!watches_) return;
  cpus_ = all_cpus(site);
  times_ = machine::cpu_times_now(cpus_);
}

NodeReport NodeWatch::report(double worker_cpu_s) const {
  NodeReport report;
  report.node = site_.node_ranks.front();
  report.cores = static_cast<std::int32_t>(site_.cores.size());
  if (watches_) {
    report.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
    const machine::CpuTimes end = machine::cpu_times_now(cpus_);
    const bool whole_cores = site_.place.cores == static_cast<int>(site_.cores.size());
    if (whole_cores) report.busy_s = end.busy_s - times_.busy_s;
    report.cpus = static_cast<std::int32_t>(cpus_.count());
    if (end.all_s > times_.all_s) report.steal_share = (end.steal_s - times_.steal_s) / (end.all_s - times_.all_s);
    report.host = site_.place.host;
  }
  report.own_s = own_cpu_s() - supervisor_s_ + worker_cpu_s;
  return report;
}

machine::Conditions worst_of(std::span<const NodeReport> reports) {
  std::map<std::int32_t, double> own_s;  // by node
  for (const NodeReport& report : reports) own_s[report.node] += report.own_s;
  machine::Conditions worst;
  for (const NodeReport& report : reports) {
    if (!(report.wall_s > 0)) continue;
    if (beyond(report.steal_share, worst.steal_share)) worst.steal_share = report.steal_share;
    const double others_s =
        report.busy_s - own_s[report.node] - machine::busy_uncertainty_s(report.cpus, report.wall_s);
    const double share = others_s / (report.wall_s * report.cpus);
    const double foreign = std::clamp(share, 0.0, 1.0) * report.cores;  // NaN stays NaN
    if (!beyond(foreign, worst.foreign_cores)) continue;
    worst.foreign_cores = foreign;
    worst.busiest_host = report.host;
  }
  return worst;
}

}  // namespace harness::mpi
