#include "report/export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/cases.h"
#include "base/text.h"
#include "config/backend.h"
#include "report/words.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

// Tracks get thread numbers, "compute" the first, so that every rank shows them in the same order.
std::map<std::string, int> number_tracks(const analysis::DrawnStep& step) {
  std::set<std::string> names;
  for (const analysis::DrawnInterval& x : step.intervals) names.insert(x.track);
  std::map<std::string, int> numbers;
  if (names.erase("compute") > 0) numbers["compute"] = 0;
  for (const auto& name : names) numbers.emplace(name, static_cast<int>(numbers.size()));
  return numbers;
}

Json naming(const char* what, int process, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string name_of_rank(const store::Result& result, const store::ResultInterval& row) {
  std::string name = fmt::format("rank {} (role {}", row.rank, row.role);
  const std::vector<store::ResultRole> roles = store::roles_of(result, row.case_index);
  if (std::cmp_less(row.rank, roles.size())) {
    const auto host = std::ranges::find(result.rank_table, roles[row.rank].node, &store::ResultRank::node);
    if (host != result.rank_table.end()) name += ", " + host->host;
  }
  return name + ")";
}

Json complete(const std::string& name, const char* category, double start_s, double end_s, int rank, int thread,
              Json arguments = Json::object()) {
  // Whole nanoseconds, which viewers count in: two that follow each other do not overlap by a rounding.
  const double start_ns = std::round(1e9 * start_s), end_ns = std::round(1e9 * end_s);
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", start_ns / 1e3},
          {"dur", (end_ns - start_ns) / 1e3},
          {"pid", rank},
          {"tid", thread},
          {"args", std::move(arguments)}};
}

// The events of one case.
struct Events {
  Events(const store::Result& of, std::int32_t index)
      : result(of), case_index(index), ranks(of, index), group_of(of, index) {}

  Json operation(const analysis::DrawnInterval& x, int thread) const {
    const store::ResultInterval& row = *x.row;
    Json arguments = {{"kind", row.kind}, {"operation", row.operation}, {"role", row.role}, {"phase", row.phase}};
    if (row.layer >= 0) arguments["layer"] = row.layer;
    if (row.micro_batch >= 0) arguments["micro_batch"] = row.micro_batch;
    if (!row.what.empty()) arguments["what"] = row.what;
    if (row.recomputed != 0) arguments["recomputed"] = 1;
    if (const std::string group = group_of(row); !group.empty()) arguments["group"] = group;
    const bool others = analysis::is_collective(row.kind) && ranks.has_stage_mates();
    if (others && std::isfinite(row.waiting_s)) arguments["waiting_us"] = 1e6 * row.waiting_s;
    if (analysis::is_communication(row.kind) && ranks.has_stages() && std::isfinite(row.bubble_s))
      arguments["bubble_us"] = 1e6 * row.bubble_s;
    return complete(row.what.empty() ? row.kind : row.kind + " " + row.what, "kernel", x.start_s, x.end_s, row.rank,
                    thread, std::move(arguments));
  }

  // The step of the rank that `first` is the first interval of, and what it loaded.
  void add_step(const analysis::DrawnInterval& first, double end_s, int thread, Json& events) const {
    const int rank = first.row->rank;
    const double start_s = first.start_s - first.row->start_s;
    double loading_s = 0;
    for (const store::ResultSplit& split : result.splits) {
      if (split.case_index != case_index || split.rank != rank) continue;
      if (split.step_s > 0) end_s = start_s + split.step_s;
      if (std::isfinite(split.loading_s)) loading_s = std::clamp(split.loading_s, 0.0, end_s - start_s);
    }
    events.push_back(complete("ProfilerStep#0", "gpu_user_annotation", start_s, end_s, rank, thread));
    if (loading_s > 0)
      events.push_back(complete("data loading", "loading", start_s, start_s + loading_s, rank, thread));
  }

  const store::Result& result;
  std::int32_t case_index;
  analysis::CaseRanks ranks;
  analysis::GroupsOf group_of;
};

}  // namespace

std::string trace_json(const store::Result& result, const std::string& case_name) {
  const std::int32_t index = find_case(result, case_name);
  const store::ResultCase& chosen = result.case_at(index);
  const analysis::DrawnStep step = analysis::drawn_step(result, index);
  if (step.intervals.empty()) {
    const char* why = chosen.role() == store::CaseRole::control ? " (it is the baseline)" : "";
    fail("case {} has no timeline{}: the file holds no profiled step of it", quote(case_name), why);
  }
  const auto threads = number_tracks(step);
  const int step_thread = static_cast<int>(threads.size());
  const Events events_of(result, index);
  Json events = Json::array();
  std::set<std::pair<int, int>> named;
  int last_rank = -1;
  for (const analysis::DrawnInterval& x : step.intervals) {
    const int rank = x.row->rank, thread = threads.at(x.track);
    if (rank != last_rank) {
      last_rank = rank;
      events.push_back(naming("process_name", rank, 0, name_of_rank(result, *x.row)));
      events.push_back(naming("thread_name", rank, step_thread, "step"));
      double end_s = 0;
      for (const analysis::DrawnInterval& other : step.intervals) {
        if (other.row->rank == rank) end_s = std::max(end_s, other.end_s);
      }
      events_of.add_step(x, end_s, step_thread, events);
    }
    if (named.emplace(rank, thread).second) events.push_back(naming("thread_name", rank, thread, x.track));
  }
  for (const analysis::DrawnInterval& x : step.intervals) events.push_back(events_of.operation(x, threads.at(x.track)));
  const Json out = {
      {"traceEvents", std::move(events)},
      {"displayTimeUnit", "ms"},
      {"distributedInfo", {{"world_size", chosen.ranks}}},  // as PyTorch's profiler has it
      {"otherData",
       {{"what", config::traits_of(result.backend).predicts() ? "one predicted step, not measured"
                                                              : "one profiled step, outside the timed blocks"},
        {"clock", step.one_clock ? "shared: the closing all-reduce ends at once on all ranks"
                                 : "of each rank: from the start of its own step"},
        {"case", chosen.name},
        {"run", result.name},
        {"backend", result.backend},
        {"created", result.created},
        {"run_uuid", result.run_uuid},
        {"tool_version", result.tool_version}}}};
  return out.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
