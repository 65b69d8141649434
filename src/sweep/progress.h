#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace harness::sweep {

/// bar: one line with a bar, rewritten, for a terminal. rounds: a line per round, for a file. blocks: a line per block.
/// none: warnings alone.
enum class ProgressStyle : std::uint8_t { bar, rounds, blocks, none };

/// Shows the progress of a sweep. A sweep has phases; the remaining time is estimated from the current phase alone.
class ProgressLine {
 public:
  /// `width`: columns of the terminal that a bar is drawn on.
  ProgressLine(std::ostream& err, ProgressStyle style, std::size_t width = 80)
      : err_(err), style_(style), width_(width) {}

  /// A line that stays.
  void say(const std::string& text);
  /// What a user must know whatever the style: the code that will run, nodes that are not healthy. It may have several
  /// lines.
  void warn(const std::string& text);
  /// What is being done now: on a terminal the next progress replaces it.
  void announce(const std::string& text);
  /// A phase of `total` pieces begins, of which `done` were done in an earlier session. `name`: what a file is told
  /// when the last piece has ended; "": nothing, because its rounds are told.
  void start_phase(const std::string& name, std::size_t total, std::size_t done = 0);
  /// The next piece begins; `what` describes it, `brief` where space is short ("": the same).
  void begin(const std::string& what, const std::string& brief = "");
  /// The piece ended with `outcome`. An end() without a new begin() is another attempt at the same piece.
  void end(const std::string& outcome);
  /// The piece needed no work: it is over without an outcome.
  void skip();
  /// A round ended; `settled`: what is known of the cases by then.
  void end_round(int round, int rounds, const std::string& settled);
  /// Nothing follows: the result may be printed.
  void finish();
  /// How long the rest of the phase takes from now, where that is known better than by the mean of its pieces so far.
  void expect(double remaining_s) { remaining_s_ = remaining_s; }

 private:
  std::string clock() const;
  std::optional<double> remaining() const;
  void draw();
  void erase();

  std::ostream& err_;
  ProgressStyle style_;
  std::size_t width_;
  std::string phase_;          // its name
  std::string title_, brief_;  // of the current piece
  bool running_ = false, drawn_ = false;
  std::size_t begun_ = 0, total_ = 0;
  double remaining_s_ = -1;   // as expected after the last piece; below 0: not said
  std::size_t measured_ = 0;  // pieces of this phase that took time
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), phase_start_ = start_;
};

}  // namespace harness::sweep
