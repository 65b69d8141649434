#include <algorithm>
#include <array>
#include <optional>
#include <ostream>
#include <set>

#include "backends/backends.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "doctor/check.h"
#include "doctor/gather.h"
#include "doctor/load_stage.h"
#include "doctor/record.h"
#include "doctor/stage.h"
#include "report/json.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

report::Tone tone_of(doctor::Verdict verdict) {
  using enum report::Tone;
  static constexpr std::array tones{bad, open, open, plain, plain, good};  // in the order of Verdict
  return tones[static_cast<std::size_t>(verdict)];
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

// The number of checks that have lines of this verdict.
std::string checks_with(const doctor::Diagnosis& diagnosis, doctor::Verdict verdict) {
  std::set<std::string> names;
  for (const doctor::Line& line : diagnosis.lines)
    if (line.finding.verdict == verdict) names.insert(line.check);
  return count_of(names.size(), "check");
}

std::string nodes_text(const std::vector<std::string>& nodes) {
  return join_first(nodes, 3);
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

report::Json json_of(const doctor::Line& line) {
  return {{"check", line.check},
          {"verdict", name_of(line.finding.verdict)},
          {"evidence", line.finding.evidence},
          {"remedy", line.finding.remedy},
          {"docs", line.docs},
          {"nodes", line.nodes}};
}

report::Json since_json(const doctor::Changes& changes) {
  using Json = report::Json;
  Json facts = Json::array(), findings = Json::array();
  for (const doctor::Change& change : changes.facts)
    facts.push_back({{"fact", change.what}, {"was", change.was}, {"is", change.now}, {"nodes", change.nodes}});
  for (const doctor::Line& line : changes.new_findings) findings.push_back(json_of(line));
  return {{"created", changes.since},
          {"gone", changes.gone},
          {"added", changes.added},
          {"new_findings", std::move(findings)},
          {"facts", std::move(facts)}};
}

// In one sentence how things stand, what has changed since the result file `since` was written, a line for each
// distinct finding, worst first, and what to do. `all`: also what passed and what does not apply.
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
  rest.add(report::Paragraph{
      fmt::format("Passed: {}; not applicable: {}. `harness doctor --all` lists them; docs/doctor.md describes "
                  "each.",
                  checks_with(diagnosis, doctor::Verdict::pass), checks_with(diagnosis, doctor::Verdict::skip))});
  document.sections.push_back(std::move(rest));
  return document;
}

// The table of all checks. docs/doctor.md has the Markdown.
void print_checks(const std::string& format, std::ostream& out) {
  if (format == "json") fail("--list prints text or md, not json");
  report::Table table{{{"check", true}, {"question", true}, {"read from", true}, {"at worst", true}, {"more", true}},
                      {}};
  for (const doctor::About& about : doctor::all_checks())
    table.rows.push_back({about.id, about.question, about.reads, std::string(name_of(about.at_worst)), about.docs});
  report::Document document;
  document.sections.emplace_back().add(report::Numbers{"", std::move(table)});
  print(std::move(document), format, under_a_launcher, out);
}

std::string doctor_json(const doctor::Diagnosis& diagnosis, const std::optional<doctor::Changes>& changes) {
  report::Json findings = report::Json::array();
  for (const doctor::Line& line : diagnosis.lines) findings.push_back(json_of(line));
  report::Json whole{{"schema", "harness-doctor-report"},
                     {"schema_version", 1},
                     {"version", tool_version()},
                     {"nodes", diagnosis.nodes},
                     {"ranks", diagnosis.ranks},
                     {"gpus", diagnosis.gpus},
                     {"failures", diagnosis.count(doctor::Verdict::fail)},
                     {"warnings", diagnosis.count(doctor::Verdict::warn)},
                     {"findings", std::move(findings)}};
  if (changes) whole["since"] = since_json(*changes);
  return report::json_text(whole);
}

using doctor::Stage;

// Another root is another machine, on which nothing can be started.
std::vector<Stage> stages_of(const DoctorOptions& options) {
  const bool elsewhere = options.sysroot != "/";
  if (options.stages.empty()) return doctor::parse_stages(elsewhere ? "static" : doctor::all_stages);
  std::vector<Stage> stages = doctor::parse_stages(options.stages);
  if (elsewhere && stages != std::vector{Stage::facts}) {
    fail(
        "--stages {} starts workers on this machine, but --sysroot {} shows another; with --sysroot, give --stages "
        "static",
        options.stages, quote(options.sysroot));
  }
  return stages;
}

// Reads the facts that a result file recorded at the start of its sweep.
doctor::RecordedFacts read_doctors_record(const std::string& path) {
  const std::string text = store::read_result(path, {.rank_seconds = false, .timeline = false}).doctor.facts;
  if (text.empty()) fail("{} holds no facts of doctor's: it is a prediction, or of too many nodes", path);
  return doctor::read_facts(text, path);
}

// Why this program has no workers on a backend; "": it has.
std::string what_is_missing(config::BackendKind backend) try {
  static_cast<void>(backends::get(backend));
  return "";
} catch (const Error& e) {
  return e.what();
}

std::optional<config::Hardware> hardware_of(const std::vector<doctor::Node>& nodes) {
  for (const doctor::Node& node : nodes) {
    for (const std::string& gpu : node.facts.under("nvml"))
      return config::find_hardware_for_device(node.facts.text(fmt::format("nvml/{}/name", gpu)), "");
  }
  return std::nullopt;
}

doctor::Diagnosis diagnosis_of(job::Job& job, const std::vector<doctor::Node>& nodes,
                               const std::vector<Stage>& stages) {
  const auto wanted = [&](Stage stage) { return std::ranges::find(stages, stage) != stages.end(); };
  doctor::Diagnosis diagnosis = wanted(Stage::facts) ? doctor::diagnose(nodes) : doctor::count_nodes(nodes);
  if (!wanted(Stage::nccl) && !wanted(Stage::load)) return diagnosis;
  const bool has_gpus = std::ranges::any_of(job.places(), [](const job::RankPlace& p) { return p.gpus.count > 0; });
  const config::BackendKind backend = config::usual_backend(has_gpus);
  const doctor::Bench bench{job, nodes, backend, what_is_missing(backend)};
  if (wanted(Stage::nccl)) doctor::add(diagnosis, doctor::run_nccl_stage(bench));
  if (wanted(Stage::load)) {
    const std::optional<config::Hardware> hardware = hardware_of(nodes);
    doctor::add(diagnosis, doctor::run_load_stage(bench, hardware ? &*hardware : nullptr));
  }
  return diagnosis;
}

int print(const doctor::Diagnosis& diagnosis, const doctor::RecordedFacts& seen, const DoctorOptions& options,
          std::ostream& out) {
  std::optional<doctor::Changes> changes;
  if (!options.against.empty()) changes = doctor::changes_since(read_doctors_record(options.against[0]), seen);
  if (options.format == "json") {
    out << doctor_json(diagnosis, changes);
  } else {
    const std::string since = changes ? options.against[0] : "";
    print(doctor_document(diagnosis, options.all, changes, since), options.format, under_a_launcher, out);
  }
  return doctor::exit_code(diagnosis, options.strict);
}

}  // namespace

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  if (!options.against.empty()) static_cast<void>(read_doctors_record(options.against[0]));  // before nodes are asked
  const std::vector<Stage> stages = stages_of(options);
  const doctor::RecordedFacts seen{utc_text(), tool_version(), doctor::examine(job, {options.sysroot})};
  return print(diagnosis_of(job, seen.nodes, stages), seen, options, out);
}

int doctor_alone(const DoctorOptions& options, std::ostream& out) {
  if (!options.explain.empty()) {
    out << doctor::explain(options.explain);
    return 0;
  }
  if (options.list) {
    print_checks(options.format, out);
    return 0;
  }
  if (options.against.size() == 2) {
    if (options.sysroot != "/" || !options.stages.empty())
      fail("--against with two files looks at no node: leave out --sysroot and --stages");
    const doctor::RecordedFacts seen = read_doctors_record(options.against[1]);
    return print(doctor::diagnose(seen.nodes), seen, options, out);
  }
  return all_reduce(options, out);
}

}  // namespace harness::cli
