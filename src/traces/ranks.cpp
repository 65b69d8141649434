#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/median.h"
#include "report/page/page.h"
#include "traces/read.h"

// Several GPUs of a job tell together who was late and how long others waited.
namespace harness::traces {
namespace {

void add_waiting(Report& report) {
  std::vector<std::unordered_map<std::size_t, std::pair<double, bool>>> waited(report.gpus.size());
  for (const Meeting& meeting : report.meetings.all) {
    if (!ends_at_once(meeting.kernel_class)) continue;
    for (const Meeting::Member& member : meeting.members)
      waited[member.rank][member.collective] = {member.waiting_s, meeting.is_pair()};
  }
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    StepWork& work = report.gpus[i].work;
    for (const auto& [at, collective] : work.collectives) {
      const auto found = waited[i].find(collective);
      if (found == waited[i].end()) continue;
      const auto& [waited_s, of_stages] = found->second;
      (of_stages ? work.operations[at].bubble_s : work.operations[at].waiting_s) = waited_s;
    }
  }
}

double own_s(const TimedStep& step) {
  const analysis::Breakdown& b = step.breakdown;
  return b.parts.computation() + b[Part::idle].value_or(0) + b[Part::loading].value_or(0);
}

void find_late(Report& report) {
  constexpr double notable_s = 20e-6, notable_share = 0.05, late_share = 0.05;
  std::vector<LateRank> ranks(report.gpus.size());
  std::vector<double> own, computed;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].gpu = i;
    own.push_back(own_s(report.gpus[i].step));
    computed.push_back(report.gpus[i].step.breakdown.parts.computation());
  }
  for (const Meeting& meeting : report.meetings.all) {
    const double waited_s = meeting.longest_s - meeting.transfer_s;
    if (!ends_at_once(meeting.kernel_class) || meeting.is_pair()) continue;
    if (waited_s < notable_s || waited_s < notable_share * meeting.transfer_s) continue;
    for (const Meeting::Member& member : meeting.members) ++ranks[member.rank].of;
    ++ranks[meeting.last].last;
  }
  for (LateRank& rank : ranks) {
    const auto beyond = [&](const std::vector<double>& seconds) {
      const double middle = median(seconds);
      return middle > 0 ? seconds[rank.gpu] / middle - 1 : 0;
    };
    rank.own_share = beyond(own);
    rank.compute_share = beyond(computed);
    const bool waited_for = rank.last * 3 >= rank.of * 2 && rank.last >= 4;
    if (waited_for && rank.own_share > late_share) report.late.push_back(rank);
  }
  std::ranges::sort(report.late, std::greater(), &LateRank::own_share);
}

// Bytes over the bus for each byte of the larger side, as nccl-tests count; 0: not known of this kind.
double bus_factor(std::string_view kind, double ranks) {
  if (kind == "comm.allreduce") return 2 * (ranks - 1) / ranks;
  const bool once = kind == "comm.reducescatter" || kind == "comm.allgather" || kind == "comm.alltoall";
  return once ? (ranks - 1) / ranks : 0;
}

void find_bandwidths(Report& report) {
  std::map<std::tuple<Class, std::int64_t, std::int64_t>, std::vector<double>> transfers;
  for (const Meeting& meeting : report.meetings.all) {
    const Meeting::Member& first = meeting.members.front();
    const Collective& c = report.gpus[first.rank].collectives[first.collective];
    if (c.bytes > 0 && c.group_size == std::ssize(meeting.members) && meeting.transfer_s > 0)
      transfers[{meeting.kernel_class, c.bytes, c.group_size}].push_back(meeting.transfer_s);
  }
  for (const auto& [key, seconds] : transfers) {
    const auto& [kernel_class, bytes, ranks] = key;
    const double factor = bus_factor(class_names()[kernel_class], static_cast<double>(ranks));
    if (factor <= 0) continue;
    Bandwidth& b = report.bandwidths.emplace_back(Bandwidth{kernel_class, bytes, ranks, std::ssize(seconds)});
    b.bytes_per_s = factor * static_cast<double>(bytes) / median(seconds);
    for (const double s : seconds) b.seconds += s;
  }
  std::ranges::stable_sort(report.bandwidths, std::greater(), &Bandwidth::seconds);
}

}  // namespace

void compare_ranks(Report& report) {
  const bool own = std::ranges::any_of(report.gpus, [](const TracedGpu& gpu) { return gpu.format == own_format; });
  if (report.gpus.size() > 1 && !own) {  // traces of harness's own say themselves how long each rank waited
    std::vector<std::vector<Collective>> collectives;
    for (const TracedGpu& gpu : report.gpus) collectives.push_back(gpu.collectives);
    report.meetings = find_meetings(collectives);
    add_waiting(report);
    find_bandwidths(report);
  }
  std::vector<TimedStep> steps;
  for (TracedGpu& gpu : report.gpus) {
    gpu.step = time_step(gpu.work);
    gpu.step.breakdown.rank = static_cast<std::int32_t>(gpu.rank.value_or(std::ssize(steps)));
    steps.push_back(gpu.step);
  }
  const std::vector<std::size_t> drawn = page::evenly_chosen(report.gpus.size());
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    if (!std::ranges::binary_search(drawn, i)) report.gpus[i].work = {};
  }
  report.mean = mean_of(steps);
  find_late(report);
}

}  // namespace harness::traces
