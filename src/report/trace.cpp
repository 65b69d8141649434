#include "report/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

// Streams get thread numbers, "compute" the first, so that every rank shows them in the same order.
std::map<std::string, int> number_streams(const std::vector<const store::ResultInterval*>& rows) {
  std::set<std::string> names;
  for (const store::ResultInterval* row : rows) names.insert(row->stream);
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
  for (const store::ResultRank& rank : result.rank_table) {
    if (rank.rank == row.rank) name += ", " + rank.host;
  }
  return name + ")";
}

Json event_of(const store::ResultInterval& row, int thread) {
  Json arguments = {{"kind", row.kind}, {"operation", row.operation}, {"role", row.role}, {"phase", row.phase}};
  if (row.layer >= 0) arguments["layer"] = row.layer;
  if (row.micro_batch >= 0) arguments["micro_batch"] = row.micro_batch;
  if (!row.what.empty()) arguments["what"] = row.what;
  return {{"name", row.what.empty() ? row.kind : row.kind + " " + row.what},
          {"cat", row.kind},
          {"ph", "X"},
          {"ts", 1e6 * row.start_s},
          {"dur", 1e6 * (row.end_s - row.start_s)},
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
  std::vector<const store::ResultInterval*> rows;
  for (const store::ResultInterval& row : result.timeline) {
    const bool sound = std::isfinite(row.start_s) && std::isfinite(row.end_s) && row.end_s >= row.start_s;
    if (row.case_index == index && sound) rows.push_back(&row);
  }
  if (rows.empty()) {
    const char* why = chosen->role() == store::CaseRole::control ? " (it is the baseline)" : "";
    fail("case {} has no timeline{}; {}", quote(case_name), why, cases_with_timelines(result));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const store::ResultInterval* a, const store::ResultInterval* b) {
    return a->rank != b->rank ? a->rank < b->rank : a->start_s < b->start_s;
  });
  const auto threads = number_streams(rows);
  Json events = Json::array();
  std::set<std::pair<int, int>> named;
  int last_rank = -1;
  for (const store::ResultInterval* row : rows) {
    if (row->rank != last_rank) {
      last_rank = row->rank;
      events.push_back(metadata("process_name", row->rank, nullptr, {{"name", name_of_rank(result, *row)}}));
      events.push_back(metadata("process_sort_index", row->rank, nullptr, {{"sort_index", row->rank}}));
    }
    const int thread = threads.at(row->stream);
    if (!named.emplace(row->rank, thread).second) continue;
    events.push_back(metadata("thread_name", row->rank, &thread, {{"name", row->stream}}));
    events.push_back(metadata("thread_sort_index", row->rank, &thread, {{"sort_index", thread}}));
  }
  for (const store::ResultInterval* row : rows) events.push_back(event_of(*row, threads.at(row->stream)));
  const Json out = {{"traceEvents", std::move(events)},
                    {"displayTimeUnit", "ms"},
                    {"otherData",
                     {{"what", "one profiled step, outside the timed blocks"},
                      {"case", case_name},
                      {"run", result.name},
                      {"backend", result.backend},
                      {"created", result.created},
                      {"run_uuid", result.run_uuid},
                      {"tool_version", result.tool_version}}}};
  return out.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
