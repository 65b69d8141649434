#include "report/cost_lines.h"
#include "report/html/sections.h"

namespace harness::html {

Section cost_section(const Findings& findings) {
  Section section{"cost", "What it is worth", {}};
  if (!findings.cost) return section;
  harness::CostSection cost = harness::cost_section(*findings.cost);
  section.pieces.push_back(Numbers{cost.heading, std::move(cost.table), false});
  section.pieces.push_back(Bullets{std::move(cost.notes)});
  return section;
}

}  // namespace harness::html
