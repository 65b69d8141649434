#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/published.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "config/model.h"
#include "config/registry.h"
#include "report/export.h"

namespace harness::report {
namespace {

std::string run_line(const store::Result& result, const analysis::Summary& summary) {
  const std::string subject = result.points.empty()
                                  ? fmt::format("model {} ({})", result.model.name, config::in_words(result.model))
                                  : subject_of(result);
  const std::string blocks = summary.predicted
                                 ? "a step of each case in virtual time"
                                 : fmt::format("{} of {} warm-up and {}, seed {}", plural(result.rounds, "round"),
                                               result.warmup_steps, plural(result.steps, "timed step"), result.seed);
  return fmt::format("{}: {} on {} of {}; {}; {}", result.name, subject, plural(result.ranks, "rank"),
                     plural(result.nodes, "node"), blocks, result.created);
}

// Lists the non-default settings that all cases share, and the baseline's values of those that differ.
void settings_lines(const store::Result& result, std::vector<std::string>& lines) {
  std::vector<std::string> common, swept;
  for (std::size_t v = 0; v < result.variables.size() && !result.cases.empty(); ++v) {
    const std::string& first = result.cases[0].settings[v];
    const bool differs =
        std::ranges::any_of(result.cases, [&](const store::ResultCase& other) { return other.settings[v] != first; });
    const config::Variable* variable = config::find_variable(result.variables[v]);
    const bool is_default = variable != nullptr && (variable->fixed || first == variable->print(config::Settings()));
    if (differs || !is_default) (differs ? swept : common).push_back(result.variables[v] + "=" + first);
  }
  if (!common.empty()) lines.push_back("All cases, beside defaults: " + join(common, "  "));
  if (!swept.empty()) lines.push_back("Baseline: " + join(swept, "  "));
}

// Explains the columns of single operations and the source of the limit.
std::string rates_line(const store::Result& result) {
  const store::ResultPoint& first = result.points.front();
  const std::string time = fmt::format("time = step time / {} repetitions", first.repetitions);
  if (first.bus_factor == 0) return time + "; algbw = (operands + result, each moved once) / time.";
  const auto limited =
      std::ranges::find_if(result.points, [](const store::ResultPoint& p) { return p.limit_bytes_per_s > 0; });
  return fmt::format(
      "{}, of the slowest rank of each step; algbw = size / time; busbw = algbw x "
      "bytes on a link per byte of the size; both as in nccl-tests. {}",
      time,
      limited == result.points.end()
          ? "No limit of the links is known: state it as `fabric` in the configuration."
          : fmt::format("limit = what the links allow in one direction ({}).", limited->limit_source));
}

std::string mfu_line(const store::Result& result) {
  std::vector<double> peaks;
  for (const store::ResultCase& result_case : result.cases) {
    if (result_case.peak_flops_per_rank > 0) peaks.push_back(result_case.peak_flops_per_rank);
  }
  if (peaks.empty()) {
    return "MFU is absent: the peak rate of a rank is unknown. State it with a hardware file or peak_flops in the "
           "configuration.";
  }
  const auto [low, high] = std::ranges::minmax(peaks);
  const Scale scale = scale_of_flops(peaks);
  const std::string peak = low == high ? scale.print(low) : scale.print(low) + " to " + scale.print(high);
  return fmt::format("MFU = model FLOP / (step time x ranks x peak); FLOP counted {}; peak {} {} per rank, dense ({}).",
                     result.flop_formula, peak, scale.unit, result.peak_source);
}

// Whether a change does a different amount of work than the case it is compared with.
bool works_differ(const store::Result& result) {
  return std::ranges::any_of(result.points, [&](const store::ResultPoint& point) {
    const store::ResultPoint* reference = result.find_point(result.at(point).reference);
    const store::ResultPoint& first = reference == nullptr ? point : *reference;
    const auto flop = [&](const store::ResultPoint& p) {
      return result.at(p).model_flop_per_step / result.at(p).ranks;
    };
    return point.bytes * point.bus_factor != first.bytes * first.bus_factor || flop(point) != flop(first) ||
           point.repetitions != first.repetitions;
  });
}

std::string change_line(const store::Result& result, const analysis::Summary& summary) {
  if (summary.predicted) {
    return fmt::format(
        "Change: {} against the baseline, both predicted. A prediction has neither interval nor verdict; {} a change "
        "is too close to call.",
        what_changes(result), analysis::within_threshold_words(result.smallest_effect));
  }
  const int comparisons = analysis::declared_comparisons(result);
  std::string line =
      fmt::format("Change: {} against the baseline{}, {}; {:.6g} % intervals", what_changes(result),
                  analysis::is_grid(result) ? " at the same size" : "",
                  summary.levels.empty() ? "paired within rounds" : "each block at the machine's level of its time",
                  100 * result.confidence);
  if (comparisons > 1) line += fmt::format(", which hold for all {} comparisons together", comparisons);
  line += fmt::format(
      "; a verdict must clear {}. The change counts: it compares blocks close in time, where medians mix all blocks.",
      analysis::threshold_words(result.smallest_effect));
  if (!summary.levels.empty()) {
    const auto& most = *std::ranges::max_element(summary.levels, {}, &analysis::LevelFindings::block_deviation);
    line += fmt::format(" A block is off the machine's level by {} (standard deviation).",
                        percent(most.block_deviation, 2));
  } else if (std::isfinite(summary.noise)) {
    line += fmt::format(" The baseline and its copy differ by {} (standard deviation) between rounds.",
                        percent(summary.noise, 2));
  }
  if (!result.looks.empty())
    line += fmt::format(" The sweep looks after these rounds: {}; what is settled leaves.",
                        replaced(result.looks, {{',', ", "}}));
  return line;
}

std::string published_of(const store::Result& result, const analysis::Summary& summary) {
  const std::string line = analysis::published_line(result, summary);
  return line.empty() ? "" : fmt::format("Baseline: {}.", line);
}

std::string calibration_line(const store::Result& result) {
  const std::string calibration = value_of(result.identity, "calibration");
  if (calibration.empty()) return "";
  const std::string error = value_of(result.identity, "expected_error");
  return fmt::format("Calibration: {}{}.", calibration, error.empty() ? "" : "; expected error: " + error);
}

// Consecutive ranks on one host with the same device share a line.
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

// The words of --only, if the sweep was started with --only or with the sizes -b and -e, which choose cases, too.
std::string selection_of(const store::Result& result) {
  const auto has = [&](std::string_view option) { return result.argv.find(option) != std::string::npos; };
  if (!has(" --only") && !has(" -b") && !has(" --minbytes")) return "";
  std::string words = " --only";
  for (const std::string& name : analysis::names_to_choose(result)) words += " " + shell_word(one_line(name));
  return words;
}

std::string command_line(const store::Result& result) {
  const std::string config = shell_word(one_line(result.config_path));
  std::string line = fmt::format("mpirun -np {} harness sweep {}", result.ranks, config);
  if (config::traits_of(result.backend).predicts()) {
    const auto per_node = std::ranges::count(result.rank_table, 0, &store::ResultRank::node);
    line = fmt::format("harness sweep {} --ranks {} --ranks-per-node {}", config, result.ranks, per_node);
  }
  for (const std::string& setting : result.overrides) line += " --set " + shell_word(one_line(setting));
  if (!result.extended.empty()) line += fmt::format(" --rounds {}", result.rounds);  // added by --resume --rounds
  return line + selection_of(result);
}

std::string channels_of(const store::ResultNcclCall& call) {
  if (call.first_channel < 0) return "";
  return call.first_channel == call.last_channel ? std::to_string(call.first_channel)
                                                 : fmt::format("{}–{}", call.first_channel, call.last_channel);
}

Table calls_table(const store::Result& result) {
  using Row = store::ResultNcclCall;
  const std::vector<Row>& calls = result.nccl_calls;
  Table table;
  table.add({"case", true}, calls, [&](const Row& row) { return result.at(row).name; });
  table.add({"collective", true}, calls,
            [](const Row& row) { return row.function.empty() ? "not logged" : row.function; });
  table.add({"size"}, calls, [](const Row& row) { return show_bytes(static_cast<double>(row.bytes)); });
  table.add({"algorithm", true}, calls, [](const Row& row) { return row.algorithm; });
  table.add({"protocol", true}, calls, [](const Row& row) { return row.protocol; });
  table.add({"channels"}, calls, channels_of);
  table.add({"logged"}, calls, [](const Row& row) { return std::to_string(row.calls); });
  return table;
}

// All facts of the baseline, and those of other cases that differ from it.
Table facts_table(const store::Result& result) {
  std::set<std::pair<std::string, std::string>> baseline;  // several facts may have one name: warnings
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (result.at(fact).role() == store::CaseRole::baseline) baseline.emplace(fact.name, fact.value);
  }
  Table table{{{"case", true}, {"what", true}, {"value", true}}, {}};
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    const bool is_news = !baseline.contains({fact.name, fact.value});
    if (is_news || result.at(fact).role() == store::CaseRole::baseline)
      table.rows.push_back({result.at(fact).name, fact.name, fact.value});
  }
  return table;
}

// A collapsed table of names and values; nothing if it has no row.
void add_pairs(const NameValues& pairs, const char* caption, const char* heading, Section& section) {
  Table table{{{heading, true}, {"value", true}}, {}};
  for (const auto& [name, value] : pairs) {
    if (!value.empty()) table.rows.push_back({name, value});
  }
  if (!table.rows.empty()) section.add(Numbers{caption, std::move(table), true});
}

}  // namespace

std::string backend_line(const store::Result& result) {
  const config::BackendTraits& traits = config::traits_of(result.backend);
  if (traits.caveat.empty()) return fmt::format("Backend {}.", result.backend);
  std::string line = fmt::format("Backend {}: {}", result.backend, traits.caveat);
  if (traits.predicts() && !result.ranks_are_gpus()) {
    line += fmt::format(" It stands for backend {}, whose ranks are CPU cores: it says nothing about a GPU.",
                        result.step_backend());
  }
  return line;
}

std::string what_changes(const store::Result& result) {
  if (works_differ(result)) return "time" + per_what(result);
  const bool batches_differ = std::ranges::any_of(result.cases, [&](const store::ResultCase& result_case) {
    return result_case.tokens_per_step > 0 && result_case.tokens_per_step != result.cases[0].tokens_per_step;
  });
  return batches_differ ? "time per token (batches differ)" : "step time";
}

std::string per_what(const store::Result& result) {
  if (!works_differ(result)) return "";
  return measured_by(result) == Measured::collective ? " per byte on the bus" : " per FLOP";
}

std::string subject_of(const store::Result& result) {
  return result.points.empty() ? result.model.name : "workload " + analysis::workload_of(result);
}

std::vector<std::string> short_context(const store::Result& result, const analysis::Summary& summary) {
  std::string text = fmt::format("{}: {} on {} of {}, backend {}", result.name, subject_of(result),
                                 plural(result.ranks, "rank"), plural(result.nodes, "node"), result.backend);
  if (summary.predicted) text += ", predicted, not measured";
  if (!result.ranks_are_gpus()) text += ": nothing here is about a GPU";
  text += ".";
  if (const std::string error = value_of(result.identity, "expected_error"); !error.empty())
    text += fmt::format(" Expected error: {}.", error);
  if (summary.predicted) {
    text += fmt::format(" A change {} is too close to call.", analysis::within_threshold_words(result.smallest_effect));
  } else if (!analysis::sweeps_sizes_alone(result)) {
    text += fmt::format(" {}; a verdict must clear {}.", plural(result.rounds, "round"),
                        analysis::threshold_words(result.smallest_effect));
  }
  std::vector<std::string> lines{text + " -v says more.", published_of(result, summary)};
  std::erase(lines, "");
  return lines;
}

std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary) {
  std::vector<std::string> lines{backend_line(result), run_line(result, summary), calibration_line(result)};
  if (result.sessions > 1)
    lines.push_back(fmt::format("Resumed: measured in {} sessions; a change compares blocks of one session only.",
                                result.sessions));
  settings_lines(result, lines);
  if (!result.points.empty()) lines.push_back(rates_line(result));
  if (measured_by(result) != Measured::collective) lines.push_back(mfu_line(result));
  lines.push_back(published_of(result, summary));
  if (!analysis::sweeps_sizes_alone(result)) lines.push_back(change_line(result, summary));
  std::erase(lines, "");
  return lines;
}

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
