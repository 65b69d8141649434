#pragma once

#include <array>
#include <csignal>

namespace harness::job {

/// The signals that ask a sweep to stop. mpirun passes SIGUSR1 and SIGUSR2 on at once, and Slurm sends one with
/// --signal.
inline constexpr std::array<int, 4> stop_numbers{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

/// Counts stop signals from now on, instead of letting them end the process. Ignores SIGPIPE.
void count_stop_signals();
/// The number received so far.
int stop_signals();
/// Seconds since the first SIGTERM; negative if there was none.
double seconds_since_sigterm();

}  // namespace harness::job
