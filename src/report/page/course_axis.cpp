#include "report/page/course_axis.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace harness::page {
namespace {

constexpr double margin = 0.02, gap_share = 0.03;

// The distance of ticks: at most about eight of them.
double tick_distance_s(double range_s) {
  constexpr double distances[] = {1, 5, 10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
  for (const double distance : distances) {
    if (range_s / distance <= 8) return distance;
  }
  return 86400 * std::ceil(range_s / 8 / 86400);
}

}  // namespace

CourseAxis::CourseAxis(const std::vector<analysis::CourseBlock>& blocks) {
  for (const analysis::CourseBlock& block : blocks) {
    if (sessions_.empty() || sessions_.back().session != block.session)
      sessions_.push_back({block.session, block.time_unix_s, block.time_unix_s, 0});
    sessions_.back().last_s = block.time_unix_s;
  }
  for (const Session& session : sessions_) whole_s_ += session.last_s - session.first_s;
  gap_s_ = gap_share * whole_s_;
  double offset_s = 0;
  for (Session& session : sessions_) {
    session.offset_s = offset_s;
    offset_s += session.last_s - session.first_s + gap_s_;
  }
  whole_s_ = offset_s - gap_s_;
}

double CourseAxis::place(double drawn_s) const {
  return whole_s_ > 0 ? margin + (1 - 2 * margin) * drawn_s / whole_s_ : 0.5;
}

double CourseAxis::at(std::int32_t session, double unix_s) const {
  const auto found = std::ranges::find(sessions_, session, &Session::session);
  if (found == sessions_.end()) return 0;
  return place(found->offset_s + std::clamp(unix_s, found->first_s, found->last_s) - found->first_s);
}

std::vector<CourseAxis::Tick> CourseAxis::ticks() const {
  constexpr int most = 20;  // of a session
  const double distance = tick_distance_s(whole_s_);
  std::vector<Tick> ticks;
  for (const Session& session : sessions_) {
    double time = distance * std::ceil(session.first_s / distance);
    for (int i = 0; i < most && time <= session.last_s; ++i, time += distance)
      ticks.push_back({at(session.session, time), clock_text(time, distance < 60)});
  }
  return ticks;
}

std::vector<double> CourseAxis::borders() const {
  std::vector<double> borders;
  for (std::size_t i = 1; i < sessions_.size(); ++i) borders.push_back(place(sessions_[i].offset_s - gap_s_ / 2));
  return borders;
}

}  // namespace harness::page
