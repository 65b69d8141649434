#include "cli/follow.h"

#include <filesystem>
#include <optional>
#include <ostream>
#include <utility>

#include "analysis/blocks.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/clean_stream.h"
#include "store/lock.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

const TerminalText clear_screen{"\x1b[H\x1b[2J"};
constexpr int looks_without_news = 150;  // at two seconds each, five minutes

std::optional<std::filesystem::file_time_type> modified(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? std::nullopt : std::optional(time);
}

const char* state_word(const store::Result& result, store::Process writer) {
  if (result.state == store::RunState::complete) return "Complete";
  if (result.state == store::RunState::partial) return "Stopped";
  if (writer == store::Process::runs) return "Running";
  return writer == store::Process::gone ? "Killed" : "Unfinished";
}

std::string progress_line(const store::Result& result, const analysis::HowFar& far, store::Process writer) {
  std::string line = fmt::format("{}: {} of {} rounds, {} of {} blocks", state_word(result, writer), far.rounds_done,
                                 far.rounds, far.blocks_done, far.blocks);
  if (result.state == store::RunState::running && writer != store::Process::gone && far.remaining_s) {
    line += fmt::format("; about {} left", show_seconds(*far.remaining_s));
  }
  return line + ".";
}

void say_standing(const store::Standing& standing, std::ostream& err) {
  if (standing.writer == store::Process::runs) err << standing.text << "\n" << std::flush;
  if (standing.writer != store::Process::gone) return;
  err << standing.text << "; `harness sweep --resume` continues the file. Ctrl-C ends this.\n" << std::flush;
}

}  // namespace

int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw) {
  std::optional<std::filesystem::file_time_type> known;
  int rounds_shown = -1, quiet = 0;
  store::Process writer = store::Process::unknown;
  for (;; wait()) {
    const store::Standing standing = store::standing_of(options.files.at(0));
    const bool is_news = std::exchange(writer, standing.writer) != standing.writer;
    const auto now = modified(options.files.at(0));
    if (now && known && *now == *known) {
      if (is_news) say_standing(standing, err);
      if (++quiet == looks_without_news && writer == store::Process::unknown) {
        err << "no new block for five minutes: the sweep may have been killed; " << standing.text
            << ". Ctrl-C ends this.\n"
            << std::flush;
      }
      continue;
    }
    quiet = 0;
    known = now;
    const store::Result result = store::read_result(options.files.at(0), {.timeline = false});
    const analysis::HowFar far = analysis::how_far(result);
    const bool running = result.state == store::RunState::running;
    if (is_news && running) say_standing(standing, err);
    if (running && far.rounds_done == rounds_shown) continue;
    if (redraw) {
      out << clear_screen;
    } else if (rounds_shown >= 0) {
      out << "\n";
    }
    rounds_shown = far.rounds_done;
    out << progress_line(result, far, writer) << "\n";
    const int code = show_once(options, out);
    out << std::flush;
    if (!running || !out) return code;
  }
}

}  // namespace harness::cli
