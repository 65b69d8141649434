#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/backend.h"
#include "config/registry.h"

namespace harness::report {
namespace {

using R = store::Result;
using C = analysis::CaseSummary;
using Value = std::optional<double>;
using enum Unit;

Value known(const Value& value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}
Value positive(double value) {
  return value > 0 ? known(value) : std::nullopt;
}

// Accessors for a member of the case's summary, of the case itself, or of an optional part: its effect, its rates.
template <auto member>
Value of_row(const R&, const C& c) {
  return known(c.*member);
}
template <auto member>
Value above_zero(const R&, const C& c) {
  return positive(c.*member);
}
template <auto member>
Value planned(const R& r, const C& c) {
  return positive(static_cast<double>(r.at(c).*member));
}
template <auto part, auto member>
Value within(const R&, const C& c) {
  const auto& known_part = c.*part;
  return known_part ? known((*known_part).*member) : std::nullopt;
}
// Single operations train nothing.
template <auto member>
Value of_training(const R& r, const C& c) {
  return r.points.empty() ? known(c.*member) : std::nullopt;
}

Value of_gpu(const R& r, double value) {
  return r.ranks_are_gpus() ? positive(value) : std::nullopt;
}

// A prediction has no results to check.
Value errors(const R& r, const C& c) {
  if (config::traits_of(r.backend).predicts()) return std::nullopt;
  return analysis::failed_blocks(r, c.case_index);
}

Value share_of_limit(const R&, const C& c) {
  if (!c.rates || !c.rates->bus_bytes_per_s || !c.rates->limit_bytes_per_s) return std::nullopt;
  return *c.rates->bus_bytes_per_s / *c.rates->limit_bytes_per_s;
}

// The speedup of a change at equal work. Sizes are not compared with each other.
Value speedup(const R& r, const C& c) {
  const bool compares = c.role == store::CaseRole::change && c.effect && c.effect->ratio > 0;
  if (!compares || config::purpose_of(r.at(c).variable) == config::Purpose::size) return std::nullopt;
  return known(1 / c.effect->ratio);
}

// Whether it has a layout, and what follows from it. A case that is impossible here has none.
bool is_planned(const R& r, const C& c) {
  return r.at(c).ranks > 0;
}

Value goodput(const R& r, const C& c) {
  const bool pads = std::ranges::any_of(r.cases, [](const store::ResultCase& of) { return of.goodput < 1; });
  return pads && is_planned(r, c) ? Value(r.at(c).goodput) : std::nullopt;
}

template <program::Axis axis>
Metric size_along() {
  const program::AxisRow& row = program::row_of(axis);
  return {row.key, count,
          [](const R& r, const C& c) { return is_planned(r, c) ? Value(r.at(c).layout[axis]) : std::nullopt; },
          row.help};
}
static_assert(program::visible_axes.size() == 3, "each has a line in the table below");

// Whether a spreadsheet would evaluate the text as a formula.
bool is_formula(std::string_view text) {
  const std::string_view rest = trim(text);
  if (rest.empty() || std::string_view("=+-@").find(rest.front()) == std::string_view::npos) return false;
  return !number_in<double>(rest.substr(rest.front() == '+' ? 1 : 0));
}

// CSV cells as in RFC 4180. Texts are cleaned, quoted if necessary, and prefixed with an apostrophe if a spreadsheet
// would take them for a formula. Numbers have full precision; a missing value is empty.
std::string cell(std::string_view text) {
  std::string clean = cleaned(text);
  if (is_formula(clean)) clean.insert(0, "'");
  const bool plain = clean.find_first_of(",\"\r\n") == std::string::npos;
  return plain ? clean : '"' + replaced(clean, {{'"', "\"\""}}) + '"';
}
std::string cell(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

}  // namespace

Measured measured_by(const store::Result& result) {
  if (result.points.empty()) return Measured::training;
  const bool on_bus = std::ranges::any_of(result.points, [](const store::ResultPoint& p) { return p.bus_factor > 0; });
  return on_bus ? Measured::collective : Measured::operation;
}

std::optional<double> efficiency(const store::Result& result, const analysis::CaseSummary& row) {
  const Value faster = speedup(result, row);
  const store::ResultCase* baseline = result.baseline();
  const int ranks = result.at(row).ranks;
  if (!faster || baseline == nullptr || baseline->ranks <= 0 || ranks <= 0 || ranks == baseline->ranks)
    return std::nullopt;
  return *faster * baseline->ranks / ranks;
}

std::span<const Metric> case_metrics() {
  using analysis::Rates;
  using store::ResultCase;
  static const std::vector<Metric> metrics{
      {"blocks", count, of_row<&C::blocks>, "finished blocks"},
      {"step_seconds", seconds, of_row<&C::step_seconds>, "the median over blocks of a block's median step time, s",
       "step {}", 70},
      {"tails.p95", number, within<&C::tails, &analysis::Tails::p95>,
       "95 % of the timed steps take at most so many times their block's median; null below 100 steps", "p95", 10},
      {"tails.p99", number, within<&C::tails, &analysis::Tails::p99>, "the same of 99 %", "p99", 10},
      {"rates.seconds", seconds, within<&C::rates, &Rates::operation_seconds>,
       "one operation: step_seconds / repetitions, s", "time {}", 72},
      {"rates.bytes", bytes, within<&C::rates, &Rates::bytes>,
       "size of one operation: a collective's as nccl-tests counts it, else operands and result"},
      {"rates.count", count,
       [](const R&, const C& c) { return c.rates ? positive(static_cast<double>(c.rates->count)) : std::nullopt; },
       "elements of a collective as nccl-tests counts them; null where it is not known"},
      {"rates.errors", count, errors, "blocks that failed: a wrong result fails its block; null of a prediction"},
      {"rates.algorithm_bytes_per_s", gigabytes_s, within<&C::rates, &Rates::algorithm_bytes_per_s>,
       "rates.bytes / rates.seconds; the algbw of nccl-tests", "algbw GB/s", 26},
      {"rates.bus_bytes_per_s", gigabytes_s, within<&C::rates, &Rates::bus_bytes_per_s>,
       "what a link carries; the busbw of nccl-tests", "busbw GB/s", 64},
      {"rates.limit_bytes_per_s", gigabytes_s, within<&C::rates, &Rates::limit_bytes_per_s>,
       "the most that the stated links allow of it", "limit GB/s", 28},
      {"rates.share_of_limit", share, share_of_limit, "rates.bus_bytes_per_s / rates.limit_bytes_per_s", "of limit",
       40},
      {"tokens_per_second", number, above_zero<&C::tokens_per_second>, "tokens_per_step / step_seconds", "tokens/s",
       24},
      {"tokens_per_second_per_gpu", number,
       [](const R& r, const C& c) { return of_gpu(r, c.tokens_per_second / r.at(c).ranks); },
       "tokens_per_second / ranks_used where ranks are GPUs; else null", "tokens/s/GPU", 22},
      {"tflops_per_gpu", number, [](const R& r, const C& c) { return of_gpu(r, c.flops_per_rank / 1e12); },
       "flops_per_rank / 1e12 where ranks are GPUs; else null"},
      {"flops_per_rank", flops, above_zero<&C::flops_per_rank>, "model FLOP/s of a rank", "{}/rank", 20},
      {"mfu", share, of_row<&C::mfu>, "model FLOP / (step time x ranks x peak), by flop_formula", "MFU", 62},
      {"mfu_noncausal", share, of_row<&C::mfu_noncausal>, "the same with attention counted whole, as older tables do"},
      {"hfu", share, of_row<&C::hfu>, "the same with recomputation counted"},
      {"goodput", share, goodput,
       "tokens / positions that a step computes, of which the others are padding; null where no case has any",
       "goodput", 61},
      {"gpu_utilisation", share, of_row<&C::gpu_utilisation>,
       "as NVML reports it, median over blocks of the mean over ranks", "GPU busy", 18},
      {"sm_clock_hz", hertz, of_row<&C::sm_clock_hz>, "median over blocks of the mean SM clock, Hz", "SM MHz", 14},
      {"power_w", watts, of_row<&C::power_w>, "median over blocks of the mean power of a GPU, W", "W/GPU", 13},
      {"tokens_per_joule", number, above_zero<&C::tokens_per_joule>, "tokens of the timed steps / energy of all GPUs",
       "tokens/J", 16},
      {"peak_memory_bytes", bytes, above_zero<&C::peak_memory_bytes>, "the largest of any rank in any block",
       "memory {}", 12},
      {"planned_memory_bytes", bytes, planned<&ResultCase::planned_memory_bytes>,
       "what the plan needs on the largest rank"},
      {"effect.ratio", number, within<&C::effect, &analysis::Effect::ratio>,
       "time of the case over the baseline's: per token, byte on the bus or FLOP where the amounts differ"},
      {"effect.low", number, within<&C::effect, &analysis::Effect::low>, "lower end of its interval"},
      {"effect.high", number, within<&C::effect, &analysis::Effect::high>, "upper end of its interval"},
      {"effect.rounds", count, within<&C::effect, &analysis::Effect::rounds>, "blocks of the case that it rests on"},
      {"effect.rounds_needed", count, within<&C::effect, &analysis::Effect::rounds_needed>,
       "for an unresolved case, about how many rounds would settle it (1000: not with this noise); else 0"},
      {"speedup", number, speedup,
       "1 / effect.ratio: how many times as fast the same work is done; null of the control and of sizes", "speed-up",
       46},
      {"efficiency", share, efficiency,
       "speedup / (ranks of the case / ranks of the baseline): 1 where every rank is as useful; null on as "
       "many ranks",
       "efficiency", 44},
      {"settled_after", count, of_row<&C::settled_after>,
       "the look, by its rounds, that settled the verdict; 0: none did, or none was declared"},
      {"first_loss", number, of_training<&C::first_loss>, "loss of the first step of the first block"},
      {"last_loss", number, of_training<&C::last_loss>, "loss of the last timed step, mean over blocks"},
      {"ranks_used", count, planned<&ResultCase::ranks>, "ranks of the case"},
      size_along<program::visible_axes[0]>(),
      size_along<program::visible_axes[1]>(),
      size_along<program::visible_axes[2]>(),
      {"micro_batches", count, planned<&ResultCase::micro_batches>, "micro-batches of a step"},
      {"tokens_per_step", number, planned<&ResultCase::tokens_per_step>, "tokens of a step, all ranks"},
      {"model_flop_per_step", number, planned<&ResultCase::model_flop_per_step>,
       "FLOP of a step, all ranks, by flop_formula"},
      {"noncausal_flop_per_step", number, planned<&ResultCase::noncausal_flop_per_step>,
       "the same with attention counted whole"},
      {"hardware_flop_per_step", number, planned<&ResultCase::hardware_flop_per_step>,
       "the same with recomputation counted"},
      {"peak_flops_per_rank", flops, planned<&ResultCase::peak_flops_per_rank>,
       "peak FLOP/s of a rank, dense; null where it is unknown"},
  };
  return metrics;
}

bool belongs(const Metric& metric, const store::Result& result) {
  return !result.points.empty() || !metric.key.starts_with("rates.");
}

std::string show_csv(const store::Result& result, const analysis::Summary& summary) {
  std::vector<std::string> head{"case", "variable", "value", "status", "verdict"};
  for (const Metric& metric : case_metrics()) {
    if (belongs(metric, result)) head.push_back(replaced(metric.key, {{'.', "_"}}));
  }
  if (!result.points.empty()) head.emplace_back("operation");
  for (const std::string& variable : result.variables) head.push_back(cell(variable));
  head.emplace_back("reason");
  std::string out = join(head, ",") + "\n";
  for (const analysis::CaseSummary& row : summary.cases) {
    const store::ResultCase& result_case = result.at(row);
    std::vector<std::string> cells{cell(row.name), cell(result_case.variable), cell(result_case.value),
                                   cell(store::name_of(row.status)), cell(analysis::name_of(row.judgement.verdict))};
    for (const Metric& metric : case_metrics()) {
      if (belongs(metric, result)) cells.push_back(cell(metric.value(result, row)));
    }
    if (!result.points.empty()) cells.push_back(cell(row.rates ? row.rates->operation : ""));
    for (const std::string& setting : result_case.settings) cells.push_back(cell(setting));
    cells.push_back(cell(row.reason));
    out += join(cells, ",") + "\n";
  }
  return out;
}

}  // namespace harness::report
