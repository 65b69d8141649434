#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

namespace harness {

/// Tells a person how far a sweep is: one line that renews itself on a terminal, single lines elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::ostream& err, bool terminal) : err_(err), terminal_(terminal) {}

  /// A line that stays.
  void say(const std::string& text);
  /// Block `done` of `total` begins: what it is.
  void begin(int done, int total, const std::string& what);
  /// It ended: what came out.
  void end(const std::string& outcome);

 private:
  std::string clock(int done, int total) const;

  std::ostream& err_;
  bool terminal_;
  std::string open_;
  int done_ = 0, total_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int first_done_ = -1;
};

}  // namespace harness
