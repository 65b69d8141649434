#include "cli/doctor_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

std::string nodes_text(const std::vector<std::string>& nodes) {
  constexpr std::size_t shown = 3;
  return join_first(nodes, shown);
}

}  // namespace

doctor::RecordedFacts read_doctors_record(const std::string& path) {
  const std::string text = store::read_result(path, {.rank_seconds = false, .timeline = false}).doctor.facts;
  if (text.empty()) fail("{} holds no facts of doctor's: it is a prediction, or of too many nodes", path);
  return doctor::read_facts(text, path);
}

report::Section since_section(const doctor::Changes& changes, const std::string& path) {
  constexpr std::size_t most_rows = 200;
  report::Section section{"since", fmt::format("What has changed since {} ({})", changes.since, path), {}};
  report::List list;
  for (const doctor::Line& line : changes.new_findings) {
    list.items.push_back(fmt::format("new: {} {} on {}: {}", name_of(line.finding.verdict), line.check,
                                     nodes_text(line.nodes), line.finding.evidence));
  }
  if (!changes.gone.empty()) list.items.push_back("no longer here: " + nodes_text(changes.gone));
  if (!changes.added.empty()) list.items.push_back("not there before: " + nodes_text(changes.added));
  if (list.items.empty() && changes.facts.empty())
    list.items.emplace_back("nothing, of what does not change at every look");
  section.add(std::move(list));
  report::Table table{{{"node", true}, {"fact", true}, {"was", true}, {"is", true}}, {}};
  for (const doctor::Change& change : changes.facts) {
    if (table.rows.size() == most_rows) break;
    table.rows.push_back({nodes_text(change.nodes), change.what, change.was, change.now});
  }
  if (table.rows.empty()) return section;
  section.add(report::Numbers{"", std::move(table)});
  if (changes.facts.size() > most_rows)
    section.add(report::Paragraph{fmt::format("{} more: --format json has them.", changes.facts.size() - most_rows)});
  return section;
}

nlohmann::ordered_json since_json(const doctor::Changes& changes) {
  using Json = nlohmann::ordered_json;
  Json facts = Json::array(), findings = Json::array();
  for (const doctor::Change& change : changes.facts)
    facts.push_back({{"fact", change.what}, {"was", change.was}, {"is", change.now}, {"nodes", change.nodes}});
  for (const doctor::Line& line : changes.new_findings) {
    findings.push_back({{"check", line.check},
                        {"verdict", name_of(line.finding.verdict)},
                        {"evidence", line.finding.evidence},
                        {"nodes", line.nodes}});
  }
  return {{"created", changes.since},
          {"gone", changes.gone},
          {"added", changes.added},
          {"new_findings", std::move(findings)},
          {"facts", std::move(facts)}};
}

}  // namespace harness::cli
