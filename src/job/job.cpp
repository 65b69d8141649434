#include "job/job.h"

#include <signal.h>
#include <time.h>

namespace harness::job {

std::map<int, NodeGpus> gpus_by_node(const std::vector<RankPlace>& places) {
  std::map<int, NodeGpus> nodes;
  for (const RankPlace& place : places) {
    NodeGpus& node = nodes[place.node];
    node.host = place.host;
    ++node.ranks;
    node.unknown = node.unknown || place.gpus.count < 0;
    node.blind_rank = node.blind_rank || place.gpus.count == 0;
    node.gpus.insert(place.gpus.names.begin(), place.gpus.names.end());
  }
  return nodes;
}

namespace {

volatile sig_atomic_t count = 0;
volatile sig_atomic_t terminated = 0;
timespec first_sigterm{};  // written before `terminated`, once
timespec last_counted{};   // used by the handler alone

// One Ctrl-C may arrive twice, from the terminal and forwarded by the launcher. Signals within this time count as one.
constexpr double same_request_s = 0.25;

double seconds_between(const timespec& a, const timespec& b) {
  return static_cast<double>(b.tv_sec - a.tv_sec) + 1e-9 * static_cast<double>(b.tv_nsec - a.tv_nsec);
}

void on_signal(int number) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (number == SIGTERM && terminated == 0) {
    first_sigterm = now;
    terminated = 1;
  }
  if (count > 0 && seconds_between(last_counted, now) < same_request_s) return;
  last_counted = now;
  count = count + 1;
}

}  // namespace

void count_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // sleeps and polls end early all the same; files are written as if nothing happened
  ::sigemptyset(&action.sa_mask);
  for (const int number : stop_numbers) ::sigaddset(&action.sa_mask, number);
  for (const int number : stop_numbers) ::sigaction(number, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int stop_signals() {
  return count;
}

double seconds_since_sigterm() {
  if (terminated == 0) return -1;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return seconds_between(first_sigterm, now);
}

}  // namespace harness::job
