#include <fmt/format.h>

#include <algorithm>
#include <map>

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

// Neighbouring ranks on one host with equal devices are one line.
Table hosts_table(const store::Result& result) {
  Table table{{{"ranks", true}, {"host", true}, {"device", true}}, {}};
  const auto& ranks = result.rank_table;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end].host == ranks[i].host && ranks[end].device == ranks[i].device) ++end;
    const std::string first = std::to_string(ranks[i].rank);
    table.rows.push_back(
        {end - i == 1 ? first : fmt::format("{}–{}", first, ranks[end - 1].rank), ranks[i].host, ranks[i].device});
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

std::string channels_of(const store::ResultNcclCall& call) {
  if (call.first_channel < 0) return "";
  return call.first_channel == call.last_channel ? std::to_string(call.first_channel)
                                                 : fmt::format("{}–{}", call.first_channel, call.last_channel);
}

Table calls_table(const store::Result& result) {
  Table table{{{"case", true},
               {"collective", true},
               {"size"},
               {"algorithm", true},
               {"protocol", true},
               {"channels"},
               {"logged"}},
              {}};
  for (const store::ResultNcclCall& call : result.nccl_calls) {
    table.rows.push_back({result.at(call).name, call.function.empty() ? "not logged" : call.function,
                          show_bytes(static_cast<double>(call.bytes)), call.algorithm, call.protocol, channels_of(call),
                          std::to_string(call.calls)});
  }
  return table;
}

// All of the baseline's, and of the other cases those that differ from it.
Table facts_table(const store::Result& result) {
  std::map<std::string, std::string> baseline;
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (result.at(fact).role() == store::CaseRole::baseline) baseline[fact.name] = fact.value;
  }
  Table table{{{"case", true}, {"what", true}, {"value", true}}, {}};
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    const auto same = baseline.find(fact.name);
    const bool is_news = same == baseline.end() || same->second != fact.value;
    if (is_news || result.at(fact).role() == store::CaseRole::baseline)
      table.rows.push_back({result.at(fact).name, fact.name, fact.value});
  }
  return table;
}

// A folded table of names and values; none without a row.
void add_pairs(const NameValues& pairs, const char* caption, const char* heading, Section& section) {
  Table table{{{heading, true}, {"value", true}}, {}};
  for (const auto& [name, value] : pairs) {
    if (!value.empty()) table.rows.push_back({name, value});
  }
  if (!table.rows.empty()) section.add(Numbers{caption, std::move(table), true});
}

}  // namespace

Section environment_section(const store::Result& result, const analysis::Findings& findings) {
  const bool predicted = findings.summary.predicted;
  Section section{"environment", predicted ? "What was predicted, and for what" : "What was measured, and where", {}};
  section.add(List{context(result, findings.summary)});
  constexpr std::size_t max_rows = 256;
  Table hosts = hosts_table(result);
  std::string caption = fmt::format("Ranks and {} ({} on {})", predicted ? "nodes" : "hosts",
                                    plural(result.ranks, "rank"), plural(result.nodes, "node"));
  if (hosts.rows.size() > max_rows) {
    caption += fmt::format("; {} further rows are in the file", hosts.rows.size() - max_rows);
    hosts.rows.resize(max_rows);
  }
  if (!hosts.rows.empty()) section.add(Numbers{caption, std::move(hosts), true});
  add_pairs(result.identity, "Versions and settings", "name", section);
  add_pairs(result.environment, "Environment variables of rank 0 that matter", "variable", section);
  add_pairs(result.tuning, "Chosen by timing before the first round", "choice", section);
  return section;
}

Section warnings_section(const analysis::Findings& findings) {
  if (findings.summary.warnings.empty()) return {"warnings", "Warnings", {Paragraph{"None."}}};
  return {"warnings", "Warnings", {List{findings.summary.warnings}}};
}

Section configuration_section(const store::Result& result) {
  Section section{"configuration", "Configuration, and how to do this again", {}};
  if (result.config_text.empty()) {
    section.add(Paragraph{"The file does not hold its configuration."});
    return section;
  }
  section.add(Listing{result.config_path.empty() ? "The configuration, verbatim" : result.config_path + ", verbatim",
                      result.config_text});
  section.add(Listing{
      "Save it under its name; the same sweep once more, on the same number of ranks (a prediction on any machine):",
      command_line(result), false});
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
  if (!result.nccl_calls.empty()) {
    section.add(
        Numbers{"Collectives by NCCL's own log, which has each whenever it is enqueued: before the steps and in them",
                calls_table(result)});
  }
  section.add(Numbers{
      "What NCCL reported in the baseline, and differently in other cases; requests that it did not honour or confirm",
      facts_table(result), true});
  return section;
}

}  // namespace harness::report
