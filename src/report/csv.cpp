#include <fmt/format.h>

#include <cmath>

#include "report/formats.h"

namespace harness {
namespace {

class Line {
 public:
  void text(const std::string& value) {
    if (!out_.empty() || started_) out_ += ',';
    started_ = true;
    if (value.find_first_of(",\"\r\n") == std::string::npos) {
      out_ += value;
      return;
    }
    out_ += '"';
    for (const char c : value) {
      if (c == '"') out_ += '"';
      out_ += c;
    }
    out_ += '"';
  }
  void number(double value) { text(std::isfinite(value) ? fmt::format("{}", value) : ""); }
  void integer(std::int64_t value) { text(std::to_string(value)); }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  std::string out_;
  bool started_ = false;
};

void add_rates(Line& line, const Rates& rates) {
  line.text(rates.operation);
  line.number(rates.operation_seconds);
  line.number(rates.bytes);
  line.number(rates.algorithm_bytes_per_s);
  line.number(rates.bus_bytes_per_s.value_or(NAN));
  line.number(rates.limit_bytes_per_s.value_or(NAN));
  line.text(rates.impossible ? "yes" : "");
}

}  // namespace

std::string show_csv(const Result& result, const Summary& summary) {
  Line head;
  for (const char* name : {"case",
                           "variable",
                           "value",
                           "status",
                           "blocks",
                           "step_seconds",
                           "tokens_per_second",
                           "flops_per_rank",
                           "mfu",
                           "mfu_noncausal",
                           "hfu",
                           "peak_memory_bytes",
                           "ratio",
                           "ratio_low",
                           "ratio_high",
                           "rounds",
                           "rounds_needed",
                           "verdict",
                           "first_loss",
                           "last_loss",
                           "gpu_utilisation",
                           "sm_clock_hz",
                           "power_w",
                           "tokens_per_joule",
                           "ranks_used",
                           "tensor_parallel",
                           "pipeline_parallel",
                           "data_parallel",
                           "micro_batches",
                           "tokens_per_step",
                           "model_flop_per_step",
                           "peak_flops_per_rank"}) {
    head.text(name);
  }
  if (!result.points.empty()) {
    for (const char* name : {"operation", "operation_seconds", "operation_bytes", "algorithm_bytes_per_s",
                             "bus_bytes_per_s", "limit_bytes_per_s", "beyond_limit"}) {
      head.text(name);
    }
  }
  for (const auto& variable : result.variables) head.text(variable);
  head.text("reason");
  std::string out = head.take();
  for (const auto& one : summary.cases) {
    const ResultCase& row = result.at(one);
    const bool measured = one.blocks > 0;
    const auto measured_number = [&](double value) { return measured ? value : NAN; };
    const Effect effect = one.effect.value_or(Effect{Verdict::none, NAN, NAN, NAN, 0, 0});
    Line line;
    line.text(one.name);
    line.text(row.variable);
    line.text(row.value);
    line.text(name_of(one.status));
    line.integer(one.blocks);
    line.number(one.step_seconds);
    line.number(measured_number(one.tokens_per_second));
    line.number(measured_number(one.flops_per_rank));
    line.number(one.mfu.value_or(NAN));
    line.number(one.mfu_noncausal.value_or(NAN));
    line.number(one.hfu.value_or(NAN));
    line.number(measured_number(one.peak_memory_bytes));
    line.number(effect.ratio);
    line.number(effect.low);
    line.number(effect.high);
    line.integer(effect.rounds);
    line.integer(effect.rounds_needed);
    line.text(name_of(effect.verdict));
    line.number(one.first_loss);
    line.number(one.last_loss);
    line.number(one.gpu_utilisation);
    line.number(one.sm_clock_hz);
    line.number(one.power_w);
    line.number(one.tokens_per_joule);
    line.integer(row.ranks);
    line.integer(row.tensor_parallel);
    line.integer(row.pipeline_parallel);
    line.integer(row.data_parallel);
    line.integer(row.micro_batches);
    line.number(row.tokens_per_step);
    line.number(row.model_flop_per_step);
    line.number(row.peak_flops_per_rank > 0 ? row.peak_flops_per_rank : NAN);
    if (!result.points.empty()) add_rates(line, one.rates.value_or(Rates{"", NAN, NAN, NAN, {}, {}, false}));
    for (const auto& setting : row.settings) line.text(setting);
    line.text(one.reason);
    out += line.take();
  }
  return out;
}

}  // namespace harness
