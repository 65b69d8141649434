#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "cli/output.h"

namespace harness::cli {
namespace {

report::Tone tone_of(doctor::Verdict verdict) {
  switch (verdict) {
    case doctor::Verdict::fail:
      return report::Tone::bad;
    case doctor::Verdict::warn:
    case doctor::Verdict::unknown:
      return report::Tone::open;
    case doctor::Verdict::pass:
      return report::Tone::good;
    case doctor::Verdict::info:
    case doctor::Verdict::skip:
      break;
  }
  return report::Tone::plain;
}

bool is_quiet(const doctor::Line& line) {
  return line.finding.verdict == doctor::Verdict::pass || line.finding.verdict == doctor::Verdict::skip;
}

std::string count_of(std::size_t n, std::string_view noun) {
  return plural(static_cast<std::int64_t>(n), noun);
}

std::string headline_of(const doctor::Diagnosis& d) {
  const std::string place = fmt::format("{}, {}, {}", count_of(d.nodes, "node"), count_of(d.ranks, "rank"),
                                        d.gpus > 0 ? count_of(d.gpus, "NVIDIA GPU") : "no NVIDIA GPU");
  const std::size_t failures = d.count(doctor::Verdict::fail), warnings = d.count(doctor::Verdict::warn);
  const std::string unseen =
      d.dark == 0 ? "" : fmt::format("{} of {} could not be checked. ", d.dark, count_of(d.nodes, "node"));
  if (failures + warnings == 0) return unseen + fmt::format("Nothing is wrong that these checks can see ({}).", place);
  std::vector<std::string> parts;
  if (failures > 0) parts.push_back(count_of(failures, "failure"));
  if (warnings > 0) parts.push_back(count_of(warnings, "warning"));
  return unseen + fmt::format("{} ({}).", join(parts, ", "), place);
}

// The checks that have lines of this verdict and of nothing else to be read.
std::vector<std::string> checks_with(const doctor::Diagnosis& diagnosis, doctor::Verdict verdict) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const doctor::Line& line : diagnosis.lines) {
    if (line.finding.verdict == verdict && seen.insert(line.check).second) names.push_back(line.check);
  }
  return names;
}

std::string nodes_text(const std::vector<std::string>& nodes) {
  constexpr std::size_t shown = 3;
  return join_first(nodes, shown);
}

// The changes since the file `path` was written: new findings, then facts, node by node.
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

}  // namespace

report::Document doctor_document(const doctor::Diagnosis& diagnosis, bool all,
                                 const std::optional<doctor::Changes>& changes, const std::string& since) {
  report::Document document;
  document.headline = headline_of(diagnosis);
  if (changes) document.sections.push_back(since_section(*changes, since));
  report::Section found{"findings", "", {}};
  report::Table table{{{"verdict", true}, {"check", true}, {"node", true}, {"what was found", true}}, {}};
  report::List remedies;
  for (const doctor::Line& line : diagnosis.lines) {
    if (is_quiet(line) && !all) continue;
    table.rows.push_back({report::Cell(std::string(name_of(line.finding.verdict)), tone_of(line.finding.verdict)),
                          line.check, doctor::where_of(line, diagnosis.nodes), line.finding.evidence});
    if (!line.finding.remedy.empty()) {
      std::string text = fmt::format("{}: {} ({})", line.check, line.finding.remedy, line.docs);
      if (std::ranges::find(remedies.items, text) == remedies.items.end()) remedies.items.push_back(std::move(text));
    }
  }
  if (!table.rows.empty()) found.add(report::Numbers{"", std::move(table)});
  document.sections.push_back(std::move(found));
  if (!remedies.items.empty()) {
    report::Section what_to_do{"remedies", "What to do", {}};
    what_to_do.add(std::move(remedies));
    document.sections.push_back(std::move(what_to_do));
  }
  if (all) return document;
  report::Section rest{"rest", "", {}};
  if (diagnosis.gpus == 0) rest.add(report::Paragraph{"No NVIDIA GPU: what concerns GPUs was left out."});
  const auto passed = checks_with(diagnosis, doctor::Verdict::pass),
             skipped = checks_with(diagnosis, doctor::Verdict::skip);
  rest.add(report::Paragraph{
      fmt::format("Passed: {}. {} not apply. `harness doctor --all` says why; docs/doctor.md describes each check.",
                  passed.empty() ? "none" : join(passed, ", "),
                  skipped.size() == 1 ? "1 check does" : fmt::format("{} checks do", skipped.size()))});
  document.sections.push_back(std::move(rest));
  return document;
}

void print_checks(const std::string& format, std::ostream& out) {
  if (format == "json") {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const doctor::About& about : doctor::all_checks()) {
      checks.push_back({{"check", about.id},
                        {"question", about.question},
                        {"reads", about.reads},
                        {"at_worst", name_of(about.at_worst)},
                        {"docs", about.docs}});
    }
    out << checks.dump(2) << "\n";
    return;
  }
  report::Table table{{{"check", true}, {"question", true}, {"read from", true}, {"at worst", true}, {"more", true}},
                      {}};
  for (const doctor::About& about : doctor::all_checks())
    table.rows.push_back({about.id, about.question, about.reads, std::string(name_of(about.at_worst)), about.docs});
  report::Document document;
  document.sections.emplace_back().add(report::Numbers{"", std::move(table)});
  print(std::move(document), format, under_a_launcher, out);
}

std::string doctor_json(const doctor::Diagnosis& diagnosis, const std::optional<doctor::Changes>& changes) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const doctor::Line& line : diagnosis.lines) {
    findings.push_back({{"check", line.check},
                        {"verdict", name_of(line.finding.verdict)},
                        {"evidence", line.finding.evidence},
                        {"remedy", line.finding.remedy},
                        {"docs", line.docs},
                        {"nodes", line.nodes}});
  }
  nlohmann::ordered_json whole{{"schema", "harness-doctor-report"},
                               {"schema_version", 1},
                               {"version", tool_version()},
                               {"nodes", diagnosis.nodes},
                               {"ranks", diagnosis.ranks},
                               {"gpus", diagnosis.gpus},
                               {"failures", diagnosis.count(doctor::Verdict::fail)},
                               {"warnings", diagnosis.count(doctor::Verdict::warn)},
                               {"findings", std::move(findings)}};
  if (changes) whole["since"] = since_json(*changes);
  // A file of a node may hold bytes that are not UTF-8.
  return whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace harness::cli
