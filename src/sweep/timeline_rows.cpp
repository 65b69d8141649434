#include "sweep/timeline_rows.h"

#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "program/count.h"
#include "program/timeline.h"

namespace harness::sweep {
namespace {

// What a step's operations amount to, by the texts that tell their intervals apart in the file.
std::vector<store::ResultOperations> sorts_of_operations(const program::ProgramSet& set, int role,
                                                         program::LeastTimes& limits) {
  const program::Program& program = set.roles[role];
  using Key = std::tuple<std::string_view, program::StreamId, program::Phase, std::string_view, bool, std::string>;
  std::map<Key, store::ResultOperations> sorts;
  for (const program::Operation& op : program.step) {
    const bool communicates = program::is_communication(op.action);
    std::string group = communicates ? program::destination(set, op.action) : "";
    if (program::peer_of(op.action) != nullptr) group = group.substr(0, group.find_first_of("+-"));
    store::ResultOperations& row =
        sorts[{program::name_of(op.action), op.stream, op.label.phase, op.label.what, op.label.recomputed, group}];
    row.group = std::move(group);
    ++row.operations;
    row.model_flop += program::flop_of(op.action).model;
    row.limit_s += communicates ? limits.seconds(role, op) : 0;
    row.bytes += communicates ? program::message_bytes(program, op.action) : program::bytes_touched(program, op.action);
  }
  std::vector<store::ResultOperations> rows;
  for (auto& [key, row] : sorts) {
    const auto& [kind, stream, phase, what, recomputed, group] = key;
    row.kind = kind;
    row.stream = program.streams[stream];
    row.phase = program::name_of(phase);
    row.what = what;
    row.recomputed = recomputed ? 1 : 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

// A rank's waiting by operation of its Program; NaN where it is not known.
std::vector<program::Waiting> by_operation(const program::Program& program,
                                           const std::vector<program::Waiting>& of_communications) {
  std::vector<program::Waiting> all(program.step.size(), {NAN, NAN});
  auto next = of_communications.begin();
  for (std::size_t i = 0; i < all.size() && next != of_communications.end(); ++i) {
    if (program::is_communication(program.step[i].action)) all[i] = *next++;
  }
  return all;
}

// NaN if any of it is not known.
double sum_of(const std::vector<program::Waiting>& waits, float program::Waiting::*member) {
  double sum = waits.empty() ? NAN : 0;
  for (const program::Waiting& wait : waits) sum += wait.*member;
  return sum;
}

void add_intervals(store::Result& result, store::ResultInterval row, const program::Program& program,
                   const job::TimelineSamples& samples, const std::vector<program::Waiting>& waits) {
  for (const program::Interval& x : samples.timeline) {
    const program::Operation& op = program.step[x.operation];
    row.operation = x.operation;
    row.kind = program::name_of(op.action);
    row.stream = program.streams[x.stream];
    row.phase = program::name_of(op.label.phase);
    row.what = op.label.what;
    row.micro_batch = op.label.micro_batch;
    row.layer = op.label.layer;
    row.recomputed = op.label.recomputed ? 1 : 0;
    row.start_s = x.start_s;
    row.end_s = x.end_s;
    const bool communicates = program::is_communication(op.action);
    row.waiting_s = communicates ? waits[x.operation].members_s : NAN;
    row.bubble_s = communicates ? waits[x.operation].stages_s : NAN;
    result.timeline.push_back(row);
  }
}

}  // namespace

void add_timeline(store::Result& result, int case_index, const program::ProgramSet& set,
                  const std::vector<job::Samples>& samples, program::LeastTimes& limits) {
  std::vector<std::vector<float>> durations;
  for (const job::Samples& s : samples) durations.push_back(std::get<job::TimelineSamples>(s.task).communication_s);
  const auto waiting = program::find_waiting(set, durations);
  store::ResultGradient gradient{case_index};
  for (int role = 0; role < static_cast<int>(set.roles.size()); ++role) {
    for (store::ResultOperations& row : sorts_of_operations(set, role, limits)) {
      row.case_index = case_index;
      row.role = role;
      result.operations.push_back(std::move(row));
    }
  }
  for (std::int32_t rank = 0; rank < std::ssize(samples); ++rank) {
    const auto& of_rank = std::get<job::TimelineSamples>(samples[rank].task);
    if (!of_rank.timeline.empty()) {
      const int role = set.role_of(set.layout.coordinates(rank));
      const program::Program& program = set.roles[role];
      store::ResultInterval row;
      row.case_index = case_index;
      row.role = role;
      row.rank = rank;
      add_intervals(result, row, program, of_rank, by_operation(program, waiting[rank]));
    }
    const program::StepSplit& s = of_rank.split;
    result.splits.push_back({case_index, rank, s.step_s, s.compute_s, s.communication_s, s.exposed_s, s.overlapped_s,
                             s.idle_s, of_rank.loading_s, sum_of(waiting[rank], &program::Waiting::members_s),
                             sum_of(waiting[rank], &program::Waiting::stages_s)});
    for (const job::KindTotal& t : of_rank.totals) {
      result.totals.push_back({case_index, rank, t.kind, t.stream, t.seconds, t.operations});
    }
    gradient.sharded_squares += of_rank.gradient.sharded;
    gradient.replicated_squares += of_rank.gradient.replicated;
  }
  if (!std::isnan(gradient.sharded_squares)) result.gradients.push_back(gradient);
}

}  // namespace harness::sweep
