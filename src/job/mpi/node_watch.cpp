#include "job/mpi/node_watch.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "job/mpi/fault.h"

namespace harness::mpi {
namespace {

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

NodeWatch::NodeWatch(const Site& site, const Members& members)
    : site_(site),
      watches_(site.rank == site.node_ranks.front() &&
               std::ranges::any_of(site.node_ranks, [&](int rank) { return members.contains(rank); })),
      start_(Clock::now()),
      supervisor_s_(own_cpu_s()) {
  if (!watches_) return;
  for (const std::vector<int>& core : site.cores) {
    for (const int cpu : core) cpus_.set(cpu);
  }
  times_ = machine::cpu_times_now(cpus_);
}

NodeReport NodeWatch::report(double worker_cpu_s) const {
  NodeReport report;
  report.node = site_.node_ranks.front();
  report.cores = static_cast<std::int32_t>(site_.cores.size());
  if (watches_) {
    report.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
    const machine::CpuTimes end = machine::cpu_times_now(cpus_);
    const bool whole_cores = site_.usable_cores == static_cast<int>(site_.cores.size());
    if (whole_cores) report.busy_s = end.busy_s - times_.busy_s;
    report.cpus = static_cast<std::int32_t>(cpus_.count());
    if (end.all_s > times_.all_s) report.steal_share = (end.steal_s - times_.steal_s) / (end.all_s - times_.all_s);
    report.load = machine::load_of_last_minute();
    report.clock_hz = machine::mean_clock_hz(cpus_);
    set_text(report.host, site_.host);
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
    if (beyond(report.load, worst.load)) worst.load = report.load;
    if (beyond(report.steal_share, worst.steal_share)) worst.steal_share = report.steal_share;
    if (beyond(-report.clock_hz, -worst.cpu_clock_hz)) worst.cpu_clock_hz = report.clock_hz;
    const double others_s =
        report.busy_s - own_s[report.node] - machine::busy_uncertainty_s(report.cpus, report.wall_s);
    const double share = others_s / (report.wall_s * report.cpus);
    const double foreign = std::clamp(share, 0.0, 1.0) * report.cores;  // NaN stays NaN
    if (!beyond(foreign, worst.foreign_cores)) continue;
    worst.foreign_cores = foreign;
    worst.busiest_host = text_of(report.host);
    worst.cores = report.cores;
  }
  return worst;
}

}  // namespace harness::mpi
