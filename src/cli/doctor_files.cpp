#include "cli/doctor_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/output_file.h"
#include "doctor/replace.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

constexpr std::string_view hdf5_begins = "\x89HDF\r\n\x1a\n";

// No more than a bundle may have, and a byte by which it is too much.
std::string beginning_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    fail("{} {}", path, std::filesystem::exists(path, error) ? "is no file" : "does not exist");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(std::min<std::size_t>(doctor::most_bundle_bytes + 1, std::filesystem::file_size(path, error)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in && !in.eof()) fail("{} cannot be read", path);
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string nodes_text(const std::vector<std::string>& nodes) {
  constexpr std::size_t shown = 3;
  return join_first(nodes, shown);
}

}  // namespace

doctor::Bundle read_doctors_file(const std::string& path) {
  std::string text = beginning_of(path);
  if (!text.starts_with(hdf5_begins)) return doctor::read_bundle(text, path);
  text = store::read_result(path, {.rank_seconds = false, .timeline = false}).doctor.facts;
  if (text.empty()) fail("{} holds no facts of doctor's: it is older, a prediction, or of too many nodes", path);
  return doctor::read_bundle(text, path);
}

void write_doctors_file(const std::string& path, const doctor::Bundle& seen, bool overwrite) {
  write_output(path, doctor::write_bundle(seen.replaced ? seen : doctor::without_names(seen)), overwrite);
}

report::Section since_section(const doctor::Changes& changes, const std::string& path) {
  constexpr std::size_t most_rows = 200;
  report::Section section{"since", fmt::format("What has changed since {} ({})", changes.since, path), {}};
  if (changes.by_place)
    section.add(report::Paragraph{"There or here, names are replaced: nodes were taken in the order of their ranks."});
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
  return {{"created", changes.since}, {"by_place", changes.by_place},        {"gone", changes.gone},
          {"added", changes.added},   {"new_findings", std::move(findings)}, {"facts", std::move(facts)}};
}

}  // namespace harness::cli
