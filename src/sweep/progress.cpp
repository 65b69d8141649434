#include "sweep/progress.h"

#include <cmath>
#include <ostream>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace harness::sweep {
namespace {

using Clock = std::chrono::steady_clock;

std::string minutes(double seconds) {
  const auto s = std::lround(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

void ProgressLine::say(const std::string& text) {
  if (terminal_ && running_) err_ << "\r\033[K";
  err_ << escaped_lines(text) << "\n" << std::flush;
}

std::string ProgressLine::clock() const {
  std::string text = "elapsed " + minutes(seconds_since(start_));
  if (remaining_s_ >= 0) return text + ", remaining about " + minutes(remaining_s_);
  if (measured_ == 0) return text;
  const double each_s = seconds_since(phase_start_) / static_cast<double>(measured_);
  const std::size_t left = total_ - begun_ + (running_ ? 1 : 0);
  return text + ", remaining about " + minutes(each_s * static_cast<double>(left));
}

void ProgressLine::start_phase(std::size_t total, std::size_t done) {
  total_ = total;
  begun_ = done;
  measured_ = 0;
  remaining_s_ = -1;
  phase_start_ = Clock::now();
}

void ProgressLine::begin(const std::string& what) {
  ++begun_;
  running_ = true;
  title_ = fmt::format("[{}/{}] {}", begun_, total_, escaped(what));
  if (terminal_) err_ << "\r\033[K" << title_ << " … " << clock() << std::flush;
}

void ProgressLine::skip() {
  running_ = false;
  if (terminal_) err_ << "\r\033[K" << std::flush;
}

void ProgressLine::end(const std::string& outcome) {
  running_ = false;
  ++measured_;
  if (terminal_) err_ << "\r\033[K";
  // On a terminal only the present piece matters; what failed stays to be read.
  if (terminal_ && begun_ < total_ && !outcome.starts_with("failed")) return;
  err_ << title_ << ": " << escaped_lines(outcome) << "  (" << clock() << ")\n" << std::flush;
}

}  // namespace harness::sweep
