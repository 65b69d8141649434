#include "job/job.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace harness::job {

GpuShortage gpu_shortage(const std::vector<RankPlace>& places) {
  struct Node {
    std::string host;
    int ranks = 0;
    bool unknown = false, blind = false;
    std::set<std::string> gpus;  // union over its ranks
  };
  std::map<int, Node> nodes;
  for (const RankPlace& place : places) {
    Node& node = nodes[place.node];
    node.host = place.host;
    ++node.ranks;
    node.unknown = node.unknown || place.gpus.count < 0;
    node.blind = node.blind || place.gpus.count == 0;
    node.gpus.insert(place.gpus.names.begin(), place.gpus.names.end());
  }
  GpuShortage found;
  for (const auto& [number, node] : nodes) {
    const auto gpus = std::ssize(node.gpus);
    if (node.unknown) continue;
    if (node.blind) {
      found.blind.push_back(node.host);
    } else if (node.ranks > gpus) {
      found.crowded.push_back(
          fmt::format("{} has {} and {}", node.host, plural(node.ranks, "rank"), plural(gpus, "GPU")));
    }
  }
  return found;
}

namespace {

constexpr std::size_t max_communication_durations = 1 << 26;  // of all ranks; 256 MiB

std::vector<KindTotal> totals_of(const program::Program& program, const std::vector<program::Interval>& intervals) {
  std::map<std::pair<std::string_view, program::StreamId>, KindTotal> by_kind;
  program::OperationId before = -1;
  for (const program::Interval& interval : intervals) {
    const program::Operation& operation = program.step.at(interval.operation);
    KindTotal& total = by_kind[{program::name_of(operation.action), interval.stream}];
    total.seconds += interval.end_s - interval.start_s;
    if (interval.operation != before) ++total.operations;
    before = interval.operation;
  }
  std::vector<KindTotal> totals;
  for (auto& [key, total] : by_kind) {
    total.kind = key.first;
    total.stream = program.streams.at(key.second);
    totals.push_back(std::move(total));
  }
  return totals;
}

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

ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks) {
  ProfiledStep samples;
  for (const program::Interval& interval : intervals) samples.step_s = std::max(samples.step_s, interval.end_s);
  samples.totals = totals_of(program, intervals);
  samples.communication_s = program::communication_durations(program, intervals);
  if (samples.communication_s.size() * ranks > max_communication_durations) samples.communication_s.clear();
  const auto communicates = [&](program::OperationId id) {
    return program::is_communication(program.step.at(id).action);
  };
  samples.split = program::split_step(intervals, communicates, samples.step_s);
  return samples;
}

void choose_step(TimelineSamples& samples, std::span<const double> step_s) {
  if (step_s.empty() || samples.offered.size() != step_s.size())
    fail("a worker offers {} profiled steps; {} were wanted", samples.offered.size(), step_s.size());
  std::vector<std::size_t> order(step_s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t step) { return step_s[step]; });
  static_cast<ProfiledStep&>(samples) = std::move(samples.offered[order[(order.size() - 1) / 2]]);
  samples.offered.clear();
}

void count_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // sleeps and polls still end early; file writes are restarted
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
