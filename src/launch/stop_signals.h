#pragma once

namespace harness {

/// Counts SIGINT and SIGTERM from now on instead of dying of them; SIGPIPE is ignored.
void count_stop_signals();
/// How many came so far.
int stop_signals();
/// Seconds since the first SIGTERM; negative if there was none.
double seconds_since_sigterm();

}  // namespace harness
