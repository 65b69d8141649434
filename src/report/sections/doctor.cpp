#include <fmt/format.h>

#include <algorithm>

#include "report/sections.h"

namespace harness::report {
namespace {

Tone tone_of_finding(const store::ResultFinding& row) {
  if (row.is_failure()) return Tone::bad;
  return row.verdict == "info" ? Tone::plain : Tone::open;
}

}  // namespace

Section doctor_section(const store::Result& result) {
  Section section{"doctor", "What doctor found before the first round", {}};
  if (result.doctor.findings.empty()) {
    if (!result.doctor.facts.empty()) section.add(Paragraph{"Nothing is wrong that its checks can see."});
    return section;
  }
  Table table{{{"verdict", true}, {"check", true}, {"where", true}, {"what was found", true}}, {}};
  List remedies;
  for (const store::ResultFinding& row : result.doctor.findings) {
    const std::string where = row.is_of_nodes() ? row.where : result.at(row).name;
    table.rows.push_back({Cell(row.verdict, tone_of_finding(row)), row.check, where, row.evidence});
    if (row.remedy.empty()) continue;
    std::string text = fmt::format("{}: {}", row.check, row.remedy);
    if (std::ranges::find(remedies.items, text) == remedies.items.end()) remedies.items.push_back(std::move(text));
  }
  section.add(Numbers{"", std::move(table)});
  if (!remedies.items.empty()) {
    section.add(Paragraph{"What to do:"});
    section.add(std::move(remedies));
  }
  return section;
}

}  // namespace harness::report
