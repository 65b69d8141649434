#include "doctor/record.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/identity.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

bool concerns(const std::string& check, const SweepToJudge& sweep) {
  // Checks of NCCL and of RDMA, in addition to those of GPU facts.
  static constexpr std::array<std::string_view, 7> of_gpus{"ib.verbs",  "rank.memlock",  "gdr.", "env.",
                                                           "same.nccl", "same.settings", "nccl."};
  if (check == "cpu.load") return false;
  if (check == "rank.gpus" && sweep.shares_gpus) return false;
  return sweep.uses_gpus || !starts_with_any(check, of_gpus);
}

// The nodes as seen by a sweep on CPUs: without GPUs, their driver, and the bridges that lead only to GPUs.
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

store::ResultFinding row_of(const Line& line, std::size_t all_nodes) {
  store::ResultFinding row;
  row.verdict = name_of(line.finding.verdict);
  row.check = line.check;
  row.evidence = line.finding.evidence;
  row.remedy = line.finding.remedy;
  row.docs = line.docs;
  row.where = where_of(line, all_nodes);
  row.nodes = static_cast<std::int32_t>(line.nodes.size());
  return row;
}

bool is_quiet(Verdict verdict) {
  return verdict == Verdict::pass || verdict == Verdict::skip;
}

// All notable findings about settings of a node's first rank that have no effect. Others are ignored, because a case
// may set anything on purpose.
std::vector<Line> judge_settings(const Node& node) {
  std::vector<Line> found;
  static const std::set<std::string> about_settings{"env.names", "env.values", "env.without_effect", "env.devices"};
  const Cluster cluster({node});
  for (const Check& check : checks()) {
    if (!about_settings.contains(check.about.id)) continue;
    for (const Finding& finding : judge(check, node, cluster)) {
      if (!is_quiet(finding.verdict) && finding.verdict != Verdict::unknown)
        found.push_back({check.about.id, finding, check.about.docs, {node.host}});
    }
  }
  return found;
}

// Adds the findings about the settings of each case, on top of the environment of the job's first rank. The first few
// nodes suffice for this; differences between nodes are found by other checks.
void add_cases(const std::vector<Node>& nodes, const SweepToJudge& sweep, std::vector<store::ResultFinding>& findings) {
  constexpr std::size_t enough = 64;
  if (nodes.empty() || nodes[0].ranks.empty()) return;
  std::set<std::string> known;  // findings on the nodes as they are, and later on the baseline
  for (const store::ResultFinding& finding : findings) known.insert(finding.evidence);
  bool is_baseline = true;
  for (const auto& [case_index, settings] : sweep.cases) {
    std::set<std::string> said;
    for (std::size_t i = 0; i < std::min(nodes.size(), enough); ++i) {
      Node node{nodes[i].host, {{0, nodes[0].ranks[0].facts}}, nodes[i].facts};
      for (const auto& [name, value] : settings) node.ranks[0].facts.set("env/" + name, value);
      for (const Line& line : judge_settings(node)) {
        const std::string& evidence = line.finding.evidence;
        if (known.contains(evidence) || !said.insert(evidence).second) continue;
        findings.push_back(row_of(line, nodes.size()));
        findings.back().case_index = case_index;
      }
    }
    if (is_baseline) known.merge(said);
    is_baseline = false;
  }
}

using Json = nlohmann::json;  // fast lookup among many keys; the output keeps its order
using Written = nlohmann::ordered_json;

constexpr const char *schema_name = "harness-doctor", *unreadable_key = "unreadable";
constexpr std::int64_t schema_version = 1;
constexpr std::size_t most_facts = 8'000'000;

// The facts that are not among the common ones, which stand elsewhere.
Written json_of(const Facts& facts, const Facts& common = {}) {
  Written out = Written::object();
  for (const auto& [name, reading] : facts) {
    if (common.peek(name).access != machine::Access::absent) continue;
    out[name] = reading.ok() ? Written(reading.text) : Written{{unreadable_key, reading.why}};
  }
  return out;
}

// The facts that all have, with the same reading.
Facts common_of(const std::vector<const Facts*>& all) {
  Facts common;
  if (all.empty()) return common;
  for (const auto& fact : *all.front()) {
    const auto has_it = [&](const Facts* facts) { return facts->peek(fact.first) == fact.second; };
    if (std::ranges::all_of(all, has_it)) common.set(fact.first, fact.second);
  }
  return common;
}

// Adds the facts of `json` to others. Throws nlohmann-json's exceptions if a value is missing or of another type.
Facts facts_in(const Json& json, Facts facts = {}) {
  for (const auto& [name, fact] : json.items()) {
    if (fact.is_string()) {
      facts.set(name, fact.get<std::string>());
    } else {
      facts.set_unreadable(name, fact.at(unreadable_key).get<std::string>());
    }
  }
  return facts;
}

RecordedFacts recorded(const Json& whole) {
  if (whole.at("schema") != schema_name) fail("its schema is not {}", quote(schema_name));
  const auto version = whole.at("schema_version").get<std::int64_t>();
  if (version > schema_version)
    fail("it has version {} of its format, and this program knows {}: read it with a newer one", version,
         schema_version);
  RecordedFacts out{whole.at("created").get<std::string>(), whole.at("tool_version").get<std::string>(), {}};
  const Facts common = facts_in(whole.at("facts")), common_of_ranks = facts_in(whole.at("facts_of_ranks"));
  // A small file must not expand to a large one.
  const std::size_t nodes = whole.at("nodes").size();
  if (nodes * common.size() > most_facts) fail("its nodes have more than {} facts", most_facts);
  for (const Json& entry : whole.at("nodes")) {
    Node& node =
        out.nodes.emplace_back(Node{entry.at("host").get<std::string>(), {}, facts_in(entry.at("facts"), common)});
    for (const Json& rank : entry.at("ranks"))
      node.ranks.push_back({rank.at("rank").get<int>(), facts_in(rank.at("facts"), common_of_ranks)});
  }
  if (out.nodes.empty()) fail("it has no node");
  return out;
}

bool ends_with_any(std::string_view name, std::span<const std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// Facts that differ at every examination.
bool is_volatile_fact(std::string_view name) {
  static constexpr std::array<std::string_view, 7> ends{"cpu/load",   "/swapped_gib", "/slowed_by", "/processes",
                                                        "unfinished", "silent",       "_gbps"};
  const bool of_idle_link = name.ends_with("/speed") && !name.starts_with("hca/");
  return ends_with_any(name, ends) || of_idle_link || name.starts_with("log") || name.starts_with("env/SLURM_");
}

// Counters since the last boot, or since the driver was loaded, which are smaller after a reboot.
bool counts_events(std::string_view name) {
  static constexpr std::array<std::string_view, 5> ends{"/ecc_uncorrected", "/aer_fatal", "/aer_correctable",
                                                        "/nvlink_recoveries", "/nvlink_crc_errors"};
  return name.find("/counter/") != std::string_view::npos || ends_with_any(name, ends);
}

std::string in_words(const machine::Reading& reading) {
  if (reading.ok()) return reading.text.empty() ? "(empty)" : reading.text;
  return reading.unreadable() ? "cannot be read: " + reading.why : "(none)";
}

class FactChanges {
 public:
  void compare(const std::string& host, const std::string& of, const Facts& was, const Facts& now) {
    Facts either = was;
    either.merge(now);
    for (const auto& [name, reading] : either) {
      if (was[name] == now[name] || is_volatile_fact(name)) continue;
      const auto before = was.number(name), after = now.number(name);
      if (counts_events(name) && before && after && *after <= *before) continue;
      add(host, of + name, in_words(was[name]), in_words(now[name]));
    }
  }
  void add(const std::string& host, const std::string& what, const std::string& was, const std::string& now) {
    const auto [at, is_new] = places_.try_emplace({what, was, now}, all_.size());
    if (is_new) all_.push_back({what, was, now, {}});
    std::vector<std::string>& nodes = all_[at->second].nodes;
    if (nodes.empty() || nodes.back() != host) nodes.push_back(host);  // once per node, for any number of ranks
  }
  std::vector<Change> take() { return std::move(all_); }

 private:
  std::vector<Change> all_;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places_;
};

std::vector<Line> not_there_before(const Diagnosis& now, const Diagnosis& then) {
  std::set<std::tuple<std::string, std::string, std::string>> known;  // check, evidence, host
  for (const Line& line : then.lines) {
    for (const std::string& host : line.nodes) known.emplace(line.check, line.finding.evidence, host);
  }
  std::vector<Line> fresh;
  for (const Line& line : now.lines) {
    if (!line.finding.is_bad()) continue;
    Line rest = line;
    std::erase_if(rest.nodes, [&](const std::string& host) {
      return line.check == "cpu.load" || known.contains({line.check, line.finding.evidence, host});
    });
    if (!rest.nodes.empty()) fresh.push_back(std::move(rest));
  }
  return fresh;
}

}  // namespace

store::DoctorRecord record_of(const std::vector<Node>& nodes, const SweepToJudge& sweep) {
  store::DoctorRecord record;
  const Diagnosis diagnosis = diagnose(sweep.uses_gpus ? nodes : without_gpus(nodes));
  for (const Line& line : diagnosis.lines) {
    if (!is_quiet(line.finding.verdict) && concerns(line.check, sweep))
      record.findings.push_back(row_of(line, diagnosis.nodes));
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

std::string write_facts(const RecordedFacts& facts) {
  std::vector<const Facts*> all_nodes, all_ranks;
  for (const Node& node : facts.nodes) {
    all_nodes.push_back(&node.facts);
    for (const Rank& rank : node.ranks) all_ranks.push_back(&rank.facts);
  }
  const Facts of_nodes = common_of(all_nodes), of_ranks = common_of(all_ranks);
  Written nodes = Written::array();
  for (const Node& node : facts.nodes) {
    Written ranks = Written::array();
    for (const Rank& rank : node.ranks)
      ranks.push_back({{"rank", rank.rank}, {"facts", json_of(rank.facts, of_ranks)}});
    nodes.push_back({{"host", node.host}, {"facts", json_of(node.facts, of_nodes)}, {"ranks", std::move(ranks)}});
  }
  const Written whole{
      {"schema", schema_name},    {"schema_version", schema_version}, {"tool_version", facts.tool_version},
      {"created", facts.created}, {"facts", json_of(of_nodes)},       {"facts_of_ranks", json_of(of_ranks)},
      {"nodes", std::move(nodes)}};
  return whole.dump(-1, ' ', false, Written::error_handler_t::replace) + "\n";
}

RecordedFacts read_facts(const std::string& text, const std::string& name) {
  const std::string refusal = name + " is no record of doctor's that this program can read: ";
  if (text.size() > most_fact_bytes) fail("{}it is larger than {} MiB", refusal, most_fact_bytes >> 20);
  try {
    return recorded(Json::parse(text));
  } catch (const std::exception& error) {  // Error, and those of nlohmann-json
    fail("{}{}", refusal, error.what());
  }
}

Changes changes_since(const RecordedFacts& earlier, const RecordedFacts& present) {
  Changes changes;
  changes.since = earlier.created;
  std::map<std::string, const Node*> then;
  for (const Node& node : earlier.nodes) then.try_emplace(node.host, &node);
  std::set<std::string> now_there;
  FactChanges comparison;
  for (const Node& now : present.nodes) {
    now_there.insert(now.host);
    const auto was = then.find(now.host);
    if (was == then.end()) {
      changes.added.push_back(now.host);
      continue;
    }
    comparison.compare(now.host, "", was->second->facts, now.facts);
    const std::vector<Rank> ranks_before = was->second->ranks, ranks_now = now.ranks;
    if (ranks_before.size() != ranks_now.size())
      comparison.add(now.host, "ranks", std::to_string(ranks_before.size()), std::to_string(ranks_now.size()));
    for (std::size_t k = 0; k < std::min(ranks_before.size(), ranks_now.size()); ++k)
      comparison.compare(now.host, "rank: ", ranks_before[k].facts, ranks_now[k].facts);
  }
  for (const Node& node : earlier.nodes) {
    if (!now_there.contains(node.host)) changes.gone.push_back(node.host);
  }
  changes.facts = comparison.take();
  changes.new_findings = not_there_before(diagnose(present.nodes), diagnose(earlier.nodes));
  return changes;
}

}  // namespace harness::doctor
