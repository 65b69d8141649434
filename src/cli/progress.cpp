#include "cli/progress.h"

#include <cmath>
#include <ostream>

#include "base/error.h"

namespace harness {
namespace {

std::string minutes(double seconds) {
  const auto s = std::lround(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

void ProgressLine::say(const std::string& text) {
  if (terminal_ && !open_.empty()) err_ << "\r\033[K";
  err_ << text << "\n" << std::flush;
}

std::string ProgressLine::clock(int done, int total) const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string text = "elapsed " + minutes(elapsed);
  if (done > first_done_) text += ", remaining about " + minutes(elapsed / (done - first_done_) * (total - done));
  return text;
}

void ProgressLine::begin(int done, int total, const std::string& what) {
  if (first_done_ < 0) {
    first_done_ = done;
    start_ = std::chrono::steady_clock::now();
  }
  done_ = done;
  total_ = total;
  open_ = fmt::format("[{}/{}] {}", done + 1, total, what);
  if (terminal_) err_ << "\r\033[K" << open_ << " … " << clock(done, total) << std::flush;
}

void ProgressLine::end(const std::string& outcome) {
  if (terminal_) err_ << "\r\033[K";
  const bool last = done_ + 1 == total_;
  // On a terminal only the present block matters; what failed stays to be read.
  if (!terminal_ || last || outcome.starts_with("failed")) {
    err_ << open_ << ": " << outcome << "  (" << clock(done_ + 1, total_) << ")\n" << std::flush;
  }
  open_.clear();
}

}  // namespace harness
