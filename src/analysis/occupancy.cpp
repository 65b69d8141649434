#include "analysis/occupancy.h"

#include <algorithm>
#include <set>
#include <utility>

namespace harness::analysis {
namespace {

struct Event {
  double at_s;
  bool begins;
  std::size_t who;
};

std::vector<Event> events_of(std::span<const Occupant> occupants, double step_s) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < occupants.size(); ++i) {
    const double start = std::max(occupants[i].start_s, 0.0), end = std::min(occupants[i].end_s, step_s);
    if (!(start < end)) continue;  // NaN too
    events.push_back({start, true, i});
    events.push_back({end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.at_s, a.begins) < std::pair(b.at_s, b.begins);  // ends first
  });
  return events;
}

}  // namespace

Occupancy occupy(std::span<const Occupant> occupants, double step_s) {
  Occupancy result;
  result.owned_s.assign(occupants.size(), 0);
  result.hidden_s.assign(occupants.size(), 0);
  std::set<std::pair<int, std::size_t>> running;
  std::optional<std::size_t> last;
  double now = 0;
  const auto advance = [&](double to) {
    if (to <= now) return;
    if (running.empty()) {
      result.gaps.push_back({now, to, last, std::nullopt});
    } else {
      last = running.begin()->second;
      result.owned_s[*last] += to - now;
      if (occupants[*last].hides) {
        for (const auto& [priority, who] : running) {
          if (priority > running.begin()->first) result.hidden_s[who] += to - now;
        }
      }
    }
    now = to;
  };
  for (const Event& event : events_of(occupants, step_s)) {
    const bool ends_gap = running.empty() && event.at_s > now;
    advance(event.at_s);
    if (ends_gap) result.gaps.back().after = event.who;
    const std::pair key(occupants[event.who].priority, event.who);
    if (event.begins) {
      running.insert(key);
    } else {
      running.erase(key);
    }
  }
  advance(step_s);
  return result;
}

}  // namespace harness::analysis
