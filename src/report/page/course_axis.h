#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/level_course.h"

namespace harness::page {

/// Wall-clock time along a drawing's width: the sessions side by side in their own time, with a gap between them in
/// place of the hours that nobody measured in.
class CourseAxis {
 public:
  struct Tick {
    double x = 0;
    std::string label;  // "14:30"
  };

  /// Blocks by session, within a session by time; one at least.
  explicit CourseAxis(const std::vector<analysis::CourseBlock>& blocks);

  /// The place of a time within a session, 0 to 1.
  double at(std::int32_t session, double unix_s) const;
  std::vector<Tick> ticks() const;
  /// Where one session ends and the next begins.
  std::vector<double> borders() const;

 private:
  struct Session {
    std::int32_t session = 0;
    double first_s = 0, last_s = 0;
    double offset_s = 0;  // on the drawing
  };

  double place(double drawn_s) const;

  std::vector<Session> sessions_;
  double gap_s_ = 0, whole_s_ = 0;
};

}  // namespace harness::page
