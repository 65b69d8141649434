#include "cli/follow.h"

#include <filesystem>
#include <optional>
#include <ostream>

#include "analysis/how_far.h"
#include "base/error.h"
#include "base/units.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

constexpr std::string_view clear_screen = "\x1b[H\x1b[2J";
constexpr int looks_without_news = 150;  // at two seconds each, five minutes

std::optional<std::filesystem::file_time_type> modified(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? std::nullopt : std::optional(time);
}

std::string progress_line(const store::Result& result, const analysis::HowFar& far) {
  const char* state = result.state == store::RunState::complete ? "Complete" : "Stopped";
  std::string line =
      fmt::format("{}: {} of {} rounds, {} of {} blocks", result.state == store::RunState::running ? "Running" : state,
                  far.rounds_done, far.rounds, far.blocks_done, far.blocks);
  if (result.state == store::RunState::running && far.remaining_s) {
    line += fmt::format("; about {} left", show_seconds(*far.remaining_s));
  }
  return line + ".";
}

}  // namespace

int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw) {
  std::optional<std::filesystem::file_time_type> known;
  int rounds_shown = -1, quiet = 0;
  for (;; wait()) {
    const auto now = modified(options.files.at(0));
    if (now && known && *now == *known) {
      if (++quiet == looks_without_news) {
        err << "no new block for five minutes: the sweep may have been killed. Ctrl-C ends this.\n" << std::flush;
      }
      continue;
    }
    quiet = 0;
    known = now;
    const store::Result result = store::read_result(options.files.at(0), {.rank_seconds = false, .timeline = false});
    const analysis::HowFar far = analysis::how_far(result);
    const bool running = result.state == store::RunState::running;
    if (running && far.rounds_done == rounds_shown) continue;
    if (redraw) {
      out << clear_screen;
    } else if (rounds_shown >= 0) {
      out << "\n";
    }
    rounds_shown = far.rounds_done;
    out << progress_line(result, far) << "\n";
    const int code = show_once(options, out);
    out << std::flush;
    if (!running || !out) return code;
  }
}

}  // namespace harness::cli
