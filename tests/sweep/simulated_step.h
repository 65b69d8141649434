#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "job/job.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::test::samples {

/// One step of every rank on an imaginary machine: streams run in order and after their waits, computation takes a
/// random time, and a communication ends for all its members at once, some time after the last has come. So what each
/// rank waits for in truth is known.
class SimulatedStep {
 public:
  SimulatedStep(const program::ProgramSet& set, std::uint64_t seed) : set_(set), random_(seed) {
    for (int rank = 0; rank < set.layout.ranks(); ++rank) {
      const program::Program& program = program_of(rank);
      Rank& r = ranks_.emplace_back();
      r.times.resize(program.step.size());
      r.arrived.resize(program.step.size());
      r.stream_end_s.resize(program.streams.size());
      r.group_start_s.resize(program.streams.size());
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < set.layout.ranks(); ++rank) moved = advance(rank) || moved;
    }
  }

  struct Times {
    double start_s = -1, end_s = -1;
    double waiting_s = 0, bubble_s = 0;  // in truth
    bool known() const { return end_s >= 0; }
  };
  const std::vector<Times>& times(int rank) const { return ranks_[static_cast<std::size_t>(rank)].times; }
  bool finished() const {
    return std::ranges::all_of(ranks_, [](const Rank& r) { return std::ranges::all_of(r.times, &Times::known); });
  }
  const program::Program& program_of(int rank) const {
    return set_.roles[static_cast<std::size_t>(set_.role_of(set_.layout.coordinates(rank)))];
  }

  /// As workers bring it home.
  std::vector<job::Samples> samples() const {
    std::vector<job::Samples> all;
    for (int rank = 0; rank < set_.layout.ranks(); ++rank) {
      const program::Program& program = program_of(rank);
      job::TimelineSamples s;
      for (std::size_t i = 0; i < program.step.size(); ++i) {
        const Times& t = times(rank)[i];
        s.timeline.push_back({static_cast<program::OperationId>(i), program.step[i].stream, t.start_s, t.end_s});
        s.step_s = std::max(s.step_s, t.end_s);
      }
      s.communication_s = program::communication_durations(program, s.timeline);
      const auto communicates = [&](program::OperationId id) {
        return program::is_communication(program.step[static_cast<std::size_t>(id)].action);
      };
      s.split = program::split_step(s.timeline, communicates, s.step_s);
      all.push_back({std::move(s), {}, 0, {}});
    }
    return all;
  }

 private:
  struct Rank {
    std::vector<Times> times;
    std::vector<char> arrived;
    std::vector<double> stream_end_s;
    std::vector<std::map<std::int32_t, double>> group_start_s;  // per stream, of fused groups
  };
  using Key = std::tuple<int, std::vector<int>, int, int>;  // group or axis, members, offset, how many before
  struct Meeting {
    std::size_t members = 0;
    std::vector<std::pair<int, std::size_t>> arrived;  // rank, operation
  };

  double random(double low, double high) { return std::uniform_real_distribution<>(low, high)(random_); }

  // Whatever can begin or end on a rank now.
  bool advance(int rank) {
    Rank& r = ranks_[static_cast<std::size_t>(rank)];
    const program::Program& program = program_of(rank);
    bool moved = false;
    std::vector<bool> blocked(program.streams.size(), false);  // an earlier operation of the stream has not ended …
    std::vector<std::int32_t> blocked_by(program.streams.size(), -1);  // … the first of them is of this group
    for (std::size_t i = 0; i < program.step.size(); ++i) {
      const program::Operation& op = program.step[i];
      const auto stream = static_cast<std::size_t>(op.stream);
      if (r.times[i].known()) continue;
      const bool same_group = blocked[stream] && op.fused_group >= 0 && blocked_by[stream] == op.fused_group;
      const bool ready = (!blocked[stream] || same_group) && std::ranges::all_of(op.waits, [&](program::OperationId w) {
                           return r.times[static_cast<std::size_t>(w)].known();
                         });
      if (!blocked[stream]) blocked_by[stream] = op.fused_group;
      blocked[stream] = true;
      if (!ready || r.arrived[i]) continue;
      double start_s = op.fused_group >= 0 && r.group_start_s[stream].contains(op.fused_group)
                           ? r.group_start_s[stream][op.fused_group]
                           : r.stream_end_s[stream];
      for (const program::OperationId w : op.waits)
        start_s = std::max(start_s, r.times[static_cast<std::size_t>(w)].end_s);
      if (op.fused_group >= 0) r.group_start_s[stream].emplace(op.fused_group, start_s);
      r.times[i].start_s = start_s;
      r.arrived[i] = 1;
      moved = true;
      if (program::is_communication(op.action)) {
        meet(rank, i);
      } else {
        end(rank, i, start_s + random(0, 1e-3));
        blocked[stream] = false;
      }
    }
    return moved;
  }

  void end(int rank, std::size_t operation, double end_s) {
    Rank& r = ranks_[static_cast<std::size_t>(rank)];
    r.times[operation].end_s = end_s;
    double& stream_end_s = r.stream_end_s[static_cast<std::size_t>(program_of(rank).step[operation].stream)];
    stream_end_s = std::max(stream_end_s, end_s);
  }

  void meet(int rank, std::size_t operation) {
    const program::Action& action = program_of(rank).step[operation].action;
    std::vector<int> members;
    int first = 0, offset = 0;
    if (const program::GroupId group = program::group_of(action); group >= 0) {
      members = set_.groups[static_cast<std::size_t>(group)].members(set_.layout, set_.layout.coordinates(rank));
      first = group;
    } else {
      const auto* send = std::get_if<program::Send>(&action);
      const program::Peer& peer = *program::peer_of(action);
      const int other = set_.layout.neighbour(rank, peer.axis, peer.offset);
      members = send != nullptr ? std::vector{rank, other} : std::vector{other, rank};
      offset = send != nullptr ? peer.offset : -peer.offset;
      first = -1 - static_cast<int>(peer.axis);
    }
    const int before = count_[{rank, first, members, offset}]++;
    Meeting& meeting = meetings_[{first, members, offset, before}];
    meeting.arrived.emplace_back(rank, operation);
    if (meeting.arrived.size() < members.size()) return;
    std::map<int, double> last_of_stage;
    double last = 0;
    const auto start_of = [&](const auto& arrival) {
      return ranks_[static_cast<std::size_t>(arrival.first)].times[arrival.second].start_s;
    };
    const auto stage_of = [&](int r) { return set_.layout.coordinates(r)[program::Axis::pipeline]; };
    for (const auto& arrival : meeting.arrived) {
      double& of_stage = last_of_stage[stage_of(arrival.first)];
      of_stage = std::max(of_stage, start_of(arrival));
      last = std::max(last, start_of(arrival));
    }
    const double end_s = last + random(1e-5, 1e-3);
    for (const auto& arrival : meeting.arrived) {
      Times& t = ranks_[static_cast<std::size_t>(arrival.first)].times[arrival.second];
      t.waiting_s = last_of_stage[stage_of(arrival.first)] - t.start_s;
      t.bubble_s = last - last_of_stage[stage_of(arrival.first)];
      end(arrival.first, arrival.second, end_s);
    }
  }

  const program::ProgramSet& set_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::map<Key, Meeting> meetings_;
  std::map<std::tuple<int, int, std::vector<int>, int>, int> count_;
};

}  // namespace harness::test::samples
