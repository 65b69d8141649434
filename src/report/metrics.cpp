#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/summary.h"
#include "config/registry.h"

namespace harness::report {
namespace {

using Value = std::optional<double>;
using enum Unit;
using enum Measured;

Value finite(double value) {
  return std::isfinite(value) ? Value(value) : std::nullopt;
}
Value positive(double value) {
  return value > 0 ? finite(value) : std::nullopt;
}
template <class T>
Value of_effect(const analysis::CaseSummary& row, T analysis::Effect::*member) {
  return row.effect ? finite((*row.effect).*member) : std::nullopt;
}

Value of_gpu(const store::Result& result, double value) {
  return result.ranks_are_gpus() ? positive(value) : std::nullopt;
}

// A step that computes nothing that is counted has no share of the peak.
Value of_flop(const store::Result& result, const analysis::CaseSummary& row, Value value) {
  return result.at(row).model_flop_per_step > 0 ? value : std::nullopt;
}
// Single operations train nothing.
Value of_training(const store::Result& result, double value) {
  return result.points.empty() ? finite(value) : std::nullopt;
}

// How many times as fast a change does the same work. A size is not faster than another.
Value speedup_of(const store::Result& result, const analysis::CaseSummary& row) {
  if (row.role != store::CaseRole::change) return std::nullopt;
  if (config::purpose_of(result.at(row).variable) == config::Purpose::size) return std::nullopt;
  return row.effect && row.effect->ratio > 0 ? finite(1 / row.effect->ratio) : std::nullopt;
}

Value goodput_of(const store::Result& result, const analysis::CaseSummary& row) {
  const bool pads = std::ranges::any_of(result.cases, [](const store::ResultCase& c) { return c.goodput < 1; });
  return pads ? Value(result.at(row).goodput) : std::nullopt;
}

// Short names for the parameters of the functions below.
using R = store::Result;
using C = analysis::CaseSummary;

// In CSV and JSON alone.
Metric plain(std::string_view key, Unit unit, std::string_view help, Value (*value)(const R&, const C&)) {
  return {.key = key, .unit = unit, .value = value, .help = help};
}

template <program::Axis axis>
Metric size_along() {
  const program::AxisRow& row = program::row_of(axis);
  return plain(row.key, count, row.help, [](const R& r, const C& c) -> Value { return r.at(c).layout[axis]; });
}
static_assert(program::visible_axes.size() == 3, "each has a line in the table below");

Scale scale_for(Unit unit, std::span<const double> values) {
  switch (unit) {
    case seconds:
      return scale_of_seconds(values);
    case flops:
      return scale_of_flops(values);
    case bytes:
      return scale_of_bytes(values);
    case gigabytes_s:
      return {"GB/s", 1e9};
    case hertz:
      return {"MHz", 1e6};
    case watts:
      return {"W", 1};
    case share:
    case number:
    case count:
      break;
  }
  return {};
}

}  // namespace

Measured measured_by(const store::Result& result) {
  if (result.points.empty()) return training;
  const bool on_bus = std::ranges::any_of(result.points, [](const store::ResultPoint& p) { return p.bus_factor > 0; });
  return on_bus ? collective : operation;
}

std::span<const Metric> case_metrics() {
  static const std::vector<Metric> metrics{
      plain("blocks", count, "finished blocks", [](const R&, const C& c) -> Value { return c.blocks; }),
      {.key = "step_seconds",
       .column = {"step {}", 70},
       .name = "step time",
       .unit = seconds,
       .value = [](const R&, const C& c) { return finite(c.step_seconds); },
       .help = "the median over blocks of a block's median step time, s"},
      {.key = "tails.p95",
       .column = {"p95", 10},
       .name = "p95 of the steps / median",
       .unit = number,
       .value = [](const R&, const C& c) { return c.tails ? Value(c.tails->p95) : std::nullopt; },
       .help = "95 % of the timed steps take at most so many times their block's median; null below 100 steps"},
      {.key = "tails.p99",
       .column = {"p99", 10},
       .name = "p99 of the steps / median",
       .unit = number,
       .value = [](const R&, const C& c) { return c.tails ? Value(c.tails->p99) : std::nullopt; },
       .help = "the same of 99 %"},
      {.key = "rates.seconds",
       .column = {"time {}", 72},
       .name = "time of one operation",
       .unit = seconds,
       .value = [](const R&, const C& c) { return c.rates ? finite(c.rates->operation_seconds) : std::nullopt; },
       .help = "one operation: step_seconds / repetitions, s"},
      plain("rates.bytes", bytes,
            "size of one operation: a collective's as nccl-tests counts it, else operands and result",
            [](const R&, const C& c) { return c.rates ? finite(c.rates->bytes) : std::nullopt; }),
      plain(
          "rates.count", count, "elements of a collective as nccl-tests counts them; null where it is not known",
          [](const R&, const C& c) { return c.rates ? positive(static_cast<double>(c.rates->count)) : std::nullopt; }),
      plain("rates.errors", count, "blocks that failed: a wrong result fails its block",
            [](const R& r, const C& c) -> Value { return analysis::failed_blocks(r, c.case_index); }),
      {.key = "rates.algorithm_bytes_per_s",
       .column = {"algbw GB/s", 26},
       .column_of_operations = {"GB/s"},
       .name = "size / time",
       .unit = gigabytes_s,
       .value = [](const R&, const C& c) { return c.rates ? finite(c.rates->algorithm_bytes_per_s) : std::nullopt; },
       .help = "rates.bytes / rates.seconds; the algbw of nccl-tests"},
      {.key = "rates.bus_bytes_per_s",
       .column = {"busbw GB/s", 64},
       .name = "bus bandwidth",
       .unit = gigabytes_s,
       .value = [](const R&, const C& c) { return c.rates ? c.rates->bus_bytes_per_s : std::nullopt; },
       .help = "what a link carries; the busbw of nccl-tests"},
      {.key = "rates.limit_bytes_per_s",
       .column = {"limit GB/s", 28},
       .unit = gigabytes_s,
       .value = [](const R&, const C& c) { return c.rates ? c.rates->limit_bytes_per_s : std::nullopt; },
       .help = "the most that the stated links allow of it"},
      {.key = "rates.share_of_limit",
       .column = {"of limit", 40},
       .unit = share,
       .value = [](const R&, const C& c) -> Value {
         if (!c.rates || !c.rates->bus_bytes_per_s || !c.rates->limit_bytes_per_s) return std::nullopt;
         return *c.rates->bus_bytes_per_s / *c.rates->limit_bytes_per_s;
       },
       .help = "rates.bus_bytes_per_s / rates.limit_bytes_per_s"},
      {.key = "tokens_per_second",
       .column = {"tokens/s", 24},
       .name = "tokens per second",
       .unit = number,
       .shown_for = {training},
       .value = [](const R&, const C& c) { return positive(c.tokens_per_second); },
       .help = "tokens_per_step / step_seconds"},
      {.key = "tokens_per_second_per_gpu",
       .column = {"tokens/s/GPU", 22},
       .name = "tokens per second and GPU",
       .unit = number,
       .shown_for = {training},
       .shown_where = Shown::per_gpu,
       .value = [](const R& r, const C& c) { return of_gpu(r, c.tokens_per_second / r.at(c).ranks); },
       .help = "tokens_per_second / ranks_used where ranks are GPUs; else null"},
      {.key = "tflops_per_gpu",
       .column = {"TFLOP/s/GPU", 20},
       .name = "model TFLOP/s of a GPU",
       .unit = number,
       .shown_for = {training, operation},
       .shown_where = Shown::per_gpu,
       .value = [](const R& r, const C& c) { return of_gpu(r, c.flops_per_rank / 1e12); },
       .help = "flops_per_rank / 1e12 where ranks are GPUs; else null"},
      {.key = "flops_per_rank",
       .column = {"{}/rank", 20},
       .unit = flops,
       .shown_for = {training, operation},
       .shown_where = Shown::per_rank,
       .value = [](const R&, const C& c) { return positive(c.flops_per_rank); },
       .help = "model FLOP/s of a rank"},
      {.key = "mfu",
       .column = {"MFU", 62},
       .column_of_operations = {"of peak", 62},
       .name = "MFU",
       .unit = share,
       .shown_for = {training, operation},
       .value = [](const R& r, const C& c) { return of_flop(r, c, c.mfu); },
       .help = "model FLOP / (step time x ranks x peak), by flop_formula"},
      plain("mfu_noncausal", share, "the same with attention counted whole, as older tables do",
            [](const R& r, const C& c) { return of_flop(r, c, c.mfu_noncausal); }),
      plain("hfu", share, "the same with recomputation counted",
            [](const R& r, const C& c) { return of_flop(r, c, c.hfu); }),
      {.key = "goodput",
       .column = {"goodput", 61},
       .name = "tokens per position",
       .unit = share,
       .shown_for = {training},
       .value = [](const R& r, const C& c) { return goodput_of(r, c); },
       .help = "tokens / positions that a step computes, of which the others are padding; null where no case has any"},
      {.key = "gpu_utilisation",
       .column = {"GPU busy", 18},
       .name = "GPU utilisation (NVML)",
       .unit = share,
       .value = [](const R&, const C& c) { return finite(c.gpu_utilisation); },
       .help = "as NVML reports it, median over blocks of the mean over ranks"},
      {.key = "sm_clock_hz",
       .column = {"SM MHz", 14},
       .name = "SM clock",
       .unit = hertz,
       .value = [](const R&, const C& c) { return finite(c.sm_clock_hz); },
       .help = "mean SM clock, Hz"},
      {.key = "power_w",
       .name = "power per GPU",
       .unit = watts,
       .value = [](const R&, const C& c) { return finite(c.power_w); },
       .help = "mean power of a GPU, W"},
      {.key = "tokens_per_joule",
       .column = {"tokens/J", 16},
       .name = "tokens per joule",
       .unit = number,
       .shown_for = {training},
       .value = [](const R&, const C& c) { return positive(c.tokens_per_joule); },
       .help = "tokens of the timed steps / energy of all GPUs"},
      {.key = "peak_memory_bytes",
       .column = {"memory {}", 12},
       .name = "peak memory (worst rank)",
       .unit = bytes,
       .value = [](const R&, const C& c) { return positive(c.peak_memory_bytes); },
       .help = "the largest of any rank in any block"},
      plain("planned_memory_bytes", bytes, "what the plan needs on the largest rank",
            [](const R& r, const C& c) { return finite(r.at(c).planned_memory_bytes); }),
      plain("effect.ratio", number,
            "time of the case over the baseline's: per token, byte on the bus or FLOP where the amounts differ",
            [](const R&, const C& c) { return of_effect(c, &analysis::Effect::ratio); }),
      plain("effect.low", number, "lower end of its interval",
            [](const R&, const C& c) { return of_effect(c, &analysis::Effect::low); }),
      plain("effect.high", number, "upper end of its interval",
            [](const R&, const C& c) { return of_effect(c, &analysis::Effect::high); }),
      plain("effect.rounds", count, "blocks of the case that it rests on",
            [](const R&, const C& c) { return of_effect(c, &analysis::Effect::rounds); }),
      plain("effect.rounds_needed", count,
            "for an unresolved case, about how many rounds would settle it (1000: not with this noise); else 0",
            [](const R&, const C& c) { return of_effect(c, &analysis::Effect::rounds_needed); }),
      {.key = "speedup",
       .column = {"speed-up", 46},
       .unit = number,
       .value = [](const R& r, const C& c) { return speedup_of(r, c); },
       .help = "1 / effect.ratio: how many times as fast the same work is done; null of the control and of sizes"},
      {.key = "efficiency",
       .column = {"efficiency", 44},
       .unit = share,
       .value = [](const R& r, const C& c) -> Value {
         const Value speedup = speedup_of(r, c);
         const store::ResultCase* baseline = r.baseline();
         if (!speedup || baseline == nullptr || baseline->ranks <= 0 || r.at(c).ranks <= 0) return std::nullopt;
         if (r.at(c).ranks == baseline->ranks) return std::nullopt;
         return *speedup * baseline->ranks / r.at(c).ranks;
       },
       .help = "speedup / (ranks of the case / ranks of the baseline): 1 where every rank is as useful; null on as "
               "many ranks"},
      plain("settled_after", count,
            "the look, by its rounds, that settled the verdict; 0: none did, or none was declared",
            [](const R&, const C& c) -> Value { return c.settled_after; }),
      plain("first_loss", number, "loss of the first step of the first block",
            [](const R& r, const C& c) { return of_training(r, c.first_loss); }),
      plain("last_loss", number, "loss of the last timed step, mean over blocks",
            [](const R& r, const C& c) { return of_training(r, c.last_loss); }),
      plain("ranks_used", count, "ranks of the case", [](const R& r, const C& c) -> Value { return r.at(c).ranks; }),
      size_along<program::visible_axes[0]>(),
      size_along<program::visible_axes[1]>(),
      size_along<program::visible_axes[2]>(),
      plain("micro_batches", count, "micro-batches of a step",
            [](const R& r, const C& c) { return positive(static_cast<double>(r.at(c).micro_batches)); }),
      plain("tokens_per_step", number, "tokens of a step, all ranks",
            [](const R& r, const C& c) { return positive(r.at(c).tokens_per_step); }),
      plain("model_flop_per_step", number, "FLOP of a step, all ranks, by flop_formula",
            [](const R& r, const C& c) { return positive(r.at(c).model_flop_per_step); }),
      plain("noncausal_flop_per_step", number, "the same with attention counted whole",
            [](const R& r, const C& c) { return positive(r.at(c).noncausal_flop_per_step); }),
      plain("hardware_flop_per_step", number, "the same with recomputation counted",
            [](const R& r, const C& c) { return positive(r.at(c).hardware_flop_per_step); }),
      plain("peak_flops_per_rank", flops, "peak FLOP/s of a rank, dense; null where it is unknown",
            [](const R& r, const C& c) { return positive(r.at(c).peak_flops_per_rank); }),
  };
  return metrics;
}

bool belongs(const Metric& metric, const store::Result& result) {
  return !result.points.empty() || !metric.key.starts_with("rates.");
}

std::optional<double> table_value(const Metric& metric, const store::Result& result, const analysis::CaseSummary& row) {
  if (row.blocks == 0) return std::nullopt;
  if (metric.shown_where != Shown::everywhere && (metric.shown_where == Shown::per_gpu) != result.ranks_are_gpus()) {
    return std::nullopt;
  }
  if (!metric.shown_for.empty() && std::ranges::find(metric.shown_for, measured_by(result)) == metric.shown_for.end()) {
    return std::nullopt;
  }
  const std::optional<double> value = metric.value(result, row);
  // A share may well be 0; nothing else is, so 0 stands for "not known".
  const bool unknown = value && *value == 0 && metric.unit != share;
  return unknown ? std::nullopt : value;
}

MetricPrinter::MetricPrinter(const Metric& metric, std::span<const double> values)
    : metric_(metric), scale_(scale_for(metric.unit, values)) {}

Table::Column MetricPrinter::column(Measured measured) const {
  const bool other = measured == operation && !metric_.column_of_operations.heading.empty();
  const Metric::Column& column = other ? metric_.column_of_operations : metric_.column;
  return {.heading = fmt::format(fmt::runtime(column.heading), scale_.unit), .worth = column.worth};
}

std::string MetricPrinter::number(double value) const {
  switch (metric_.unit) {
    case Unit::share:
      return percent(value) + (metric_.key == "mfu" && value > analysis::beyond_doubt ? " !" : "");
    case Unit::gigabytes_s:
      return fmt::format("{:.4g}", value / scale_.factor);
    case Unit::hertz:
    case Unit::watts:
    case Unit::count:
      return fmt::format("{:.0f}", value / scale_.factor);
    default:
      return scale_.print(value);
  }
}

std::string MetricPrinter::number_with_unit(double value) const {
  return number(value) + (scale_.unit.empty() ? "" : " " + scale_.unit);
}

}  // namespace harness::report
