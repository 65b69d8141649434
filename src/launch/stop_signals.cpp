#include "launch/stop_signals.h"

#include <signal.h>
#include <time.h>

namespace harness {
namespace {

volatile sig_atomic_t count = 0;
volatile sig_atomic_t terminated = 0;
timespec first_sigterm{};  // written before `terminated`, once

void on_signal(int number) {
  count = count + 1;
  if (number == SIGTERM && terminated == 0) {
    ::clock_gettime(CLOCK_MONOTONIC, &first_sigterm);
    terminated = 1;
  }
}

}  // namespace

void count_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // sleeps and polls end early all the same; files are written as if nothing happened
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int stop_signals() { return count; }

double seconds_since_sigterm() {
  if (terminated == 0) return -1;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - first_sigterm.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec - first_sigterm.tv_nsec);
}

}  // namespace harness
