#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/median.h"
#include "base/part.h"
#include "calibrate/calibrate.h"
#include "program/count.h"

namespace harness::calibrate {
namespace {

using config::Precision;

// Operations of one kind, label and phase do the same work.
using Alike = std::tuple<std::string_view, std::string_view, program::Phase>;
Alike alike(const program::Operation& op) {
  return {program::name_of(op.action), op.label.what, op.label.phase};
}

double share_covered(const program::Interval& interval, const std::vector<Stretch>& by) {
  double covered = 0;
  for (const Stretch& s : by)
    covered += std::max(0.0, std::min(s.end_s, interval.end_s) - std::max(s.start_s, interval.start_s));
  return covered / std::max(interval.end_s - interval.start_s, 1e-12);
}

std::vector<Stretch> stretches_of(const ProfiledStep& step, bool communications) {
  std::vector<Stretch> found;
  for (const program::Interval& i : step.intervals) {
    if (program::is_communication(step.program.step[i.operation].action) == communications && i.end_s > i.start_s)
      found.push_back({i.start_s, i.end_s});
  }
  return united(std::move(found));
}

}  // namespace

void StepSamples::take_computations(const ProfiledStep& step, Precision precision) {
  constexpr double hardly = 0.1, mostly = 0.8;
  const std::vector<Stretch> communicating = stretches_of(step, true), computing = stretches_of(step, false);
  std::map<Alike, std::pair<Samples, Samples>> seconds;  // alone, beside
  for (program::OperationId id = 0; std::cmp_less(id, step.program.step.size()); ++id) {
    const program::Operation& op = step.program.step[id];
    const program::Interval& interval = step.intervals[id];
    if (!program::is_communication(op.action)) {
      const double covered = share_covered(interval, communicating);
      if (covered > mostly) seconds[alike(op)].second.push_back(step.seconds(id));
      if (covered > hardly) continue;
      seconds[alike(op)].first.push_back(step.seconds(id));
      if (program::is_unfused_attention(op.action)) continue;  // unfused attention takes other time for the same work
      const double work = program::work_of(step.program, op.action);
      if (work > 0)
        computations_[{precision, std::string(program::name_of(op.action)), work}].push_back(step.seconds(id));
    } else if (std::holds_alternative<program::AllReduce>(op.action) && share_covered(interval, computing) > mostly) {
      busy_communications_[program::message_bytes(step.program, op.action)].push_back(step.seconds(id));
    }
  }
  for (const auto& [what, both] : seconds) {
    if (!both.first.empty() && !both.second.empty()) slowed_.push_back(median(both.second) / median(both.first));
  }
}

// Where the last that an operation waited for ended on another stream.
void StepSamples::take_hops(const ProfiledStep& step) {
  std::map<program::StreamId, double> stream_free_s;
  for (program::OperationId id = 0; std::cmp_less(id, step.program.step.size()); ++id) {
    const program::Operation& op = step.program.step[id];
    double waited_s = -1;
    for (const program::OperationId w : op.waits) waited_s = std::max(waited_s, step.intervals[w].end_s);
    const double start_s = step.intervals[id].start_s;
    if (waited_s >= 0 && waited_s > stream_free_s[op.stream]) hops_.push_back(std::max(0.0, start_s - waited_s));
    stream_free_s[op.stream] = std::max(stream_free_s[op.stream], step.intervals[id].end_s);
  }
}

void StepSamples::add_to(Measured& m) const {
  std::map<std::pair<Precision, std::string>, std::vector<config::CurvePoint>> computations;
  for (const auto& [key, samples] : computations_) {
    const auto& [precision, name, work] = key;
    if (const double s = median(samples); s > 0) computations[{precision, name}].push_back({work, s});
  }
  for (auto& [key, points] : computations) m.computations[key] = config::Curve(std::move(points));
  if (!hops_.empty()) m.hop_s = median(hops_);
  if (!slowed_.empty()) m.slowed_computing = std::max(1.0, median(slowed_));
  Samples slowed;
  for (const auto& [bytes, samples] : busy_communications_) {
    const auto alone = m.communications.find("all_reduce");
    if (alone != m.communications.end()) slowed.push_back(median(samples) / alone->second.seconds_at(bytes));
  }
  if (!slowed.empty()) m.slowed_communicating = std::max(1.0, median(slowed));
}

}  // namespace harness::calibrate
