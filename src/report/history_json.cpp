#include <cmath>
#include <nlohmann/json.hpp>

#include "report/history.h"
#include "report/json_number.h"

namespace harness::report {

std::string history_json(const HistoryReport& report) {
  using Json = nlohmann::ordered_json;
  const analysis::History& history = report.history;
  Json out = {{"schema", "harness-history"},
              {"schema_version", 1},
              {"min_runs", analysis::min_history_runs},
              {"smallest_effect", history.smallest_effect},
              {"runs", Json::array()},
              {"cases", Json::array()},
              {"left_out", report.left_out}};
  for (std::size_t run = 0; run < history.labels.size(); ++run) {
    out["runs"].push_back({{"label", history.labels[run]}, {"created", history.created[run]}});
  }
  for (const analysis::CaseHistory& row : history.cases) {
    Json seconds = Json::array();
    for (const double value : row.seconds) seconds.push_back(json_number(value));
    Json json = {{"name", row.name},
                 {"step_seconds", std::move(seconds)},
                 {"verdict", analysis::name_of(row.verdict)},
                 {"change", nullptr}};
    if (row.largest) {
      json["change"] = {{"first_run_after", row.largest->run},
                        {"ratio", json_number(row.largest->ratio)},
                        {"p", json_number(row.largest->p)}};
    }
    out["cases"].push_back(std::move(json));
  }
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace harness::report
