#pragma once

namespace harness::launch {

/// From now on SIGINT and SIGTERM are counted and do not end the process; SIGPIPE is ignored.
void count_stop_signals();
/// The number received so far.
int stop_signals();
/// Seconds since the first SIGTERM; negative if there was none.
double seconds_since_sigterm();

}  // namespace harness::launch
