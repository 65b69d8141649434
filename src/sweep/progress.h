#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace harness::sweep {

/// bar: one line that is rewritten, for a terminal. rounds: a line per round, for a file. blocks: a line per block.
/// none: only warnings.
enum class ProgressStyle : std::uint8_t { bar, rounds, blocks, none };

/// Shows the progress of a sweep. The remaining time is estimated for the current phase alone.
class ProgressLine {
 public:
  /// `width`: columns of the terminal for the bar.
  ProgressLine(std::ostream& err, ProgressStyle style, std::size_t width = 80)
      : err_(err), style_(style), width_(width) {}
  /// Erases the bar, so that the message of an error does not continue its line.
  ~ProgressLine() { erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Prints a line that stays.
  void say(const std::string& text);
  /// Prints a message in every style: code that will run, nodes that are not healthy. May have several lines.
  void warn(const std::string& text);
  /// Announces the current activity; on a terminal the next progress replaces it.
  void announce(const std::string& text);
  /// Begins a phase of `total` pieces, `done` of them from an earlier session. `name`: reported to a file when the last
  /// piece ends; "": not reported, because its rounds are.
  void start_phase(const std::string& name, std::size_t total, std::size_t done = 0);
  /// Begins the next piece. `what` describes it; `brief` is a shorter text ("": the same).
  void begin(const std::string& what, const std::string& brief = "");
  /// Ends the piece with `outcome`. An end() without a new begin() is another attempt at the same piece.
  void end(const std::string& outcome);
  /// Ends the piece without an outcome, because it needed no work.
  void skip();
  /// Ends a round; `settled`: which cases are settled by then.
  void end_round(int round, int rounds, const std::string& settled);
  /// Ends the progress, so that the result can be printed.
  void finish();
  /// Sets the remaining time of the phase, if known better than from the mean of its pieces.
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
  double remaining_s_ = -1;   // expected after the last piece; below 0: not set
  std::size_t measured_ = 0;  // pieces of this phase that took time
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), phase_start_ = start_;
};

}  // namespace harness::sweep
