#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>

#include "analysis/summary.h"
#include "machine/conditions.h"
#include "store/result.h"

namespace harness::sweep {

/// Shows the progress of a sweep: one line that is rewritten on a terminal, separate lines elsewhere. A sweep has
/// phases; the remaining time is estimated from the current phase alone.
class ProgressLine {
 public:
  ProgressLine(std::ostream& err, bool terminal) : err_(err), terminal_(terminal) {}

  /// A line that stays.
  void say(const std::string& text);
  /// A phase of `total` pieces begins, of which `done` were done in an earlier session.
  void start_phase(std::size_t total, std::size_t done = 0);
  /// The next piece begins; `what` describes it.
  void begin(const std::string& what);
  /// The piece ended with `outcome`. An end() without a new begin() is another attempt at the same piece.
  void end(const std::string& outcome);
  /// The piece needed no work.
  void skip();
  /// How long the rest of the phase takes from now, where that is known better than by the mean of its pieces so far.
  void expect(double remaining_s) { remaining_s_ = remaining_s; }

 private:
  std::string clock() const;

  std::ostream& err_;
  bool terminal_;
  std::string title_;  // of the current piece
  bool running_ = false;
  std::size_t begun_ = 0, total_ = 0;
  double remaining_s_ = -1;   // as expected after the last piece; below 0: not said
  std::size_t measured_ = 0;  // pieces of this phase that took time
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), phase_start_ = start_;
};

/// The state of a sweep after its first `rounds` rounds, for a user who waits: the settled cases with the numbers of
/// their verdicts, and the open ones from the fastest on with what their change could still be, which is no verdict.
/// `summary` is that of `result`. "" if nothing can be said.
std::string first_answer(const store::Result& result, const analysis::Summary& summary, int rounds);

/// A warning for a user who starts a sweep on a machine that others use: processes besides the job's own kept more than
/// 10 % of a node's cores busy, or its host gave more than 2 % of its CPU time to other guests. "" on a quiet machine,
/// and where the kernel does not tell.
std::string busy_machine(const machine::Conditions& conditions);

}  // namespace harness::sweep
