#include <algorithm>
#include <array>
#include <ostream>
#include <set>

#include "backends/backends.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "doctor/load_stage.h"
#include "doctor/record.h"
#include "doctor/stage.h"
#include "machine/conditions.h"
#include "report/json.h"
#include "sim/link_time.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

report::Tone tone_of(doctor::Verdict verdict) {
  using enum report::Tone;
  static constexpr std::array tones{bad, open, open, plain, plain, good};  // in the order of Verdict
  return tones[static_cast<std::size_t>(verdict)];
}

std::string headline_of(const doctor::Diagnosis& d) {
  const std::string place = fmt::format("{}, {}, {}", plural(d.nodes, "node"), plural(d.ranks, "rank"),
                                        d.gpus > 0 ? plural(d.gpus, "NVIDIA GPU") : "no NVIDIA GPU");
  const std::size_t failures = d.count(doctor::Verdict::fail), warnings = d.count(doctor::Verdict::warn);
  const std::string unseen =
      d.dark == 0 ? "" : fmt::format("{} of {} could not be checked. ", d.dark, plural(d.nodes, "node"));
  if (failures + warnings == 0) return unseen + fmt::format("Nothing is wrong that these checks can see ({}).", place);
  std::vector<std::string> parts;
  if (failures > 0) parts.push_back(plural(failures, "failure"));
  if (warnings > 0) parts.push_back(plural(warnings, "warning"));
  return unseen + fmt::format("{} ({}).", join(parts, ", "), place);
}

std::string checks_with(const doctor::Diagnosis& diagnosis, doctor::Verdict verdict) {
  std::set<std::string> names;
  for (const doctor::Line& line : diagnosis.lines)
    if (line.finding.verdict == verdict) names.insert(line.check);
  return plural(names.size(), "check");
}

// The changes since the file `path` was written: new findings, then facts by node.
report::Section since_section(const doctor::Changes& changes, const std::string& path) {
  constexpr std::size_t most_rows = 200, most_named = 3;
  report::Section section{"since", fmt::format("What has changed since {} ({})", changes.since, path), {}};
  report::List list;
  for (const doctor::Line& line : changes.new_findings) {
    list.items.push_back(fmt::format("new: {} {} on {}: {}", name_of(line.finding.verdict), line.check,
                                     join_first(line.nodes, most_named), line.finding.evidence));
  }
  if (!changes.gone.empty()) list.items.push_back("no longer here: " + join_first(changes.gone, most_named));
  if (!changes.added.empty()) list.items.push_back("not there before: " + join_first(changes.added, most_named));
  if (list.items.empty() && changes.facts.empty())
    list.items.emplace_back("nothing, of what does not change at every look");
  section.add(std::move(list));
  report::Table table{{{"node", true}, {"fact", true}, {"was", true}, {"is", true}}, {}};
  for (const doctor::Change& change : changes.facts) {
    if (table.rows.size() == most_rows) break;
    table.rows.push_back({join_first(change.nodes, most_named), change.what, change.was, change.now});
  }
  if (table.rows.empty()) return section;
  section.add(report::Numbers{"", std::move(table)});
  if (changes.facts.size() > most_rows)
    section.add(report::Paragraph{fmt::format("{} more: --format json has them.", changes.facts.size() - most_rows)});
  return section;
}

report::Json lines_json(const std::vector<doctor::Line>& lines) {
  return report::json_list(lines, [](const doctor::Line& line) -> report::Json {
    return {{"check", line.check},
            {"verdict", name_of(line.finding.verdict)},
            {"evidence", line.finding.evidence},
            {"remedy", line.finding.remedy},
            {"docs", line.docs},
            {"nodes", line.nodes}};
  });
}

report::Json since_json(const doctor::Changes& changes) {
  const auto fact_json = [](const doctor::Change& change) -> report::Json {
    return {{"fact", change.what}, {"was", change.was}, {"is", change.now}, {"nodes", change.nodes}};
  };
  return {{"created", changes.since},
          {"gone", changes.gone},
          {"added", changes.added},
          {"new_findings", lines_json(changes.new_findings)},
          {"facts", report::json_list(changes.facts, fact_json)}};
}

// Contents: the state in one sentence, the changes since the result file of --against, a line for each distinct
// finding, worst first, and remedies. With --all also passes and skips.
report::Document doctor_document(const doctor::Diagnosis& diagnosis, const DoctorOptions& options,
                                 const std::optional<doctor::Changes>& changes) {
  report::Document document;
  document.headline = headline_of(diagnosis);
  if (changes) document.sections.push_back(since_section(*changes, options.against[0]));
  report::Table table{{{"verdict", true}, {"check", true}, {"node", true}, {"what was found", true}}, {}};
  report::List remedies;
  for (const doctor::Line& line : diagnosis.lines) {
    const doctor::Verdict verdict = line.finding.verdict;
    if (!options.all && (verdict == doctor::Verdict::pass || verdict == doctor::Verdict::skip)) continue;
    table.rows.push_back({report::Cell(std::string(name_of(verdict)), tone_of(verdict)), line.check,
                          doctor::where_of(line, diagnosis.nodes), line.finding.evidence});
    if (!line.finding.remedy.empty()) {
      std::string text = fmt::format("{}: {} ({})", line.check, line.finding.remedy, line.docs);
      if (std::ranges::find(remedies.items, text) == remedies.items.end()) remedies.items.push_back(std::move(text));
    }
  }
  if (!table.rows.empty()) document.sections.push_back({"findings", "", {report::Numbers{"", std::move(table)}}});
  if (!remedies.items.empty()) document.sections.push_back({"remedies", "What to do", {std::move(remedies)}});
  if (options.all) return document;
  report::Section rest{"rest", "", {}};
  if (diagnosis.gpus == 0) rest.add(report::Paragraph{"No NVIDIA GPU: what concerns GPUs was left out."});
  rest.add(report::Paragraph{
      fmt::format("Passed: {}; not applicable: {}. `harness doctor --all` lists them; docs/doctor.md describes "
                  "each.",
                  checks_with(diagnosis, doctor::Verdict::pass), checks_with(diagnosis, doctor::Verdict::skip))});
  document.sections.push_back(std::move(rest));
  return document;
}

// Prints the table of all checks. docs/doctor.md contains its Markdown.
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
  report::Json whole{{"schema", "harness-doctor-report"},
                     {"schema_version", 1},
                     {"version", tool_version()},
                     {"nodes", diagnosis.nodes},
                     {"ranks", diagnosis.ranks},
                     {"gpus", diagnosis.gpus},
                     {"failures", diagnosis.count(doctor::Verdict::fail)},
                     {"warnings", diagnosis.count(doctor::Verdict::warn)},
                     {"findings", lines_json(diagnosis.lines)}};
  if (changes) whole["since"] = since_json(*changes);
  return report::json_text(whole);
}

using doctor::Stage;

// With another root, the nodes are not this machine, so no workers can be started.
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
    print(doctor_document(diagnosis, options, changes), options.format, under_a_launcher, out);
  }
  return doctor::exit_code(diagnosis, options.strict);
}

// Requires a unit, although a configuration would take a bare number for bytes or seconds.
template <class Parse>
double above_zero(const char* option, const std::string& text, Parse parse, const char* example) {
  const auto value = static_cast<double>(option_value(option, text, parse));
  const bool has_unit = text.find_first_not_of("0123456789.+-eE ") != std::string::npos;
  if (value <= 0 || !has_unit)
    fail("{}: found {}; expected a number above 0 with a unit, such as {}", option, quote(text), example);
  return value;
}

// The times of an all-reduce, in seconds; predicted_s is 0 if unknown.
struct Limits {
  int ranks = 0, nodes = 0;
  sim::Network network;
  double least_s = 0, sharp_s = 0, predicted_s = 0;
};

Limits limits_of(double bytes, int ranks, const config::Hardware& hardware) {
  const auto topology = machine::Topology::node_by_node(ranks, hardware.gpus_of_node);
  const sim::Network network = sim::network_of(hardware, {}, topology.node_of);
  Limits limits{.ranks = ranks, .nodes = topology.nodes(), .network = network};
  if ((limits.nodes > 1 ? network.node_bytes_per_s : network.rank_bytes_per_s) == 0)
    fail("the hardware file of {} does not say what limits an all-reduce over {} on {}", hardware.name,
         plural(ranks, "rank"), plural(limits.nodes, "node"));
  const auto least = [&](bool sharp) {
    const program::Group all{"data", program::AxisSet::of({program::Axis::data}), {}};
    const program::Links links{network.rank_bytes_per_s, network.node_bytes_per_s, network.switches_reduce, sharp};
    const double per_byte = program::least_seconds_per_byte(program::Collective::all_reduce, all,
                                                            {{program::Axis::data, ranks}}, topology.node_of, links);
    return std::max(sim::least_step_seconds(limits.nodes > 1), bytes * per_byte);
  };
  limits.least_s = least(false);
  limits.sharp_s = least(true);
  const int most = std::min(ranks, hardware.gpus_of_node);
  if (most == 1 || network.rank_bytes_per_s > 0) {
    const config::Calibration calibration = config::calibration_named("harness");
    const sim::CollectiveTime time(program::Collective::all_reduce, {{ranks, limits.nodes, most}}, network, calibration,
                                   {});
    limits.predicted_s = time.seconds(bytes);
  }
  return limits;
}

std::string headline_of(const Limits& limits, double bytes, double within_s) {
  std::string text =
      fmt::format("An all-reduce of {} over {} on {} takes at least {}",
                  bytes >= 1e9 ? fmt::format("{:.4g} GB", bytes / 1e9) : show_bytes(bytes),
                  plural(limits.ranks, "rank"), plural(limits.nodes, "node"), show_seconds(limits.least_s));
  if (limits.sharp_s < limits.least_s)
    text += fmt::format(", {} where the network's switches add up (SHARP)", show_seconds(limits.sharp_s));
  if (limits.predicted_s > 0) text += fmt::format("; {} are predicted", show_seconds(limits.predicted_s));
  if (within_s == 0) return text + ".";
  const char* verdict = within_s < limits.sharp_s   ? "impossible"
                        : within_s < limits.least_s ? "possible with SHARP alone"
                                                    : "possible";
  return fmt::format("{}. Within {}: {}.", text, show_seconds(within_s), verdict);
}

// `--allreduce SIZE`: the least time of an all-reduce, and its predicted time. Ranks fill the nodes in order. Returns 2
// if --within is impossible.
int all_reduce(const DoctorOptions& options, std::ostream& out) {
  const double bytes = above_zero("--allreduce", options.allreduce, parse_bytes, "14GB");
  const double within_s = options.within.empty() ? 0 : above_zero("--within", options.within, parse_seconds, "2ms");
  const config::Hardware hardware = config::hardware_named(options.hardware);
  if (hardware.gpus_of_node == 0)
    fail("the hardware file of {} does not say how many GPUs a machine has: it needs `node: {{gpus: 8, network: …}}`",
         hardware.name);
  const Limits limits = limits_of(bytes, options.ranks > 0 ? options.ranks : hardware.gpus_of_node, hardware);
  if (options.format == "json") {
    out << report::json_text({{"schema", "harness-doctor-allreduce"},
                              {"schema_version", 2},
                              {"ranks", limits.ranks},
                              {"nodes", limits.nodes},
                              {"least_s", limits.least_s},
                              {"least_with_sharp_s", limits.sharp_s},
                              {"predicted_s", limits.predicted_s}});
  } else {
    report::Document document;
    document.headline = headline_of(limits, bytes, within_s);
    document.sections.emplace_back().add(report::Paragraph{
        fmt::format("Links in one direction: {} between the GPUs of a node, {} between nodes. The least time is that "
                    "of any algorithm (docs/method.md, \"The limit\"), the prediction that of `plan --backend sim`.",
                    show_bandwidth(limits.network.rank_bytes_per_s), show_bandwidth(limits.network.node_bytes_per_s))});
    print(std::move(document), options.format, under_a_launcher, out);
  }
  return within_s > 0 && within_s < limits.sharp_s ? 2 : 0;
}

}  // namespace

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  if (!options.against.empty()) static_cast<void>(read_doctors_record(options.against[0]));  // before nodes are asked
  const std::vector<Stage> stages = stages_of(options);
  const doctor::RecordedFacts seen{utc_text(), tool_version(), doctor::examine(job, {options.sysroot})};
  return print(diagnosis_of(job, seen.nodes, stages), seen, options, out);
}

int doctor_alone(const DoctorOptions& options, std::ostream& out) {
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
