#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/blocks.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "report/document.h"
#include "report/export.h"
#include "report/sections.h"
#include "report/words.h"

// Sections on what was measured, where and in what time: environment, nodes, NCCL, blocks.

namespace harness::report {
namespace {

// Neighbouring ranks on one host with equal devices are one line. Of a host that is not there, only its GPUs are known.
Table hosts_table(const store::Result& result, std::size_t& left_out) {
  constexpr std::size_t max_rows = 256;
  const bool predicted = config::traits_of(result.backend).predicts();
  Table table{
      {{"ranks", true}, {"host", true}, {"device", true}, {"cores of the node"}, {"threads per rank"}, {"memory GiB"}},
      {}};
  if (predicted) table.columns = {{"ranks", true}, {"node", true}, {"device", true}};
  const auto& ranks = result.rank_table;
  left_out = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end].host == ranks[i].host && ranks[end].device == ranks[i].device &&
           ranks[end].threads == ranks[i].threads) {
      ++end;
    }
    if (table.rows.size() < max_rows) {
      table.rows.push_back(
          {end - i == 1 ? std::to_string(ranks[i].rank) : fmt::format("{}–{}", ranks[i].rank, ranks[end - 1].rank),
           ranks[i].host, ranks[i].device, std::to_string(ranks[i].cores), std::to_string(ranks[i].threads),
           fmt::format("{:.0f}", ranks[i].memory_bytes / 1073741824.0)});
      table.rows.back().resize(table.columns.size());
    } else {
      left_out += end - i;
    }
    i = end;
  }
  return table;
}

std::string command_line(const store::Result& result) {
  const std::string config = shell_word(one_line(result.config_path));
  std::string line = fmt::format("mpirun -np {} harness sweep {}", result.ranks, config);
  if (config::traits_of(result.backend).predicts()) {
    const auto per_node = std::ranges::count(result.rank_table, 0, &store::ResultRank::node);
    line = fmt::format("harness sweep {} --ranks {} --ranks-per-node {}", config, result.ranks, per_node);
  }
  for (const std::string& setting : result.overrides) line += " --set " + shell_word(one_line(setting));
  return line;
}

Tone tone_of_finding(const store::ResultFinding& row) {
  if (row.is_failure()) return Tone::bad;
  return row.verdict == "info" ? Tone::plain : Tone::open;
}

constexpr const char* not_honoured = "not honoured";
constexpr const char* not_confirmed = "not confirmed";

std::string bytes_of(std::int64_t bytes) {
  const Scale scale = scale_of_bytes(std::array{static_cast<double>(bytes)});
  return bytes < 1024 ? fmt::format("{} B", bytes) : scale.print(static_cast<double>(bytes)) + " " + scale.unit;
}

std::string channels_of(const store::ResultNcclCall& call) {
  if (call.first_channel < 0) return "";
  return call.first_channel == call.last_channel ? std::to_string(call.first_channel)
                                                 : fmt::format("{}–{}", call.first_channel, call.last_channel);
}

Table calls_table(const store::Result& result, bool of_baseline) {
  Table table{{{"case", true},
               {"collective", true},
               {"size"},
               {"algorithm", true},
               {"protocol", true},
               {"channels"},
               {"logged"}},
              {}};
  for (const store::ResultNcclCall& call : result.nccl_calls) {
    if ((result.at(call).role() == store::CaseRole::baseline) != of_baseline) continue;
    table.rows.push_back({result.at(call).name, call.function.empty() ? "not logged" : call.function,
                          bytes_of(call.bytes), call.algorithm, call.protocol, channels_of(call),
                          std::to_string(call.calls)});
  }
  if (of_baseline) table.remove_column(0);
  return table;
}

// All of the baseline's, and of the others those that differ from it.
Table facts_table(const store::Result& result, bool of_baseline) {
  std::map<std::string, std::string> baseline;
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (result.at(fact).role() == store::CaseRole::baseline) baseline[fact.name] = fact.value;
  }
  Table table{{{"case", true}, {"what", true}, {"value", true}}, {}};
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (fact.name == not_honoured || fact.name == not_confirmed) continue;
    if ((result.at(fact).role() == store::CaseRole::baseline) != of_baseline) continue;
    const auto same = baseline.find(fact.name);
    if (!of_baseline && same != baseline.end() && same->second == fact.value) continue;
    table.rows.push_back({result.at(fact).name, fact.name, fact.value});
  }
  if (of_baseline) table.remove_column(0);
  return table;
}

void requests(const store::Result& result, const char* outcome, const char* words, Section& section) {
  List list;
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (fact.name == outcome) list.items.push_back(result.at(fact).name + ": " + fact.value);
  }
  section.add(Paragraph{words, true}, std::move(list));
}

}  // namespace

Section environment_section(const store::Result& result, const analysis::Findings& findings) {
  const bool predicted = findings.summary.predicted;
  Section section{"environment", predicted ? "What was predicted, and for what" : "What was measured, and where", {}};
  section.add(List{context(result, findings.summary)});
  std::size_t left_out = 0;
  Table hosts = hosts_table(result, left_out);
  if (!hosts.rows.empty()) {
    std::string caption = fmt::format("Ranks and {} ({} on {})", predicted ? "nodes" : "hosts",
                                      plural(result.ranks, "rank"), plural(result.nodes, "node"));
    if (left_out > 0) caption += fmt::format("; {} further ranks are in the file", left_out);
    section.add(Numbers{caption, std::move(hosts), true});
  }
  const auto add = [&](const auto& pairs, const char* caption, const char* heading) {
    Table table{{{heading, true}, {"value", true}}, {}};
    for (const auto& [name, value] : pairs) table.rows.push_back({name, value});
    if (!pairs.empty()) section.add(Numbers{caption, std::move(table), true});
  };
  add(result.identity, "Versions and settings", "name");
  add(result.environment, "Environment variables of rank 0 that matter", "variable");
  add(result.tuning, "Chosen by timing before the first round", "choice");
  return section;
}

Section warnings_section(const analysis::Findings& findings) {
  if (findings.summary.warnings.empty()) return {"warnings", "Warnings", {Paragraph{"None."}}};
  return {"warnings", "Warnings", {List{findings.summary.warnings}}};
}

Section configuration_section(const store::Result& result) {
  Section section{"configuration", "Configuration", {}};
  if (result.config_text.empty()) {
    section.add(Paragraph{"The file does not hold its configuration."});
    return section;
  }
  section.add(Listing{result.config_path.empty() ? "The configuration, verbatim" : result.config_path + ", verbatim",
                      result.config_text});
  List overrides;
  for (const std::string& setting : result.overrides) overrides.items.push_back("--set " + setting);
  section.add(Paragraph{"Overridden on the command line:"}, std::move(overrides));
  return section;
}

Section reproduce_section(const store::Result& result) {
  Section section{"reproduce", "How to do this again", {}};
  if (!result.config_path.empty()) {
    section.add(Listing{"The same sweep once more:", command_line(result), false});
  }
  Table table{{{"", true}, {"", true}}, {}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({name, value});
  };
  add("program", program_of(result));
  add("ranks", fmt::format("{} on {}", result.ranks, plural(result.nodes, "node")));
  const bool predicted = config::traits_of(result.backend).predicts();
  if (!predicted) {
    add("seed", fmt::format("{} (weights, tokens, order of blocks)", result.seed));
    add("rounds", std::to_string(result.rounds));
  }
  add("sessions", result.sessions > 1 ? std::to_string(result.sessions) : "");
  add("original command line", result.argv);
  add("run", result.run_uuid);
  add("created", result.created);
  section.add(Numbers{"", std::move(table), false});
  section.add(Paragraph{
      predicted ? "Save the configuration above under its name and run the same command, on any machine. "
                  "docs/simulation.md says how a step is predicted, docs/method.md defines every number."
                : "Save the configuration above under its name and run the same command on the same number of ranks. "
                  "docs/method.md defines every number; every sample is in the result file."});
  return section;
}

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
  section.add(Paragraph{"What to do:"}, std::move(remedies));
  return section;
}

Section nccl_section(const store::Result& result) {
  Section section{"nccl", "What NCCL did", {}};
  if (result.nccl_calls.empty() && result.nccl_facts.empty()) {
    if (config::traits_of(result.backend).uses_nccl) {
      section.add(Paragraph{"The file does not show it: on one rank, NCCL has nothing to do."});
    }
    return section;
  }
  requests(result, not_honoured, "Requested but not done, so these cases have no verdict:", section);
  requests(result, not_confirmed, "Requested, but NCCL's log does not show whether it was done:", section);
  const auto add = [&](Table table, const char* caption, bool folded) {
    if (!table.rows.empty()) section.add(Numbers{caption, std::move(table), folded});
  };
  add(calls_table(result, true),
      "Collectives of the baseline by NCCL's own log, which has each whenever it is enqueued: before the steps and in "
      "them",
      false);
  add(calls_table(result, false), "Collectives of the other cases", true);
  add(facts_table(result, true), "What NCCL reported in the baseline", true);
  add(facts_table(result, false), "What it reported differently in other cases", true);
  return section;
}

}  // namespace harness::report
