#pragma once

#include <functional>
#include <iosfwd>

#include "cli/verbs.h"

namespace harness::cli {

/// Prints what `show` prints of the file as it is now. Returns its exit code.
int show_once(const ShowOptions& options, std::ostream& out);

/// `show --follow`: prints the table and how far the sweep is, again after each finished round, until the file says
/// that the sweep is complete or was stopped; then the exit code of show(). `wait` passes the time between two looks at
/// the file. `redraw`: `out` is a terminal, whose screen shows the table of now alone. Throws Error if the file cannot
/// be read. A line on `err` says whether the sweep runs or was killed, where this machine can know it
/// (store::standing_of), and it goes on looking. Elsewhere, a line says after five minutes that no block came.
int follow(const ShowOptions& options, std::ostream& out, std::ostream& err, const std::function<void()>& wait,
           bool redraw = false);

}  // namespace harness::cli
