#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <variant>

#include "base/text.h"
#include "program/operation.h"
#include "sim/link_time.h"

namespace harness::sim {
namespace {

using program::GroupId;
using program::Operation;
using program::OperationId;

constexpr Ticks longest = 1'000'000'000'000'000'000;  // 278 h

[[noreturn]] void fail_too_long() {
  throw NotPredicted(
      "the step takes more than 278 h, the most that is predicted: a rate of the hardware, of `fabric` or of `faults` "
      "is far too low, or has the wrong unit");
}

// Work that proceeds at a changing rate.
struct Work {
  double left = 0;           // in ticks at full speed
  double rate = 0;           // 0: not begun
  Ticks since = 0;           // when this rate began
  std::int32_t version = 0;  // changes with its end: an event with another version is void

  void settle(Ticks now) {
    left = std::max(0.0, left - static_cast<double>(now - since) * rate);
    since = now;
  }
  // The rate beside several communications that hold the device is so low that the end would not fit.
  Ticks end() const {
    constexpr double latest = 4e18;
    return since + static_cast<Ticks>(std::min(std::ceil(left / rate), latest));
  }
};

// Operations of a stream that start together: one, or a fused group.
struct Unit {
  OperationId first = 0, last = 0;  // inclusive
  int missing = 0;                  // pending waits, and the previous unit of its stream if that is pending
  int running = 0;                  // operations that have not ended
  Ticks issued = 0;                 // when the host has issued all of it
  OperationId after = -1;           // the operation whose end released it last
  int before = -1, next = -1;       // on its stream
};

// One communication: a collective or a message.
struct CollectiveInstance {
  std::vector<std::pair<int, OperationId>> members;  // class and operation, in order of arrival
  Work work;
  double keeps = 1;
};

// Classes that communicate repeatedly: the n-th operation of each is part of the n-th instance. A message has two ends,
// which may belong to one class.
struct Communicator {
  int members = 0;             // ends
  std::vector<int> instances;  // numbers, in order
};

struct RankTimeline {  // for a class
  std::vector<Unit> units;
  std::vector<int> unit_of;                  // by operation
  std::vector<std::vector<int>> dependants;  // by operation: units that wait for it
  std::vector<Cost> costs;
  std::vector<Work> work;                   // by operation, of computations
  std::vector<OperationId> computing;       // running computations
  std::vector<int> communicating;           // numbers of running instances
  std::vector<OperationId> arrived;         // communications that have arrived and not ended
  std::map<std::pair<int, bool>, int> met;  // how many so far, by communicator and whether it sends
  std::map<GroupId, int> communicator_of_group;
  std::vector<int> communicator;  // its number, by operation; -1: a computation
  bool touched = false;
};

struct Event {
  Ticks time = 0;
  enum class Kind : std::uint8_t { issued, computed, met } kind = Kind::issued;
  int number = 0;  // class, or instance
  int index = 0;   // unit or operation
  std::int32_t version = 0;
  // Ties are broken by content, so that the order does not depend on insertion.
  auto key() const { return std::tuple(time, kind, number, index, version); }
  bool operator>(const Event& other) const { return key() > other.key(); }
};

class Engine {
 public:
  Engine(const RankClasses& classes, const CostOf& cost) : classes_(classes), timelines_(classes.list().size()) {
    for (int c = 0; std::cmp_less(c, timelines_.size()); ++c) lay_out(c, cost);
  }

  SimulatedStep run() {
    for (int c = 0; std::cmp_less(c, timelines_.size()); ++c) {
      for (int u = 0; std::cmp_less(u, timelines_[c].units.size()); ++u) {
        if (timelines_[c].units[u].missing == 0) ready(c, u);
      }
    }
    work_off();
    while (!events_.empty()) {
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
      }
      work_off();
    }
    for (int c = 0; std::cmp_less(c, timelines_.size()); ++c) {
      if (ended_[c] == std::ssize(timelines_[c].unit_of)) continue;
      fail("the simulated step does not end: {} of the {} operations of rank {} have", ended_[c],
           timelines_[c].unit_of.size(), classes_.list()[c].first_rank);
    }
    return std::move(step_);
  }

 private:
  const std::vector<Operation>& operations(int c) const { return classes_.program(c).step; }
  OperationTimes& times(int c, OperationId id) { return step_.times[c][id]; }

  void lay_out(int c, const CostOf& cost) {
    RankTimeline& timeline = timelines_[c];
    const std::vector<Operation>& list = operations(c);
    step_.times.emplace_back(list.size());
    ended_.push_back(0);
    timeline.dependants.resize(list.size());
    timeline.work.resize(list.size());
    std::vector<int> last(classes_.program(c).streams.size(), -1);  // unit on each stream
    Ticks issued = 0;
    for (OperationId id = 0; std::cmp_less(id, list.size()); ++id) {
      const Operation& op = list[id];
      timeline.costs.push_back(cost(c, id));
      issued += timeline.costs.back().host;
      int& before = last[op.stream];
      const bool joins =
          op.fused_group >= 0 && before >= 0 && list[timeline.units[before].last].fused_group == op.fused_group;
      if (!joins) {
        const int number = static_cast<int>(timeline.units.size());
        timeline.units.push_back({.first = id, .last = id, .missing = before >= 0 ? 1 : 0, .before = before});
        if (before >= 0) timeline.units[before].next = number;
        before = number;
      }
      Unit& unit = timeline.units[before];
      unit.last = id;
      unit.issued = issued;
      ++unit.running;
      timeline.unit_of.push_back(before);
      for (const OperationId waited : op.waits) {
        if (timeline.unit_of[waited] == before) continue;
        timeline.dependants[waited].push_back(before);
        ++unit.missing;
      }
      timeline.communicator.push_back(program::is_communication(op.action) ? communicator_of(c, op.action) : -1);
    }
  }

  int communicator_of(int c, const program::Action& action) {
    const GroupId group = program::group_of(action);
    if (group < 0) return communicator_of(c, action, classes_.at_peer(c, *program::peer_of(action)), 2);
    const auto [known, fresh] = timelines_[c].communicator_of_group.try_emplace(group);
    if (fresh) {
      const std::vector<int> members = classes_.in_group(c, group);
      known->second = communicator_of(c, action, members.front(), std::ssize(members));
    }
    return known->second;
  }

  int communicator_of(int c, const program::Action& action, int partner, std::ptrdiff_t members) {
    const auto [known, fresh] = communicator_number_.try_emplace(
        program::communicator_of(classes_.set().layout, action, c, partner), static_cast<int>(communicators_.size()));
    if (fresh) communicators_.push_back({static_cast<int>(members), {}});
    return known->second;
  }

  // Called when all that a unit waits for has ended: it starts once the host has issued it.
  void ready(int c, int number) {
    const Unit& unit = timelines_[c].units[number];
    if (unit.issued > now_) {
      events_.push({unit.issued, Event::Kind::issued, c, number, 0});
    } else {
      startable_.emplace_back(c, number);
    }
  }

  void happen(const Event& event) {
    switch (event.kind) {
      case Event::Kind::issued:
        timelines_[event.number].units[event.index].after = -1;
        startable_.emplace_back(event.number, event.index);
        return;
      case Event::Kind::computed:
        if (timelines_[event.number].work[event.index].version != event.version) return;
        std::erase(timelines_[event.number].computing, event.index);
        touch(event.number);
        end(event.number, event.index);
        return;
      case Event::Kind::met:
        if (instances_[event.number].work.version == event.version) end_instance(event.number);
    }
  }

  // Starts everything that can start now, then updates the rates.
  void work_off() {
    while (!startable_.empty()) {
      const auto [c, number] = startable_.back();
      startable_.pop_back();
      const Unit unit = timelines_[c].units[number];
      for (OperationId id = unit.first; id <= unit.last; ++id) {
        // Operations of other streams may lie between those of a fused group.
        if (timelines_[c].unit_of[id] == number) start(c, id, unit.after);
      }
    }
    for (const int c : touched_) {
      timelines_[c].touched = false;
      set_rates(c);
    }
    touched_.clear();
  }

  void touch(int c) {
    if (timelines_[c].touched) return;
    timelines_[c].touched = true;
    touched_.push_back(c);
  }

  void start(int c, OperationId id, OperationId after) {
    OperationTimes& t = times(c, id);
    t.ready = t.start = now_;
    t.after = after;
    RankTimeline& timeline = timelines_[c];
    const Cost& cost = timeline.costs[id];
    if (program::is_communication(operations(c)[id].action)) {
      arrive(c, id);
    } else if (cost.alone == 0) {
      end(c, id);
    } else {
      timeline.work[id] = {static_cast<double>(cost.from_input > 0 ? left_of_pass(c, id) : cost.alone), 0, now_, 0};
      timeline.computing.push_back(id);
      touch(c);
    }
  }

  // Returns the time left to the later of the two ends of an operation that stands for a pass.
  Ticks left_of_pass(int c, OperationId id) {
    const RankTimeline& timeline = timelines_[c];
    const Cost& cost = timeline.costs[id];
    const int before = timeline.units[timeline.unit_of[id]].before;
    const Ticks free = before >= 0 ? times(c, timeline.units[before].last).end : 0;
    Ticks input = 0;
    for (const OperationId waited : operations(c)[id].waits) input = std::max(input, times(c, waited).end);
    return std::max(free + cost.alone, input + cost.from_input) - now_;
  }

  void arrive(int c, OperationId id) {
    RankTimeline& timeline = timelines_[c];
    const bool sends = std::holds_alternative<program::Send>(operations(c)[id].action);
    const int number = timeline.communicator[id];
    Communicator& communicator = communicators_[number];
    const int before = timeline.met[{number, sends}]++;
    while (std::ssize(communicator.instances) <= before) {
      communicator.instances.push_back(static_cast<int>(instances_.size()));
      instances_.emplace_back();
    }
    const int instance_number = communicator.instances[before];
    CollectiveInstance& instance = instances_[instance_number];
    instance.members.emplace_back(c, id);
    timeline.arrived.insert(std::ranges::upper_bound(timeline.arrived, id), id);
    touch(c);
    if (std::ssize(instance.members) < communicator.members) return;
    const Cost& cost = timeline.costs[id];
    for (const auto& [member, operation] : instance.members) {
      OperationTimes& t = times(member, operation);
      t.start = now_;
      t.last_class = c;
      t.last_operation = id;
    }
    if (cost.alone == 0) {
      end_instance(instance_number);
      return;
    }
    instance.work = {static_cast<double>(cost.alone), 0, now_, 0};
    instance.keeps = cost.keeps;
    for (const auto& [member, operation] : instance.members)
      timelines_[member].communicating.push_back(instance_number);
    for (const auto& [member, operation] : instance.members) touch(member);
  }

  void end_instance(int number) {
    const auto members = instances_[number].members;  // a copy: new instances may move them
    for (const auto& [c, id] : members) {
      std::erase(timelines_[c].communicating, number);
      std::erase(timelines_[c].arrived, id);
      touch(c);
    }
    for (const auto& [c, id] : members) end(c, id);
  }

  void end(int c, OperationId id) {
    if (now_ > longest) fail_too_long();
    RankTimeline& timeline = timelines_[c];
    times(c, id).end = step_.length = now_;
    ++ended_[c];
    for (const int dependant : timeline.dependants[id]) release(c, dependant, id);
    Unit& unit = timeline.units[timeline.unit_of[id]];
    if (--unit.running == 0 && unit.next >= 0) release(c, unit.next, id);
  }

  void release(int c, int number, OperationId by) {
    Unit& unit = timelines_[c].units[number];
    unit.after = by;
    if (--unit.missing == 0) ready(c, number);
  }

  void set_rates(int c) {
    RankTimeline& timeline = timelines_[c];
    double left = 1;  // share of the device left to computations
    for (const OperationId id : timeline.arrived) left *= 1 - timeline.costs[id].takes;
    double computing = 0;  // mean number of concurrent computations
    for (const OperationId id : timeline.computing) computing += timeline.costs[id].computing;
    for (const OperationId id : timeline.computing) {
      const double own = timeline.costs[id].computing, rate = left / (1 + computing - own);
      set_rate(timeline.work[id], own < 1 ? 1 / (own / rate + 1 - own) : rate, {0, Event::Kind::computed, c, id, 0});
    }
    for (const int number : timeline.communicating) {
      CollectiveInstance& instance = instances_[number];
      double undisturbed = 1;  // share of the time in which no member computes
      for (const auto& [member, operation] : instance.members) {
        for (const OperationId id : timelines_[member].computing)
          undisturbed *= 1 - timelines_[member].costs[id].computing;
      }
      set_rate(instance.work, (1 - undisturbed) * instance.keeps + undisturbed, {0, Event::Kind::met, number, 0, 0});
    }
  }

  void set_rate(Work& work, double rate, Event end) {
    if (rate == work.rate) return;
    work.settle(now_);
    work.rate = rate;
    end.time = work.end();
    end.version = ++work.version;
    events_.push(end);
  }

  const RankClasses& classes_;
  std::vector<RankTimeline> timelines_;
  std::map<program::Communicator, int> communicator_number_;
  std::vector<Communicator> communicators_;
  std::vector<CollectiveInstance> instances_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::pair<int, int>> startable_;  // class and unit
  std::vector<int> touched_;                    // classes whose rates may have changed
  std::vector<std::ptrdiff_t> ended_;           // operations, by class
  Ticks now_ = 0;
  SimulatedStep step_;
};

}  // namespace

Ticks ticks_of(double seconds) {
  if (!(seconds * ticks_per_second <= static_cast<double>(longest))) fail_too_long();
  return std::llround(seconds * ticks_per_second);
}

SimulatedStep simulate(const RankClasses& classes, const CostOf& cost) {
  return Engine(classes, cost).run();
}

}  // namespace harness::sim
