#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/median.h"
#include "base/text.h"
#include "report/page/page.h"
#include "traces/read.h"

namespace harness::traces {
namespace {

// The collectives of one stream and process group on one rank. PyTorch runs those of several groups on one stream.
struct Track {
  std::size_t rank = 0;
  std::vector<std::size_t> at;  // indices into the rank's collectives
};

struct Member {
  const Track* track = nullptr;
  std::ptrdiff_t shift = 0;  // its collective i + shift matches the leader's collective i
  double clock_s = 0;
};

using Group = std::vector<Member>;  // the first one leads; the others are compared with it

struct Fit {
  std::ptrdiff_t shift = 0;
  std::size_t length = 0;
  double clock_s = 0, residual_s = 0;
};

class Finder {
 public:
  explicit Finder(const std::vector<std::vector<Collective>>& ranks) : ranks_(ranks), clock_s_(ranks.size()) {}
  Meetings find();

 private:
  const Collective& of(const Track& track, std::size_t i) const { return ranks_[track.rank][track.at[i]]; }
  std::optional<Fit> fit(const Track& lead, const Track& other) const;
  std::optional<Fit> fit_at(const Track& lead, const Track& other, std::size_t lead_first, std::size_t first) const;
  void meet(const Group& group, std::vector<Meeting>& meetings) const;

  const std::vector<std::vector<Collective>>& ranks_;
  std::vector<std::optional<double>> clock_s_;
};

// Compares two tracks from these positions on. Returns nothing if they do not end together.
std::optional<Fit> Finder::fit_at(const Track& lead, const Track& other, std::size_t lead_first,
                                  std::size_t first) const {
  Fit result{static_cast<std::ptrdiff_t>(first) - static_cast<std::ptrdiff_t>(lead_first),
             std::min(lead.at.size() - lead_first, other.at.size() - first), 0, 0};
  if (result.length == 0) return std::nullopt;
  std::vector<double> apart;
  for (std::size_t i = 0; i < result.length; ++i) {
    const Collective &a = of(lead, lead_first + i), &b = of(other, first + i);
    if (a.kernel_class != b.kernel_class) return std::nullopt;
    apart.push_back(static_cast<double>(b.end_ns - a.end_ns) * 1e-9);
  }
  constexpr std::size_t enough_for_a_clock = 20;
  if (clock_s_[lead.rank] && clock_s_[other.rank]) {
    result.clock_s = *clock_s_[other.rank] - *clock_s_[lead.rank];
  } else if (result.length >= enough_for_a_clock) {
    result.clock_s = median(apart);
  }
  std::size_t together = 0;
  for (std::size_t i = 0; i < result.length; ++i) {
    const double shortest_s = std::min(of(lead, lead_first + i).seconds(), of(other, first + i).seconds());
    const double off_s = std::abs(apart[i] - result.clock_s);
    result.residual_s += off_s;
    together += off_s <= 50e-6 + 0.05 * shortest_s ? 1 : 0;
  }
  result.residual_s /= static_cast<double>(result.length);
  if (together * 20 < result.length * 19) return std::nullopt;
  return result;
}

std::optional<Fit> Finder::fit(const Track& lead, const Track& other) const {
  if (lead.at.size() == other.at.size()) return fit_at(lead, other, 0, 0);
  std::optional<Fit> best;  // captures may begin or end up to three collectives apart
  constexpr std::size_t most_shift = 3, least_length = 4;
  const std::size_t difference = std::max(lead.at.size(), other.at.size()) - std::min(lead.at.size(), other.at.size());
  if (difference > most_shift) return std::nullopt;
  for (std::size_t shift = 0; shift <= most_shift; ++shift) {
    for (const auto& [a, b] : {std::pair(shift, std::size_t{0}), std::pair(std::size_t{0}, shift)}) {
      if (a + least_length > lead.at.size() || b + least_length > other.at.size()) continue;
      const std::optional<Fit> found = fit_at(lead, other, a, b);
      if (found && (!best || found->residual_s < best->residual_s)) best = found;
    }
  }
  return best;
}

void Finder::meet(const Group& group, std::vector<Meeting>& meetings) const {
  const Track& lead = *group[0].track;
  for (std::size_t i = 0; i < lead.at.size(); ++i) {
    Meeting meeting;
    meeting.transfer_s = INFINITY;
    double first_end_s = INFINITY, last_end_s = -INFINITY;
    for (const Member& member : group) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) + member.shift;
      if (at < 0 || at >= std::ssize(member.track->at)) continue;
      const auto own = static_cast<std::size_t>(at);
      const Collective& c = of(*member.track, own);
      meeting.kernel_class = c.kernel_class;
      meeting.members.push_back({member.track->rank, member.track->at[own], c.seconds()});
      meeting.longest_s = std::max(meeting.longest_s, c.seconds());
      if (c.seconds() < meeting.transfer_s) meeting.last = member.track->rank;
      meeting.transfer_s = std::min(meeting.transfer_s, c.seconds());
      constexpr double of_one_node_s = 50e-6;  // GPU clocks within a node differ by less
      const double clock_s = std::abs(member.clock_s) > of_one_node_s ? member.clock_s : 0;
      const double end_s = static_cast<double>(c.end_ns - of(lead, i).end_ns) * 1e-9 - clock_s;
      first_end_s = std::min(first_end_s, end_s);
      last_end_s = std::max(last_end_s, end_s);
    }
    if (meeting.members.size() < 2) continue;
    for (Meeting::Member& member : meeting.members) member.waiting_s -= meeting.transfer_s;
    meeting.end_spread_s = last_end_s - first_end_s;
    std::ranges::sort(meeting.members, {}, &Meeting::Member::rank);
    meetings.push_back(std::move(meeting));
  }
}

Meetings Finder::find() {
  std::vector<Track> tracks;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> track_of;
    for (std::size_t i = 0; i < ranks_[rank].size(); ++i) {
      const Collective& c = ranks_[rank][i];
      const auto [entry, added] = track_of.emplace(std::pair(c.stream, c.members), tracks.size());
      if (added) tracks.push_back({rank, {}});
      tracks[entry->second].at.push_back(i);
    }
  }
  // Longest first: long tracks determine the clock offsets that short ones need.
  std::ranges::stable_sort(tracks, std::greater(), [](const Track& track) { return track.at.size(); });
  std::vector<Group> groups;
  if (!ranks_.empty()) clock_s_[0] = 0;
  for (const Track& track : tracks) {
    std::optional<Fit> best;
    std::size_t where = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto of_rank = [&](const Member& member) { return member.track->rank == track.rank; };
      if (std::ranges::any_of(groups[g], of_rank)) continue;
      const std::optional<Fit> found = fit(*groups[g][0].track, track);
      if (!found || (best && best->residual_s <= found->residual_s)) continue;
      best = found;
      where = g;
    }
    if (!best) {
      groups.push_back({Member{&track, 0, 0}});
      continue;
    }
    const std::size_t lead_rank = groups[where][0].track->rank;
    if (clock_s_[lead_rank] && !clock_s_[track.rank]) clock_s_[track.rank] = *clock_s_[lead_rank] + best->clock_s;
    if (!clock_s_[lead_rank] && clock_s_[track.rank]) clock_s_[lead_rank] = *clock_s_[track.rank] - best->clock_s;
    groups[where].push_back({&track, best->shift, best->clock_s});
  }
  Meetings result;
  for (const Group& group : groups) {
    if (group.size() > 1) meet(group, result.all);
  }
  std::ranges::stable_sort(
      result.all, {}, [&](const Meeting& m) { return ranks_[m.members[0].rank][m.members[0].collective].start_ns; });
  for (const std::optional<double>& clock : clock_s_) result.clock_s.push_back(clock.value_or(0));
  return result;
}

// Waiting and late ranks, derived from several GPUs of a job.

// Returns whether a collective of this class ends on all of its ranks at once.
bool ends_at_once(Class kernel_class) {
  const std::string_view name = class_names()[kernel_class];
  return name != "comm.broadcast" && name != "comm.reduce";
}

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

void find_late(Report& report) {
  constexpr double notable_s = 20e-6, notable_share = 0.05, late_share = 0.05;
  std::vector<LateRank> ranks(report.gpus.size());
  std::vector<double> own, computed;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].gpu = i;
    const analysis::Breakdown& b = report.gpus[i].step.breakdown;
    computed.push_back(b.parts.computation());
    own.push_back(computed.back() + b[Part::idle].value_or(0) + b[Part::loading].value_or(0));
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

// Returns bus bytes per byte of the larger side, as in nccl-tests; 0: unknown for this kind.
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

std::vector<Collective> collectives_of(const Capture& capture, const Device& device) {
  std::vector<Collective> all;
  for (const GpuEvent& event : device.events) {
    if (!is_communication(event.kernel_class)) continue;
    Collective& c = all.emplace_back(Collective{event.start_ns, event.end_ns, event.stream, event.kernel_class});
    if (event.operation < 0) continue;
    const Operation& arguments = capture.operations[static_cast<std::size_t>(event.operation)];
    c.bytes = std::max(arguments.bytes_in, arguments.bytes_out);
    c.group_size = arguments.group_size;
    c.members = arguments.members;
  }
  return all;
}

Meetings find_meetings(const std::vector<std::vector<Collective>>& ranks) {
  return Finder(ranks).find();
}

std::optional<double> least_waiting_s(const std::vector<Collective>& all, const std::vector<Window>& steps,
                                      const Window& window) {
  std::map<std::tuple<std::uint32_t, Class, std::int64_t, std::size_t>, std::vector<const Collective*>> alike;
  std::map<std::uint32_t, std::size_t> count;  // by stream: collectives of the step so far
  auto step = steps.begin();
  for (const Collective& c : all) {
    for (; step != steps.end() && c.start_ns >= step->end_ns; ++step) count.clear();
    const bool in_step = step != steps.end() && c.start_ns >= step->start_ns;
    const std::size_t place = in_step ? ++count[c.stream] : 0;
    if (c.bytes > 0 || in_step) alike[{c.stream, c.kernel_class, c.bytes, c.bytes > 0 ? 0 : place}].push_back(&c);
  }
  std::optional<double> waiting_s;
  for (auto& [key, group] : alike) {
    const Class kernel_class = std::get<Class>(key);
    const bool moves_alike = ends_at_once(kernel_class) && !class_names()[kernel_class].starts_with("comm.expert");
    if (group.size() < 4 || !moves_alike) continue;
    std::ranges::nth_element(group, group.begin() + 1, {}, &Collective::seconds);
    const double transfer_s = group[0]->seconds();
    if (group[1]->seconds() > 1.2 * transfer_s) continue;
    waiting_s = waiting_s.value_or(0);
    for (const Collective* c : group) {
      if (c->start_ns >= window.start_ns && c->start_ns < window.end_ns) *waiting_s += c->seconds() - transfer_s;
    }
  }
  return waiting_s;
}

void compare_ranks(Report& report) {
  const bool own = std::ranges::any_of(report.gpus, [](const TracedGpu& gpu) { return gpu.format == own_format; });
  const auto stepless = [](const TracedGpu& gpu) { return gpu.steps.windows.empty(); };
  if (!std::ranges::all_of(report.gpus, stepless)) {  // a whole trace is no step, and the mean of both is neither
    const std::size_t dropped = std::erase_if(report.gpus, stepless);
    if (dropped > 0)
      report.notes.push_back(fmt::format("{} left out: without a step, and not traced during the step of the others.",
                                         plural(static_cast<std::int64_t>(dropped), "GPU")));
  }
  if (report.gpus.size() > 1 && !own) {  // traces from harness record how long each rank waited
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
