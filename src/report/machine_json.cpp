#include "report/machine_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/level_course.h"
#include "report/json_number.h"

namespace harness::report {
namespace {

using Json = nlohmann::ordered_json;

Json block_json(const store::Result& result, const analysis::CourseBlock& block) {
  Json out = {{"block", block.index},
              {"case", result.case_at(block.case_index).name},
              {"round", block.round},
              {"session", block.session},
              {"time_unix_s", block.time_unix_s},
              {"seconds", block.seconds},
              {"level_seconds", json_number(block.level_seconds)},
              {"set_aside", block.set_aside}};
  if (block.index >= result.conditions.size()) return out;
  const machine::Conditions& conditions = result.conditions[block.index];
  out["load"] = json_number(conditions.load);
  out["steal_share"] = json_number(conditions.steal_share);
  out["foreign_cores"] = json_number(conditions.foreign_cores);
  out["cpu_clock_hz"] = json_number(conditions.cpu_clock_hz);
  out["busiest_host"] = conditions.busiest_host;
  return out;
}

}  // namespace

nlohmann::ordered_json machine_json(const store::Result& result) {
  const analysis::LevelCourse course = analysis::level_course(result);
  if (course.blocks.empty()) return nullptr;
  Json out = {{"drift", json_number(std::expm1(analysis::level_drift(course)))},
              {"jumps", Json::array()},
              {"blocks", Json::array()}};
  for (const analysis::LevelJump& jump : course.jumps) {
    out["jumps"].push_back({{"first_block", course.blocks[jump.first].index},
                            {"time_unix_s", course.blocks[jump.first].time_unix_s},
                            {"change", std::expm1(jump.log_change)},
                            {"standard_error", jump.standard_error}});
  }
  for (const analysis::CourseBlock& block : course.blocks) out["blocks"].push_back(block_json(result, block));
  return out;
}

}  // namespace harness::report
