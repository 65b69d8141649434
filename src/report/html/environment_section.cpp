#include <fmt/format.h>

#include <algorithm>

#include "report/html/sections.h"
#include "report/words.h"

namespace harness::html {
namespace {

Table pairs_table(const std::vector<std::pair<std::string, std::string>>& pairs, const char* heading) {
  Table table;
  table.columns = {{heading, true}, {"value", true}};
  for (const auto& [name, value] : pairs) table.rows.push_back({name, value});
  return table;
}

// Neighbouring ranks on one host with equal devices are one line.
Table hosts_table(const Result& result, std::size_t& left_out) {
  constexpr std::size_t most = 256;
  Table table;
  table.columns = {{"ranks", true},       {"host", true},       {"device", true},
                   {"cores of the node"}, {"threads per rank"}, {"memory GiB"}};
  const auto& ranks = result.rank_table;
  left_out = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end].host == ranks[i].host && ranks[end].device == ranks[i].device &&
           ranks[end].threads == ranks[i].threads) {
      ++end;
    }
    if (table.rows.size() < most) {
      table.rows.push_back(
          {end - i == 1 ? std::to_string(ranks[i].rank) : fmt::format("{}–{}", ranks[i].rank, ranks[end - 1].rank),
           ranks[i].host, ranks[i].device, std::to_string(ranks[i].cores), std::to_string(ranks[i].threads),
           fmt::format("{:.0f}", ranks[i].memory_bytes / 1073741824.0)});
    } else {
      left_out += end - i;
    }
    i = end;
  }
  return table;
}

// For a shell, whatever the words hold.
std::string quoted(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_line(const Result& result) {
  std::string line = fmt::format("mpirun -np {} harness sweep {}", result.ranks, quoted(result.config_path));
  for (const auto& one : result.overrides) line += " --set " + quoted(one);
  return line;
}

}  // namespace

Section environment_section(const Result& result, const Findings& findings) {
  Section section{"environment", "What was measured, and where", {}};
  section.pieces.push_back(Bullets{context(result, findings.summary)});
  std::size_t left_out = 0;
  Table hosts = hosts_table(result, left_out);
  if (!hosts.rows.empty()) {
    std::string caption = fmt::format("Ranks and hosts ({} rank{} on {} node{})", result.ranks,
                                      result.ranks == 1 ? "" : "s", result.nodes, result.nodes == 1 ? "" : "s");
    if (left_out > 0) caption += fmt::format("; {} further ranks are in the file", left_out);
    section.pieces.push_back(Numbers{caption, std::move(hosts), true});
  }
  const auto add = [&](const auto& pairs, const char* caption, const char* heading) {
    if (!pairs.empty()) section.pieces.push_back(Numbers{caption, pairs_table(pairs, heading), true});
  };
  add(result.identity, "Versions and settings", "name");
  add(result.environment, "Environment variables that matter (rank 0)", "variable");
  add(result.tuning, "Chosen by timing before the first round", "choice");
  return section;
}

Section warnings_section(const Result&, const Findings& findings) {
  Section section{"warnings", "Warnings", {}};
  if (findings.summary.warnings.empty()) {
    section.pieces.push_back(Paragraph{"None."});
  } else {
    section.pieces.push_back(Bullets{findings.summary.warnings});
  }
  return section;
}

Section configuration_section(const Result& result) {
  Section section{"configuration", "Configuration", {}};
  if (result.config_text.empty()) {
    section.pieces.push_back(Paragraph{"The file does not hold its configuration."});
    return section;
  }
  section.pieces.push_back(
      Listing{result.config_path.empty() ? "The configuration, verbatim" : result.config_path + ", verbatim",
              result.config_text});
  if (!result.overrides.empty()) {
    Bullets list;
    for (const auto& one : result.overrides) list.items.push_back("--set " + one);
    section.pieces.push_back(Paragraph{"Overridden on the command line:"});
    section.pieces.push_back(std::move(list));
  }
  return section;
}

Section reproduce_section(const Result& result) {
  Section section{"reproduce", "How to do this again", {}};
  if (!result.config_path.empty()) {
    section.pieces.push_back(Listing{"The same sweep once more:", command_line(result), false});
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
  add("ranks", fmt::format("{} on {} node{}", result.ranks, result.nodes, result.nodes == 1 ? "" : "s"));
  add("seed", fmt::format("{} (weights, tokens, order of blocks)", result.seed));
  add("rounds", std::to_string(result.rounds));
  add("sessions", result.sessions > 1 ? std::to_string(result.sessions) : "");
  add("command line then", result.argv);
  add("run", result.run_uuid);
  add("created", result.created);
  section.pieces.push_back(Numbers{"", std::move(table), false});
  section.pieces.push_back(
      Paragraph{"Save the configuration above under its name and run the same command on the same number of ranks. How "
                "each number "
                "comes to be is in docs/method.md; every sample is in the result file."});
  return section;
}

}  // namespace harness::html
