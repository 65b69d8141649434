#include "report/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analysis/profiled_step.h"
#include "base/error.h"
#include "base/text.h"
#include "config/backend.h"

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

Json metadata(const char* what, int process, const int* thread, Json arguments) {
  Json event = {{"name", what}, {"ph", "M"}, {"pid", process}};
  if (thread != nullptr) event["tid"] = *thread;
  event["args"] = std::move(arguments);
  return event;
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

// Whole nanoseconds, which viewers count in: two that follow each other do not overlap by a rounding.
double nanoseconds(double seconds) {
  return std::round(1e9 * seconds);
}

Json event_of(const analysis::DrawnInterval& x, int thread) {
  const store::ResultInterval& row = *x.row;
  Json arguments = {{"kind", row.kind}, {"operation", row.operation}, {"role", row.role}, {"phase", row.phase}};
  if (row.layer >= 0) arguments["layer"] = row.layer;
  if (row.micro_batch >= 0) arguments["micro_batch"] = row.micro_batch;
  if (!x.what.empty()) arguments["what"] = x.what;
  const double start_ns = nanoseconds(x.start_s), end_ns = nanoseconds(x.end_s);
  return {{"name", x.what.empty() ? row.kind : row.kind + " " + x.what},
          {"cat", row.kind},
          {"ph", "X"},
          {"ts", start_ns / 1e3},
          {"dur", (end_ns - start_ns) / 1e3},
          {"pid", row.rank},
          {"tid", thread},
          {"args", std::move(arguments)}};
}

std::string cases_with_timelines(const store::Result& result) {
  std::set<int> indices;
  for (const store::ResultInterval& row : result.timeline) indices.insert(row.case_index);
  std::vector<std::string> names;
  for (const int index : indices) {
    if (index < static_cast<int>(result.cases.size())) {
      names.push_back(quote(result.case_at(index).name));
    }
  }
  return names.empty() ? "no case has a timeline in this file" : "there is one of " + join(names, ", ");
}

}  // namespace

std::string trace_json(const store::Result& result, const std::string& case_name) {
  const store::ResultCase* chosen = result.find_case(case_name);
  if (chosen == nullptr) {
    std::vector<std::string> names;
    for (const store::ResultCase& result_case : result.cases) names.push_back(result_case.name);
    fail("there is no case {}; {}{}", quote(case_name), cases_with_timelines(result),
         did_you_mean(nearest(case_name, names)));
  }
  const std::int32_t index = result.index_of(*chosen);
  const analysis::DrawnStep step = analysis::drawn_step(result, index);
  if (step.intervals.empty()) {
    const char* why = chosen->role() == store::CaseRole::control ? " (it is the baseline)" : "";
    fail("case {} has no timeline{}; {}", quote(case_name), why, cases_with_timelines(result));
  }
  const auto threads = number_tracks(step);
  Json events = Json::array();
  std::set<std::pair<int, int>> named;
  int last_rank = -1;
  for (const analysis::DrawnInterval& x : step.intervals) {
    const int rank = x.row->rank, thread = threads.at(x.track);
    if (rank != last_rank) {
      last_rank = rank;
      events.push_back(metadata("process_name", rank, nullptr, {{"name", name_of_rank(result, *x.row)}}));
      events.push_back(metadata("process_sort_index", rank, nullptr, {{"sort_index", rank}}));
    }
    if (!named.emplace(rank, thread).second) continue;
    events.push_back(metadata("thread_name", rank, &thread, {{"name", x.track}}));
    events.push_back(metadata("thread_sort_index", rank, &thread, {{"sort_index", thread}}));
  }
  for (const analysis::DrawnInterval& x : step.intervals) events.push_back(event_of(x, threads.at(x.track)));
  const Json out = {
      {"traceEvents", std::move(events)},
      {"displayTimeUnit", "ms"},
      {"otherData",
       {{"what", config::traits_of(result.backend).predicts() ? "one predicted step, not measured"
                                                              : "one profiled step, outside the timed blocks"},
        {"clock", step.one_clock ? "shared: the closing all-reduce ends at once on all ranks"
                                 : "of each rank: from the start of its own step"},
        {"case", case_name},
        {"run", result.name},
        {"backend", result.backend},
        {"created", result.created},
        {"run_uuid", result.run_uuid},
        {"tool_version", result.tool_version}}}};
  return out.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
