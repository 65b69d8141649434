#include "sweep/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace harness::sweep {
namespace {

using Clock = std::chrono::steady_clock;

std::string minutes(double seconds) {
  const auto s = std::lround(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

// Cuts the text to at most `columns` columns.
std::string cut(const std::string& text, std::size_t columns) {
  std::size_t end = 0, shown = 0;
  for (; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++shown == columns + 1) break;
  }
  if (end == text.size()) return text;
  while (end > 0 && continues_character(text[end - 1])) --end;
  return text.substr(0, end > 0 ? end - 1 : 0) + "…";
}

}  // namespace

void ProgressLine::erase() {
  if (std::exchange(drawn_, false)) err_ << "\r\033[K";
}

void ProgressLine::say(const std::string& text) {
  if (style_ != ProgressStyle::none) warn(escaped(text));
}

void ProgressLine::warn(const std::string& text) {
  erase();
  err_ << escaped_lines(text) << "\n" << std::flush;
}

void ProgressLine::announce(const std::string& text) {
  if (style_ != ProgressStyle::bar) return say(text);
  erase();
  err_ << cut(escaped(text), width_ - 1) << std::flush;
  drawn_ = true;
}

std::optional<double> ProgressLine::remaining() const {
  if (remaining_s_ >= 0) return remaining_s_;
  if (measured_ == 0) return std::nullopt;
  const double each_s = seconds_since(phase_start_) / static_cast<double>(measured_);
  return each_s * static_cast<double>(total_ - begun_ + (running_ ? 1 : 0));
}

std::string ProgressLine::clock() const {
  const std::string text = "elapsed " + minutes(seconds_since(start_));
  const std::optional<double> rest_s = remaining();
  return rest_s ? text + ", remaining about " + minutes(*rest_s) : text;
}

// "[=====     ] 27/108  round 3/12 micro_batch_size=4  0:42, about 7:54 left"
void ProgressLine::draw() {
  constexpr std::size_t bar_width = 20, gaps = 6;
  const std::optional<double> rest_s = remaining();
  const std::string counts = fmt::format("{}/{}", begun_, total_);
  std::string time = minutes(seconds_since(start_));
  if (rest_s) time += fmt::format(", about {} left", minutes(*rest_s));
  const std::size_t done = std::min(begun_ - (running_ ? 1 : 0), total_);
  const std::size_t filled = total_ > 0 ? done * bar_width / total_ : 0;
  const std::size_t taken = bar_width + 2 + counts.size() + time.size() + gaps;
  erase();
  err_ << "[" << std::string(filled, '=') << std::string(bar_width - filled, ' ') << "] " << counts << "  "
       << (width_ > taken ? cut(brief_, width_ - taken) + "  " : "") << time << std::flush;
  drawn_ = true;
}

void ProgressLine::start_phase(const std::string& name, std::size_t total, std::size_t done) {
  phase_ = name;
  total_ = total;
  begun_ = done;
  measured_ = 0;
  remaining_s_ = -1;
  phase_start_ = Clock::now();
}

void ProgressLine::begin(const std::string& what, const std::string& brief) {
  ++begun_;
  running_ = true;
  title_ = escaped(what);
  brief_ = brief.empty() ? title_ : escaped(brief);
  if (style_ == ProgressStyle::bar) draw();
}

void ProgressLine::skip() {
  running_ = false;
  if (style_ != ProgressStyle::rounds || begun_ < total_ || phase_.empty()) return;
  say(fmt::format("{}: {} of {}  ({})", phase_, begun_, total_, clock()));
}

void ProgressLine::end(const std::string& outcome) {
  ++measured_;
  running_ = false;
  // In this style every piece has a line of its own; failures are printed in every style.
  if (style_ == ProgressStyle::blocks || outcome.starts_with("failed"))
    say(fmt::format("[{}/{}] {}: {}  ({})", begun_, total_, title_, outcome, clock()));
  if (style_ == ProgressStyle::bar) draw();
  skip();
}

void ProgressLine::end_round(int round, int rounds, const std::string& settled) {
  if (style_ != ProgressStyle::rounds && style_ != ProgressStyle::blocks) return;
  say(fmt::format("round {}/{}: {} of {} blocks{}{}  ({})", round, rounds, begun_, total_, settled.empty() ? "" : ", ",
                  settled, clock()));
}

void ProgressLine::finish() {
  erase();
  if (style_ == ProgressStyle::rounds || style_ == ProgressStyle::blocks) err_ << "\n";
  err_ << std::flush;
}

}  // namespace harness::sweep
