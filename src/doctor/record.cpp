#include "doctor/record.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

bool concerns(const std::string& check, const SweepToJudge& sweep) {
  // Checks of NCCL and of RDMA, besides those of the GPUs' facts.
  static constexpr std::array<std::string_view, 7> of_gpus{"ib.verbs",  "rank.memlock",  "gdr.", "env.",
                                                           "same.nccl", "same.settings", "nccl."};
  if (check == "cpu.load") return false;
  if (check == "rank.gpus" && sweep.shares_gpus) return false;
  return sweep.uses_gpus || !starts_with_any(check, of_gpus);
}

// The nodes as a sweep on their CPUs meets them: without GPUs, their driver and what only leads to GPUs.
std::vector<Node> without_gpus(const std::vector<Node>& nodes) {
  static constexpr std::array<std::string_view, 4> of_gpus{"gpu/", "nvml", "driver/", "pci"};
  std::vector<Node> plain;
  for (const Node& node : nodes) {
    std::set<std::string> above_adapters;
    for (const std::string& adapter : node.facts.under("hca")) {
      for (std::string& bridge : pci_path(node.facts, "hca/" + adapter)) above_adapters.insert(std::move(bridge));
    }
    Node& kept = plain.emplace_back(Node{node.host, node.ranks, {}});
    for (const auto& [name, reading] : node.facts) {
      if (starts_with_any(name, of_gpus)) continue;
      if (name.starts_with("bridge/") && !above_adapters.contains(name.substr(7, name.find('/', 7) - 7))) continue;
      kept.facts.set(name, reading);
    }
  }
  return plain;
}

store::ResultFinding row_of(const std::string& check, const Finding& finding, const std::string& docs) {
  store::ResultFinding row;
  row.verdict = name_of(finding.verdict);
  row.check = check;
  row.evidence = finding.evidence;
  row.remedy = finding.remedy;
  row.docs = docs;
  return row;
}

bool is_quiet(Verdict verdict) {
  return verdict == Verdict::pass || verdict == Verdict::skip;
}

// A case may set anything on purpose, such as a setting for finding faults. These checks say that it has no effect.
bool is_about_settings(const std::string& check) {
  static const std::set<std::string> all{"env.names", "env.values", "env.combinations", "env.without_effect",
                                         "env.devices"};
  return all.contains(check);
}

// All that is worth knowing of the settings of a node's first rank.
std::vector<std::pair<About, Finding>> judge_settings(const Node& node) {
  std::vector<std::pair<About, Finding>> found;
  const Cluster cluster({node});
  for (const Check& check : checks()) {
    if (!is_about_settings(check.about.id)) continue;
    for (const Finding& finding : judge(check, node, cluster)) {
      if (!is_quiet(finding.verdict) && finding.verdict != Verdict::unknown) found.emplace_back(check.about, finding);
    }
  }
  return found;
}

// The findings of what each case sets. Its workers have the environment of the job's first rank besides. Nodes beyond
// the first few tell nothing new of a setting: who differs is named by consensus.
void add_cases(const std::vector<Node>& nodes, const SweepToJudge& sweep, std::vector<store::ResultFinding>& findings) {
  constexpr std::size_t enough = 64;
  if (nodes.empty() || nodes[0].ranks.empty()) return;
  std::set<std::string> known;  // of the nodes as they are, and then of the baseline
  for (const store::ResultFinding& finding : findings) known.insert(finding.evidence);
  bool is_baseline = true;
  for (const auto& [case_index, settings] : sweep.cases) {
    std::set<std::string> said;
    for (std::size_t i = 0; i < std::min(nodes.size(), enough); ++i) {
      Node node{nodes[i].host, {{0, nodes[0].ranks[0].facts}}, nodes[i].facts};
      for (const auto& [name, value] : settings) node.ranks[0].facts.set("env/" + name, value);
      for (const auto& [about, finding] : judge_settings(node)) {
        if (known.contains(finding.evidence) || !said.insert(finding.evidence).second) continue;
        store::ResultFinding& row = findings.emplace_back(row_of(about.id, finding, about.docs));
        row.where = node.host;
        row.nodes = 1;
        row.case_index = case_index;
      }
    }
    if (is_baseline) known.merge(said);
    is_baseline = false;
  }
}

}  // namespace

store::DoctorRecord record_of(const std::vector<Node>& nodes, const SweepToJudge& sweep) {
  store::DoctorRecord record;
  const Diagnosis diagnosis = diagnose(sweep.uses_gpus ? nodes : without_gpus(nodes));
  for (const Line& line : diagnosis.lines) {
    if (is_quiet(line.finding.verdict) || !concerns(line.check, sweep)) continue;
    store::ResultFinding& row = record.findings.emplace_back(row_of(line.check, line.finding, line.docs));
    row.where = where_of(line, diagnosis.nodes);
    row.nodes = static_cast<std::int32_t>(line.nodes.size());
  }
  if (sweep.uses_gpus) add_cases(nodes, sweep, record.findings);
  record.facts = write_facts({utc_text(), tool_version(), nodes});
  if (record.facts.size() > most_fact_bytes) record.facts.clear();
  return record;
}

std::string failures_in_words(const store::DoctorRecord& record, bool also_silent_nodes) {
  std::string out;
  for (const store::ResultFinding& row : record.findings) {
    const bool counts = row.is_failure() || (also_silent_nodes && row.check == "node.answers");
    if (!row.is_of_nodes() || !counts) continue;
    out +=
        fmt::format("{} {} on {}: {}. What to do: {}\n", row.verdict, row.check, row.where, row.evidence, row.remedy);
  }
  return out;
}

}  // namespace harness::doctor
