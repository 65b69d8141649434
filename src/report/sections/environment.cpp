#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/backend.h"
#include "report/clean_text.h"
#include "report/context.h"
#include "report/export.h"
#include "report/sections.h"

namespace harness::report {
namespace {

Table pairs_table(const std::vector<std::pair<std::string, std::string>>& pairs, const char* heading) {
  Table table;
  table.columns = {{heading, true}, {"value", true}};
  for (const auto& [name, value] : pairs) table.rows.push_back({name, value});
  return table;
}

// Neighbouring ranks on one host with equal devices are one line. Of a host that is not there, only its GPUs are known.
Table hosts_table(const store::Result& result, std::size_t& left_out) {
  constexpr std::size_t max_rows = 256;
  const bool predicted = config::traits_of(result.backend).predicts();
  Table table;
  table.columns = {{"ranks", true},       {"host", true},       {"device", true},
                   {"cores of the node"}, {"threads per rank"}, {"memory GiB"}};
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
    if (!pairs.empty()) section.add(Numbers{caption, pairs_table(pairs, heading), true});
  };
  add(result.identity, "Versions and settings", "name");
  add(result.environment, "Environment variables of rank 0 that matter", "variable");
  add(result.tuning, "Chosen by timing before the first round", "choice");
  return section;
}

Section warnings_section(const analysis::Findings& findings) {
  Section section{"warnings", "Warnings", {}};
  if (findings.summary.warnings.empty()) {
    section.add(Paragraph{"None."});
  } else {
    section.add(List{findings.summary.warnings});
  }
  return section;
}

Section configuration_section(const store::Result& result) {
  Section section{"configuration", "Configuration", {}};
  if (result.config_text.empty()) {
    section.add(Paragraph{"The file does not hold its configuration."});
    return section;
  }
  section.add(Listing{result.config_path.empty() ? "The configuration, verbatim" : result.config_path + ", verbatim",
                      result.config_text});
  if (!result.overrides.empty()) {
    List list;
    for (const std::string& setting : result.overrides) list.items.push_back("--set " + setting);
    section.add(Paragraph{"Overridden on the command line:"});
    section.add(std::move(list));
  }
  return section;
}

Section reproduce_section(const store::Result& result) {
  Section section{"reproduce", "How to do this again", {}};
  if (!result.config_path.empty()) {
    section.add(Listing{"The same sweep once more:", command_line(result), false});
  }
  std::string program = result.tool_version;
  for (const auto& [name, value] : result.identity) {
    if (name == "harness") program = value;
  }
  Table table;
  table.columns = {{"", true}, {"", true}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({name, value});
  };
  add("program", program);
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

}  // namespace harness::report
