#include "program/timeline.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "base/part.h"
#include "program/operation.h"

namespace harness::program {

StepSplit split_step(std::span<const Interval> intervals, const std::function<bool(OperationId)>& is_communication,
                     double step_s) {
  std::vector<Stretch> parts[2];
  for (const Interval& interval : intervals) {
    parts[is_communication(interval.operation) ? 1 : 0].push_back(
        {std::max(interval.start_s, 0.0), std::min(interval.end_s, step_s)});
  }
  const Stretches compute = united(std::move(parts[0])), communication = united(std::move(parts[1]));
  const Stretches exposed = without(communication, compute);
  StepSplit split;
  split.step_s = step_s;
  split.compute_s = length(compute);
  split.communication_s = length(communication);
  split.exposed_s = length(exposed);
  split.overlapped_s = length(without(communication, exposed));
  split.idle_s = length(without(without(step_s > 0 ? Stretches{{0, step_s}} : Stretches{}, compute), exposed));
  return split;
}

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Shortest duration at each meeting of the members of a communicator, or of a sender and its receiver.
using Quickest = std::vector<float>;

void note(Quickest& quickest, std::size_t meeting, float seconds) {
  if (meeting >= quickest.size()) quickest.resize(meeting + 1, nan);
  quickest[meeting] = std::fmin(quickest[meeting], seconds);  // fmin ignores a NaN beside a number
}

struct CommunicatorTimes {
  Quickest all;
  std::map<int, Quickest> of_stage;
};

class Meetings {
 public:
  explicit Meetings(const ProgramSet& set) : set_(set) {
    for (const Program& program : set.roles) {
      auto& list = actions_.emplace_back();
      for (const Operation& op : program.step) {
        if (is_communication(op.action)) list.push_back(&op.action);
      }
    }
  }

  // Calls take(times, stage, meeting, communication) for each communication of the rank.
  template <class Take>
  void walk(int rank, const Take& take) {
    const Coordinates at = set_.layout.coordinates(rank);
    const auto& actions = actions_[set_.role_of(at)];
    std::map<const CommunicatorTimes*, std::size_t> met;
    std::map<GroupId, CommunicatorTimes*> groups;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      CommunicatorTimes& times = times_of(*actions[i], rank, at, groups);
      take(times, at[Axis::pipeline], met[&times]++, i);
    }
  }

 private:
  CommunicatorTimes& times_of(const Action& action, int rank, const Coordinates& at,
                              std::map<GroupId, CommunicatorTimes*>& groups) {
    if (const GroupId group = group_of(action); group >= 0) {
      CommunicatorTimes*& known = groups[group];
      if (known == nullptr) {
        const int first = set_.layout.rank(set_.groups[group].first(set_.layout, at));
        known = &times_[communicator_of(set_.layout, action, rank, first)];
      }
      return *known;
    }
    const Peer& peer = *peer_of(action);
    return times_[communicator_of(set_.layout, action, rank, set_.layout.neighbour(rank, peer.axis, peer.offset))];
  }

  const ProgramSet& set_;
  std::vector<std::vector<const Action*>> actions_;  // by role
  std::map<Communicator, CommunicatorTimes> times_;
};

}  // namespace

std::vector<float> communication_durations(const Program& program, std::span<const Interval> timeline) {
  std::vector<float> of_operation(program.step.size(), nan);
  for (const Interval& x : timeline) {
    float& seconds = of_operation.at(x.operation);
    seconds = (std::isnan(seconds) ? 0 : seconds) + static_cast<float>(x.end_s - x.start_s);
  }
  std::vector<float> durations;
  for (std::size_t i = 0; i < program.step.size(); ++i) {
    if (is_communication(program.step[i].action)) durations.push_back(of_operation[i]);
  }
  return durations;
}

std::vector<std::vector<Waiting>> find_waiting(const ProgramSet& set, std::span<const std::vector<float>> durations) {
  Meetings meetings(set);
  std::vector<std::vector<Waiting>> found(durations.size());
  const auto each_rank = [&](const auto& visit) {
    for (int rank = 0; rank < std::ssize(durations); ++rank) {
      if (!durations[rank].empty()) visit(rank, durations[rank]);
    }
  };
  each_rank([&](int rank, const std::vector<float>& seconds) {
    meetings.walk(rank, [&](CommunicatorTimes& times, int stage, std::size_t meeting, std::size_t i) {
      note(times.all, meeting, seconds.at(i));
      note(times.of_stage[stage], meeting, seconds[i]);
    });
  });
  each_rank([&](int rank, const std::vector<float>& seconds) {
    auto& of_rank = found[rank];
    meetings.walk(rank, [&](CommunicatorTimes& times, int stage, std::size_t meeting, std::size_t i) {
      const float own_stage = times.of_stage[stage][meeting];
      of_rank.push_back({seconds[i] - own_stage, std::isnan(seconds[i]) ? nan : own_stage - times.all[meeting]});
    });
  });
  return found;
}

}  // namespace harness::program
