#include "sweep/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "analysis/looks.h"
#include "analysis/summary.h"
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

namespace {

constexpr std::size_t max_shown = 8;

std::string change_text(double ratio) {
  const double change = 100 * (ratio - 1);
  return std::abs(change) < 1000 ? fmt::format("{:+.1f} %", change) : fmt::format("x{:.3g}", ratio);
}

std::string range_text(double low, double high) {
  const bool known = std::isfinite(low) && std::isfinite(high);
  return known ? fmt::format("[{}, {}]", change_text(low), change_text(high)) : "[not known yet]";
}

std::string line_of(double ratio, double low, double high, const std::string& what) {
  return fmt::format("\n  {:>9}  {:<22}  {}", change_text(ratio), range_text(low, high), what);
}

// Cases are compared by the time for the same work.
std::string what_is_compared(const store::Result& result) {
  const auto other_batch = [&](const store::ResultCase& other) {
    return other.tokens_per_step > 0 && other.tokens_per_step != result.cases.front().tokens_per_step;
  };
  return std::ranges::any_of(result.cases, other_batch) ? "time per token" : "step time";
}

}  // namespace

std::string first_answer(const store::Result& result, const analysis::Summary& summary, int rounds) {
  if (analysis::sweeps_sizes_alone(result)) return "";
  const auto settled = [&](std::int32_t case_index) { return summary.case_at(case_index).settled_after > 0; };
  std::string of_settled, of_open;
  std::size_t shown = 0, more = 0;
  for (const analysis::Standing& standing : analysis::standings_of(result)) {
    const analysis::CaseSummary& row = summary.at(standing);
    if (settled(standing.case_index)) {
      of_settled += line_of(
          row.effect->ratio, row.effect->low, row.effect->high,
          fmt::format("{}: {} by the look after round {}", row.name, name_of(row.effect->verdict), row.settled_after));
    } else if (shown < max_shown) {
      of_open += line_of(standing.ratio, standing.low, standing.high, row.name);
      ++shown;
    } else {
      ++more;
    }
  }
  if (of_settled.empty() && of_open.empty()) return "";
  if (more > 0) of_open += fmt::format("\n  … and {} slower ones", more);
  std::string text = fmt::format("after round {} of {}, ", rounds, result.rounds);
  const std::string time = what_is_compared(result);
  if (!of_settled.empty()) text += fmt::format("settled (change of the {}, and measured no more):", time) + of_settled;
  if (!of_settled.empty() && !of_open.empty()) text += "\nand ";
  if (!of_open.empty()) {
    text += fmt::format("no verdict yet: {} against the baseline, and what it could still be", time) + of_open;
  }
  return text;
}

std::string busy_machine(const machine::Conditions& conditions) {
  constexpr double busy_share = 0.1, much_stolen = 0.02;
  std::string what;
  if (conditions.foreign_cores > busy_share * conditions.cores) {
    what = fmt::format("other processes keep {:.1f} of {} cores busy on {}", conditions.foreign_cores, conditions.cores,
                       conditions.busiest_host);
  }
  if (conditions.steal_share > much_stolen) {
    if (!what.empty()) what += ", and ";
    what += fmt::format("its host gives {:.0f} % of its CPU time to other guests", 100 * conditions.steal_share);
  }
  if (what.empty()) return "";
  return fmt::format("this machine is busy: {}; verdicts will be less sharp", what);
}

}  // namespace harness::sweep
