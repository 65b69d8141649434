#include <fmt/format.h>

#include "analysis/blocks.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "report/sections.h"

namespace harness::report {

Section block_time_section(const store::Result& result) {
  Section section{"block-time", "Where the time of the blocks went", {}};
  if (config::traits_of(result.backend).predicts()) return section;  // they took none
  const auto time = analysis::time_of_blocks(result);
  if (!time) return section;
  double whole = 0;
  for (const analysis::BlockTimePart& part : analysis::block_time_parts) whole += (*time).*part.seconds;
  Table table;
  table.columns = {{"part", true}, {"s"}, {"share"}, {"ms per block"}};
  const auto add = [&](std::string_view name, double seconds) {
    table.rows.push_back({std::string(name), fmt::format("{:.2f}", seconds), percent(seconds / whole),
                          fmt::format("{:.1f}", 1e3 * seconds / time->blocks)});
  };
  for (const analysis::BlockTimePart& part : analysis::block_time_parts) add(part.name, (*time).*part.seconds);
  add(plural(time->blocks, "finished block"), whole);
  section.add(Numbers{"", std::move(table)});
  return section;
}

}  // namespace harness::report
