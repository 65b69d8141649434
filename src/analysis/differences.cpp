#include "analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/cases.h"
#include "base/median.h"
#include "base/text.h"
#include "config/files.h"
#include "config/model.h"

namespace harness::analysis {
namespace {

std::string join_or(const std::set<std::string>& values, const char* separator, const char* none) {
  return values.empty() ? none : fmt::format("{}", fmt::join(values, separator));
}

// "8 x NVIDIA H200", whatever the order of ranks.
std::string devices_of(const store::Result& r) {
  std::map<std::string, int> counts;
  for (const store::ResultRank& rank : r.rank_table) ++counts[rank.device];
  std::set<std::string> parts;
  for (const auto& [device, count] : counts) parts.insert(fmt::format("{} x {}", count, device));
  return join_or(parts, ", ", "unknown");
}

// Names only the first few: 2,000 hosts would fill a screen.
std::string hosts_of(const store::Result& r) {
  constexpr std::size_t named = 6;
  std::set<std::string> sorted;
  for (const store::ResultRank& rank : r.rank_table) sorted.insert(rank.host);
  if (sorted.size() <= named) return join_or(sorted, ", ", "unknown");
  const std::vector<std::string> hosts(sorted.begin(), sorted.end());
  return fmt::format("{} and {} more (of {}; list {:08x})", join(std::span(hosts).first(named), ", "),
                     hosts.size() - named, hosts.size(), fnv1a(join(hosts, "\n") + "\n") & 0xffffffff);
}

// Rounds clocks, which wander by some MHz from block to block, so that only real differences show.
std::string clock_of(const store::Result& r, double machine::GpuStatistics::*clock) {
  std::vector<double> values;
  for (const store::ResultGpu& row : r.gpu) {
    if (const double hz = row.together.*clock; std::isfinite(hz)) values.push_back(hz);
  }
  constexpr double step_hz = 15e6;  // NVIDIA GPU clocks are multiples of this
  return values.empty() ? "unknown" : fmt::format("{:.0f} MHz", std::round(median(values) / step_hz) * step_hz / 1e6);
}

// Returns the distinct non-empty texts of a table's column.
std::set<std::string> distinct(const auto& rows, const auto& text) {
  std::set<std::string> values;
  for (const auto& row : rows) {
    if (std::string value = text(row); !value.empty()) values.insert(std::move(value));
  }
  return values;
}

// What a file says. Of facts with the same group and name, the last one counts.
struct Fact {
  std::string group, name, value;
};
using Facts = std::vector<Fact>;

void add_all(const std::string& group, const NameValues& pairs, Facts& facts) {
  for (const auto& [name, value] : pairs) facts.push_back({group, name, value});
}

void add_configuration(const config::YamlNode& node, const std::string& path, Facts& facts) {
  if (node.kind != config::YamlNode::Kind::map) {
    facts.push_back({"configuration", path, config::value_text(node)});
    return;
  }
  for (const config::YamlNode& child : node.children)
    add_configuration(child, path.empty() ? child.key : path + "." + child.key, facts);
}

void add_configuration(const store::Result& r, Facts& facts) {
  config::Problems problems;
  std::optional<config::YamlNode> root = config::parse_yaml(r.config_text, problems.add_file(""), problems);
  if (root && root->kind == config::YamlNode::Kind::map) {
    config::apply_overrides(*root, r.overrides, problems);
    add_configuration(*root, "", facts);
  } else if (!r.config_text.empty()) {
    facts.push_back({"configuration", "text", fmt::format("cannot be read; its hash is {:08x}", fnv1a(r.config_text))});
  }
  // Actual values override those in the text.
  facts.push_back({"configuration", "measure.seed", std::to_string(r.seed)});
  facts.push_back({"configuration", "measure.rounds", std::to_string(r.rounds)});
  facts.push_back({"configuration", "measure.warmup_steps", std::to_string(r.warmup_steps)});
  facts.push_back({"configuration", "measure.steps", std::to_string(r.steps)});
  facts.push_back({"configuration", "measure.smallest_effect", fmt::format("{:g} %", 100 * r.smallest_effect)});
}

std::string disturbance(const Exceeded& seen) {
  return seen.is_news() ? fmt::format("in {} of {} blocks", seen.blocks, seen.known) : "none seen";
}

Facts facts_of(const store::Result& r) {
  const auto threads = [](const store::ResultRank& rank) { return std::to_string(rank.threads); };
  const auto throttling = [](const store::ResultGpu& row) { return row.throttling; };
  const auto peak = [](const store::ResultCase& row) {
    return row.peak_flops_per_rank > 0 ? fmt::format("{:.4g} TFLOP/s", row.peak_flops_per_rank / 1e12) : "";
  };
  Facts facts;
  facts.push_back({"run", "backend", r.backend});
  facts.push_back({"run", "model", config::in_words(r.model)});
  facts.push_back({"run", "ranks", std::to_string(r.ranks)});
  facts.push_back({"run", "nodes", std::to_string(r.nodes)});
  facts.push_back({"run", "state", store::name_of(r.state)});
  facts.push_back({"identity", "harness", r.tool_version});
  add_all("identity", r.identity, facts);
  facts.push_back({"machine", "devices", devices_of(r)});
  facts.push_back({"machine", "hosts", hosts_of(r)});
  facts.push_back({"machine", "threads per rank", join_or(distinct(r.rank_table, threads), ", ", "unknown")});
  facts.push_back({"machine", "SM clock", clock_of(r, &machine::GpuStatistics::mean_sm_clock_hz)});
  facts.push_back({"machine", "SM clock possible", clock_of(r, &machine::GpuStatistics::max_possible_sm_clock_hz)});
  facts.push_back({"machine", "throttling", join_or(distinct(r.gpu, throttling), "; ", "none seen")});
  facts.push_back({"machine", "other processes", disturbance(foreign_use(r))});
  facts.push_back({"machine", "CPU time stolen by the host", disturbance(stolen_time(r))});
  add_all("environment", r.environment, facts);
  add_configuration(r, facts);
  for (const std::string& variable : r.variables) facts.push_back({"variable", variable, "known"});
  add_all("tuning", r.tuning, facts);
  facts.push_back({"MFU", "peak", join_or(distinct(r.cases, peak), ", ", "unknown")});
  facts.push_back({"MFU", "peak source", r.peak_source});
  facts.push_back({"MFU", "FLOP counted", r.flop_formula});
  return facts;
}

}  // namespace

std::vector<Difference> find_differences(std::span<const ComparedFile> files) {
  std::vector<Difference> rows;  // by group, in order of first appearance
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const Fact& fact : facts_of(*files[i].result)) {
      const auto is_it = [&](const Difference& row) { return row.group == fact.group && row.name == fact.name; };
      auto at = std::ranges::find_if(rows, is_it);
      if (at == rows.end()) {
        const auto of_group = std::ranges::find(rows.rbegin(), rows.rend(), fact.group, &Difference::group);
        const auto end = of_group == rows.rend() ? rows.end() : of_group.base();
        at = rows.insert(end, {fact.group, fact.name, std::vector<std::string>(files.size(), absent)});
      }
      at->values[i] = fact.value;
    }
  }
  std::erase_if(rows, [](const Difference& row) {
    return std::ranges::all_of(row.values, [&](const auto& value) { return value == row.values[0]; });
  });
  return rows;
}

std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, bool same_ranks) {
  std::vector<std::string> reasons;
  const auto must_match = [&](const char* noun, auto value) {
    for (const ComparedFile& file : files.subspan(1)) {
      const std::string here = value(*files[0].result), there = value(*file.result);
      if (here == there) continue;
      reasons.push_back(fmt::format("{} differ: {} in {}, {} in {}", noun, here, files[0].label, there, file.label));
    }
  };
  must_match("Backends", [](const store::Result& r) { return r.backend; });
  must_match("Workloads", workload_of);
  // Other workloads use a model at most to derive sizes.
  if (std::ranges::all_of(files, [](const ComparedFile& file) { return workload_of(*file.result) == "gpt"; })) {
    must_match("Models", [](const store::Result& r) { return config::in_words(r.model); });
  }
  must_match("Processes", [](const store::Result& r) {
    return std::string(shares_processes(r) ? "one for all sizes of a setting" : "one for each block");
  });
  if (same_ranks) must_match("Numbers of ranks", [](const store::Result& r) { return std::to_string(r.ranks); });
  return reasons;
}

std::vector<std::string> why_unreliable(std::span<const ComparedFile> files) {
  std::vector<std::string> reasons;
  for (const ComparedFile& file : files) {
    if (file.summary->unreliable) {
      reasons.push_back(
          fmt::format("{} is unreliable: its control, baseline_again, is {} than the baseline that it repeats. Measure "
                      "again when the machine is quiet.",
                      file.label, name_of(file.summary->control->verdict)));
    }
    if (file.summary->partial) {
      reasons.push_back(fmt::format("{} is partial: blocks are missing. `sweep --resume` completes it.", file.label));
    }
  }
  return reasons;
}

}  // namespace harness::analysis
