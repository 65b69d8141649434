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

// Facts of the files by group and name, in order of first appearance, and the differences between them.
class Facts {
 public:
  explicit Facts(std::size_t files) : files_(files) {}

  /// Selects the file that the next facts belong to.
  void begin_file(std::size_t file) { file_ = file; }
  /// A repeated name replaces the value.
  void add(const std::string& group, const std::string& name, std::string value) {
    const auto is_it = [&](const Difference& row) { return row.group == group && row.name == name; };
    auto at = std::ranges::find_if(rows_, is_it);
    if (at == rows_.end()) {
      const auto of_group = std::ranges::find(rows_.rbegin(), rows_.rend(), group, &Difference::group);
      const auto end = of_group == rows_.rend() ? rows_.end() : of_group.base();
      at = rows_.insert(end, {group, name, std::vector<std::string>(files_, absent)});
    }
    at->values[file_] = std::move(value);
  }
  void add(const std::string& group, const NameValues& pairs) {
    for (const auto& [name, value] : pairs) add(group, name, value);
  }
  std::vector<Difference> differences() && {
    std::erase_if(rows_, [](const Difference& row) {
      return std::ranges::all_of(row.values, [&](const auto& value) { return value == row.values[0]; });
    });
    return std::move(rows_);
  }

 private:
  std::size_t files_, file_ = 0;
  std::vector<Difference> rows_;
};

void add_configuration(const config::YamlNode& node, const std::string& path, Facts& facts) {
  if (node.kind != config::YamlNode::Kind::map) {
    facts.add("configuration", path, config::value_text(node));
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
    facts.add("configuration", "text", fmt::format("cannot be read; its hash is {:08x}", fnv1a(r.config_text)));
  }
  // Actual values override those in the text.
  facts.add("configuration", "measure.seed", std::to_string(r.seed));
  facts.add("configuration", "measure.rounds", std::to_string(r.rounds));
  facts.add("configuration", "measure.warmup_steps", std::to_string(r.warmup_steps));
  facts.add("configuration", "measure.steps", std::to_string(r.steps));
  facts.add("configuration", "measure.smallest_effect", fmt::format("{:g} %", 100 * r.smallest_effect));
}

std::string disturbance(const Exceeded& seen) {
  return seen.is_news() ? fmt::format("in {} of {} blocks", seen.blocks, seen.known) : "none seen";
}

void add_facts(const store::Result& r, Facts& facts) {
  facts.add("run", "backend", r.backend);
  facts.add("run", "model", config::in_words(r.model));
  facts.add("run", "ranks", std::to_string(r.ranks));
  facts.add("run", "nodes", std::to_string(r.nodes));
  facts.add("run", "state", store::name_of(r.state));
  facts.add("program", "version", r.tool_version);
  facts.add("identity", r.identity);
  facts.add("machine", "devices", devices_of(r));
  facts.add("machine", "hosts", hosts_of(r));
  facts.add(
      "machine", "threads per rank",
      join_or(distinct(r.rank_table, [](const auto& rank) { return std::to_string(rank.threads); }), ", ", "unknown"));
  facts.add("machine", "SM clock", clock_of(r, &machine::GpuStatistics::mean_sm_clock_hz));
  facts.add("machine", "SM clock possible", clock_of(r, &machine::GpuStatistics::max_possible_sm_clock_hz));
  facts.add("machine", "throttling",
            join_or(distinct(r.gpu, [](const auto& row) { return row.throttling; }), "; ", "none seen"));
  facts.add("machine", "other processes", disturbance(foreign_use(r)));
  facts.add("machine", "CPU time stolen by the host", disturbance(stolen_time(r)));
  facts.add("environment", r.environment);
  add_configuration(r, facts);
  for (const std::string& variable : r.variables) facts.add("variable", variable, "known");
  facts.add("tuning", r.tuning);
  const auto peak = [](const store::ResultCase& row) {
    return row.peak_flops_per_rank > 0 ? fmt::format("{:.4g} TFLOP/s", row.peak_flops_per_rank / 1e12) : "";
  };
  facts.add("MFU", "peak", join_or(distinct(r.cases, peak), ", ", "unknown"));
  facts.add("MFU", "peak source", r.peak_source);
  facts.add("MFU", "FLOP counted", r.flop_formula);
}

}  // namespace

std::vector<Difference> find_differences(std::span<const ComparedFile> files) {
  Facts facts(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    facts.begin_file(i);
    add_facts(*files[i].result, facts);
  }
  return std::move(facts).differences();
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
