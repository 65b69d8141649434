#include "analysis/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "config/model.h"

namespace harness::analysis {

namespace {

class Collector {
 public:
  explicit Collector(std::span<const ComparedFile> files) : files_(files) {}

  // `value` of each file, if they are not all alike; that of a file that has none is `none`.
  template <class Value>
  void add(const std::string& group, const std::string& name, const Value& value, const std::string& none = "") {
    std::vector<std::string> values;
    for (const ComparedFile& file : files_) values.push_back(value(*file.result));
    keep({group, name, std::move(values), none});
  }
  // Tables of names and values, name by name, in the order in which the names first occur.
  template <class Get>
  void add_pairs(const std::string& group, const Get& get) {
    const std::string absent = "absent";
    std::vector<std::string> names;
    std::set<std::string> seen;
    std::vector<std::map<std::string, std::string>> tables;
    for (const ComparedFile& file : files_) {
      const NameValues& pairs = get(*file.result);
      for (const auto& [name, value] : pairs) {
        if (seen.insert(name).second) names.push_back(name);
      }
      tables.emplace_back(pairs.begin(), pairs.end());
    }
    for (const std::string& name : names) {
      std::vector<std::string> values;
      for (const auto& table : tables) {
        const auto at = table.find(name);
        values.push_back(at == table.end() ? absent : at->second);
      }
      keep({group, name, std::move(values), absent});
    }
  }
  std::vector<Difference> take() { return std::move(differences_); }

 private:
  void keep(Difference found) {
    const auto& values = found.values;
    const bool alike = std::all_of(values.begin(), values.end(), [&](const auto& value) { return value == values[0]; });
    if (!alike) differences_.push_back(std::move(found));
  }

  std::span<const ComparedFile> files_;
  std::vector<Difference> differences_;
};

std::string model_of(const store::Result& r) {
  return config::in_words(r.model);
}

std::string workload_of(const store::Result& r) {
  const store::ResultCase* baseline = r.baseline();
  const std::string_view workload = baseline == nullptr ? "" : r.setting(*baseline, "workload");
  return workload.empty() ? "gpt" : std::string(workload);
}

// "8 x NVIDIA H200", whatever the ranks' order.
std::string devices_of(const store::Result& r) {
  std::map<std::string, int> counts;
  for (const store::ResultRank& rank : r.rank_table) ++counts[rank.device];
  std::vector<std::string> parts;
  for (const auto& [device, count] : counts) parts.push_back(fmt::format("{} x {}", count, device));
  return parts.empty() ? "unknown" : join(parts, ", ");
}

// Only the first few by name: 2,000 hosts would fill a screen.
std::string hosts_of(const store::Result& r) {
  constexpr std::size_t named = 6;
  std::set<std::string> sorted;
  for (const store::ResultRank& rank : r.rank_table) sorted.insert(rank.host);
  const std::vector<std::string> hosts(sorted.begin(), sorted.end());
  if (hosts.empty()) return "unknown";
  if (hosts.size() <= named) return join(hosts, ", ");
  return fmt::format("{} and {} more (of {}; list {:08x})", join(std::span(hosts).first(named), ", "),
                     hosts.size() - named, hosts.size(), fnv1a(join(hosts, "\n") + "\n") & 0xffffffff);
}

std::string threads_of(const store::Result& r) {
  std::set<std::int32_t> counts;
  for (const store::ResultRank& rank : r.rank_table) counts.insert(rank.threads);
  return counts.empty() ? "unknown" : fmt::format("{}", fmt::join(counts, ", "));
}

// Clocks wander by some MHz from block to block; they are rounded so that only a real difference shows.
std::string clock_of(const store::Result& r, double machine::GpuStatistics::*clock) {
  std::vector<double> values;
  for (const store::ResultGpu& row : r.gpu) {
    if (const double hz = row.together.*clock; std::isfinite(hz)) values.push_back(hz);
  }
  constexpr double step_hz = 15e6;  // what the clocks of NVIDIA's GPUs are multiples of
  return values.empty() ? "unknown" : fmt::format("{:.0f} MHz", std::round(median(values) / step_hz) * step_hz / 1e6);
}

std::string throttling_of(const store::Result& r) {
  std::set<std::string> reasons;
  for (const store::ResultGpu& row : r.gpu) {
    if (!row.throttling.empty()) reasons.insert(row.throttling);
  }
  return reasons.empty() ? "none seen" : join(std::vector<std::string>(reasons.begin(), reasons.end()), "; ");
}

std::string peaks_of(const store::Result& r) {
  std::set<double> peaks;
  for (const store::ResultCase& result_case : r.cases) {
    if (result_case.peak_flops_per_rank > 0) peaks.insert(result_case.peak_flops_per_rank);
  }
  std::vector<std::string> parts;
  for (const double peak : peaks) parts.push_back(fmt::format("{:.4g} TFLOP/s", peak / 1e12));
  return peaks.empty() ? "unknown" : join(parts, ", ");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    const std::size_t from = line.find_first_not_of(' ');
    if (from != std::string::npos && line[from] != '#') lines.push_back(line.substr(from));
  }
  return lines;
}

// The lines of one configuration that no other file has, comments apart.
std::string own_lines(const std::string& text, const std::set<std::string>& common) {
  constexpr std::size_t shown = 8;
  std::vector<std::string> own;
  for (const std::string& line : lines_of(text)) {
    if (!common.contains(line)) own.push_back(line);
  }
  if (own.empty()) return "no line of its own";
  const std::size_t more = own.size() > shown ? own.size() - shown : 0;
  own.resize(std::min(own.size(), shown));
  return join(own, " | ") + (more > 0 ? fmt::format(" | and {} more lines", more) : "");
}

void add_configuration(std::span<const ComparedFile> files, Collector& out) {
  std::set<std::string> common;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto lines = lines_of(files[i].result->config_text);
    const std::set<std::string> here(lines.begin(), lines.end());
    if (i == 0) {
      common = here;
    } else {
      std::erase_if(common, [&](const std::string& line) { return !here.contains(line); });
    }
  }
  out.add("configuration", "text", [&](const store::Result& r) { return own_lines(r.config_text, common); });
  out.add("configuration", "--set",
          [](const store::Result& r) { return r.overrides.empty() ? std::string("none") : join(r.overrides, "  "); });
}

// Variables that one version of the program has and another has not.
void add_variables(std::span<const ComparedFile> files, Collector& out) {
  std::set<std::string> all, everywhere;
  for (const ComparedFile& file : files) all.insert(file.result->variables.begin(), file.result->variables.end());
  for (const std::string& name : all) {
    const auto known = [&](const store::Result& r) {
      const auto& have = r.variables;
      return std::find(have.begin(), have.end(), name) == have.end() ? "unknown" : "known";
    };
    out.add("variable", name, known, "unknown");
  }
}

}  // namespace

std::vector<Difference> find_differences(std::span<const ComparedFile> files) {
  Collector out(files);
  out.add("run", "backend", [](const store::Result& r) { return r.backend; });
  out.add("run", "model", model_of);
  out.add("run", "ranks", [](const store::Result& r) { return std::to_string(r.ranks); });
  out.add("run", "nodes", [](const store::Result& r) { return std::to_string(r.nodes); });
  out.add("program", "version", [](const store::Result& r) { return r.tool_version; });
  out.add_pairs("identity", [](const store::Result& r) -> const NameValues& { return r.identity; });
  out.add("machine", "devices", devices_of);
  out.add("machine", "hosts", hosts_of);
  out.add("machine", "threads per rank", threads_of);
  out.add("machine", "SM clock",
          [](const store::Result& r) { return clock_of(r, &machine::GpuStatistics::mean_sm_clock_hz); });
  out.add("machine", "SM clock possible",
          [](const store::Result& r) { return clock_of(r, &machine::GpuStatistics::max_possible_sm_clock_hz); });
  out.add("machine", "throttling", throttling_of);
  out.add_pairs("environment", [](const store::Result& r) -> const NameValues& { return r.environment; });
  add_configuration(files, out);
  add_variables(files, out);
  out.add_pairs("tuning", [](const store::Result& r) -> const NameValues& { return r.tuning; });
  out.add("measure", "seed", [](const store::Result& r) { return std::to_string(r.seed); });
  out.add("measure", "rounds", [](const store::Result& r) { return std::to_string(r.rounds); });
  out.add("measure", "warm-up steps", [](const store::Result& r) { return std::to_string(r.warmup_steps); });
  out.add("measure", "timed steps", [](const store::Result& r) { return std::to_string(r.steps); });
  out.add("measure", "smallest effect",
          [](const store::Result& r) { return fmt::format("{:g} %", 100 * r.smallest_effect); });
  out.add("measure", "state", [](const store::Result& r) { return std::string(store::name_of(r.state)); });
  out.add("MFU", "peak", peaks_of);
  out.add("MFU", "peak source", [](const store::Result& r) { return r.peak_source; });
  out.add("MFU", "FLOP counted", [](const store::Result& r) { return r.flop_formula; });
  return out.take();
}

std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, const MustMatch& what) {
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
  // Other workloads use a model only to derive sizes from it, if at all.
  if (std::ranges::all_of(files, [](const ComparedFile& file) { return workload_of(*file.result) == "gpt"; })) {
    must_match("Models", model_of);
  }
  must_match("Processes", [](const store::Result& r) {
    if (!shares_processes(r)) return std::string("one for each block");
    const bool mixed = r.find_case(store::alone_name) != nullptr;
    return std::string("one for the blocks of a round") + (mixed ? ", others for cases that need their own" : "");
  });
  if (what.rank_counts) must_match("Numbers of ranks", [](const store::Result& r) { return std::to_string(r.ranks); });
  return reasons;
}

std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case) {
  std::vector<SettingDifference> differences;
  for (const std::string& variable : first.variables) {
    if (std::ranges::find(second.variables, variable) == second.variables.end()) continue;
    const std::string here(first.setting(first_case, variable)), there(second.setting(second_case, variable));
    if (here != there) differences.push_back({variable, here, there});
  }
  return differences;
}

std::string settings_in_words(const std::vector<SettingDifference>& differences) {
  std::vector<std::string> words;
  for (const SettingDifference& difference : differences) {
    words.push_back(fmt::format("{} is {} and {}", difference.variable, difference.first, difference.second));
  }
  return join(words, ", ");
}

void Exceeded::count(std::size_t block, double value, double limit) {
  if (std::isnan(value)) return;
  ++known;
  if (value > limit) ++blocks;
  if (value <= most) return;
  most = value;
  worst = block;
}

bool Exceeded::is_news() const {
  constexpr double few = 0.1;
  return blocks > few * known;
}

Exceeded foreign_use(const store::Result& result) {
  constexpr double much = 0.05;  // of the cores
  std::map<std::string, std::int32_t> cores;
  for (const store::ResultRank& rank : result.rank_table) cores[rank.host] = std::max(cores[rank.host], rank.cores);
  Exceeded foreign;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    const machine::Conditions& row = result.conditions[i];
    if (result.blocks[i].status != store::BlockStatus::ok) continue;
    const std::int32_t of_host = cores[row.busiest_host];
    if (of_host > 0) foreign.count(i, row.foreign_cores, much * of_host);
  }
  return foreign;
}

Exceeded stolen_time(const store::Result& result) {
  Exceeded steal;
  for (std::size_t i = 0; i < std::min(result.conditions.size(), result.blocks.size()); ++i) {
    if (result.blocks[i].status == store::BlockStatus::ok)
      steal.count(i, result.conditions[i].steal_share, much_stolen);
  }
  return steal;
}

namespace {

// All runs of a side together.
template <class Of>
Exceeded over(std::span<const ComparedFile> side, Of of_result) {
  Exceeded all;
  for (const ComparedFile& file : side) {
    const Exceeded one = of_result(*file.result);
    all.known += one.known;
    all.blocks += one.blocks;
  }
  return all;
}

Exceeded throttled_rounds_of(std::span<const ComparedFile> side) {
  Exceeded all;
  for (const ComparedFile& file : side) {
    all.known += file.result->rounds;
    all.blocks += static_cast<int>(file.summary->throttled_rounds.size());
  }
  return all;
}

// The baseline's, by the runs that measured one; nothing where a peak was stated.
std::optional<double> measured_peak(std::span<const ComparedFile> side) {
  std::vector<double> peaks;
  for (const ComparedFile& file : side) {
    const store::ResultCase* baseline = file.result->baseline();
    if (baseline != nullptr && baseline->peak_flops_per_rank > 0 && file.result->peak_source.starts_with("measured"))
      peaks.push_back(baseline->peak_flops_per_rank);
  }
  if (peaks.empty()) return std::nullopt;
  return median(peaks);
}

void add_disturbance(const Exceeded& first, const Exceeded& second, const char* what, const char* unit,
                     std::vector<std::string>& sentences) {
  if (first.is_news() == second.is_news()) return;
  const bool of_second = second.is_news();
  const Exceeded &worse = of_second ? second : first, &other = of_second ? first : second;
  sentences.push_back(fmt::format("{} was disturbed: {} in {} of {} {} ({}: in {} of {})", of_second ? "B" : "A", what,
                                  worse.blocks, worse.known, unit, of_second ? "A" : "B", other.blocks, other.known));
}

}  // namespace

std::vector<std::string> how_machines_differ(std::span<const ComparedFile> first,
                                             std::span<const ComparedFile> second) {
  std::vector<std::string> sentences;
  add_disturbance(over(first, foreign_use), over(second, foreign_use), "other processes kept cores busy", "blocks",
                  sentences);
  add_disturbance(over(first, stolen_time), over(second, stolen_time),
                  "the host of the virtual machine gave CPU time to others", "blocks", sentences);
  add_disturbance(throttled_rounds_of(first), throttled_rounds_of(second), "GPUs were throttled", "rounds", sentences);
  const std::optional<double> of_first = measured_peak(first), of_second = measured_peak(second);
  constexpr double alike = 1.25;  // a peak is measured once, within seconds
  if (of_first && of_second && std::max(*of_first, *of_second) > alike * std::min(*of_first, *of_second)) {
    const bool b_is_slower = *of_second < *of_first;
    const double low = std::min(*of_first, *of_second), high = std::max(*of_first, *of_second);
    sentences.push_back(
        fmt::format("The machine of {} was slower: its measured peak is {:.2g} times lower ({} against {})",
                    b_is_slower ? "B" : "A", high / low, show_flops(low), show_flops(high)));
  }
  return sentences;
}

}  // namespace harness::analysis
