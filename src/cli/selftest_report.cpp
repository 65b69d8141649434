#include "cli/selftest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/units.h"
#include "config/model.h"
#include "report/clean_text.h"
#include "report/table.h"

namespace harness::cli {
namespace {

constexpr std::size_t max_shown_failures = 8;  // of one line; the rest is counted

using Json = nlohmann::ordered_json;

std::string rate(const selftest::KindShare& k, double value) {
  if (!(value > 0)) return "unknown";
  return k.by_flop ? show_flops(value) : show_bytes(value) + "/s";
}

std::string share_or_unknown(double share) {
  return share > 0 ? fmt::format("{:.1f} %", 100 * share) : "unknown";
}

// Clocks, power and what held them back while the timed steps ran.
std::string device_text(const machine::GpuStatistics& g) {
  if (g.samples == 0) return {};
  const std::string reasons = machine::harmful_throttling(g.throttle_reasons);
  return fmt::format(
      "device: SM clock {:.0f} MHz, lowest {:.0f} of {:.0f} possible; power {:.0f} W, highest {:.0f}; {:.0f} °C at "
      "most; throttled by: {}; {} samples\n",
      g.mean_sm_clock_hz / 1e6, g.min_sm_clock_hz / 1e6, g.max_possible_sm_clock_hz / 1e6, g.mean_power_w,
      g.max_power_w, g.max_temperature_c, reasons.empty() ? "nothing" : reasons, g.samples);
}

std::string microseconds(double seconds) {
  return fmt::format("{:.1f} us", 1e6 * seconds);
}

// What follows a product in the same call is beside its sizes.
std::string lines_table(const selftest::Split& split) {
  report::Table table;
  table.columns = {{"line", true}, {"phase", true}, {"operation", true}, {"shape", true}, {"number"}, {"mean"},
                   {"alone"},      {"rate"},        {"share"},           {"form", true}};
  for (const selftest::LineShare& l : split.lines) {
    const std::string rate = l.by_flop ? show_flops(l.rate) : show_bytes(l.rate) + "/s";
    table.rows.push_back({l.what, l.phase, l.kind, l.shape, std::to_string(l.count), microseconds(l.mean_s),
                          l.alone_s > 0 ? microseconds(l.alone_s) : "", l.rate > 0 ? rate : "unknown",
                          fmt::format("{:.2f} %", 100 * l.share), l.form});
  }
  return table.text();
}

// Their names are too long for a column.
std::string kernels_text(const selftest::Split& split) {
  std::string text;
  for (const selftest::LineShare& l : split.lines) {
    if (l.kernels.empty()) continue;
    const std::string line = l.what.empty() ? l.kind : fmt::format("{} ({})", l.what, l.kind);
    text += report::wrapped(fmt::format("{}, {}: {}", line, l.phase, l.kernels), 118, 2);
  }
  return text.empty() ? "" : "\nkernels\n" + text;
}

Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}
Json known(double x) {  // 0: unknown
  return x > 0 ? number(x) : Json(nullptr);
}
std::string dump(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json device_json(const machine::GpuStatistics& g) {
  Json reasons = Json::array();
  for (const machine::ThrottleReason& r : machine::throttle_reasons(g.throttle_reasons)) reasons.push_back(r.words);
  return {{"samples", g.samples},
          {"mean_sm_clock_hz", number(g.mean_sm_clock_hz)},
          {"min_sm_clock_hz", number(g.min_sm_clock_hz)},
          {"max_possible_sm_clock_hz", number(g.max_possible_sm_clock_hz)},
          {"mean_power_w", number(g.mean_power_w)},
          {"max_power_w", number(g.max_power_w)},
          {"max_temperature_c", number(g.max_temperature_c)},
          {"energy_j", number(g.energy_j)},
          {"throttle_reasons", std::move(reasons)}};
}

Json kinds_json(const selftest::Split& split) {
  Json kinds = Json::array();
  for (const selftest::KindShare& k : split.kinds) {
    kinds.push_back({{"kind", k.kind},
                     {"operations", k.operations},
                     {"seconds", k.seconds},
                     {"share", k.share},
                     {"flop", k.flop},
                     {"bytes", k.bytes},
                     {"rate", k.rate},
                     {"roof", known(k.roof)},
                     {"of_roof", known(k.ratio)}});
  }
  return kinds;
}

Json lines_json(const selftest::Split& split) {
  Json lines = Json::array();
  for (const selftest::LineShare& l : split.lines) {
    lines.push_back({{"what", l.what},
                     {"phase", l.phase},
                     {"operation", l.kind},
                     {"shape", l.shape},
                     {"count", l.count},
                     {"seconds", l.seconds},
                     {"mean_seconds", l.mean_s},
                     {"alone_seconds", known(l.alone_s)},
                     {"rate", known(l.rate)},
                     {"rate_unit", l.by_flop ? "FLOP/s" : "B/s"},
                     {"share", l.share},
                     {"form", l.form},
                     {"kernels", l.kernels}});
  }
  return lines;
}

Json json_of(const selftest::Performance& p) {
  return {{"performance", p.options.model.name},
          {"precision", config::name_of(p.options.precision)},
          {"sequence", p.options.model.sequence},
          {"micro_batch", p.options.micro_batch},
          {"warmup_steps", p.options.warmup_steps},
          {"step_seconds", p.seconds},
          {"median_seconds", p.median_s},
          {"fastest_seconds", p.fastest_s},
          {"slowest_seconds", p.slowest_s},
          {"first_median_seconds", p.first_median_s},
          {"last_median_seconds", p.last_median_s},
          {"wall_seconds", p.wall_s},
          {"tokens_per_second", p.tokens_per_s},
          {"mfu", known(p.mfu)},
          {"mfu_noncausal", known(p.mfu_noncausal)},
          {"first_loss", number(p.first_loss)},
          {"last_loss", number(p.last_loss)},
          {"device", device_json(p.gpu)},
          {"profiled_step_seconds", known(p.split.step_seconds)},
          {"idle_seconds", p.split.idle_seconds},
          {"overlap_seconds", p.split.overlap_seconds},
          {"seconds_alone", known(p.roofs.alone_seconds())},
          {"matmul_roof", known(p.roofs.matmul_flops)},
          {"copy_roof", known(p.roofs.copy_bytes_per_s)},
          {"kinds", kinds_json(p.split)},
          {"lines", lines_json(p.split)},
          {"warnings", p.warnings}};
}

}  // namespace

std::string check_table(const std::vector<selftest::CheckLine>& lines) {
  report::Table table;
  table.columns = {{"check", true}, {"cases"}, {"worst error"}, {"allowed"}, {"verdict", true}};
  struct Note {  // said once, however many lines have it
    std::string text, check;
    int others;
  };
  std::vector<Note> notes;
  std::string below;
  for (const selftest::CheckLine& l : lines) {
    const bool measured = l.tolerance > 0 && l.cases > 0 && l.outcome != selftest::Outcome::not_run;
    table.rows.push_back({l.check, l.cases > 0 ? std::to_string(l.cases) : "",
                          measured ? fmt::format("{:.1e}", l.error) : "",
                          measured ? fmt::format("{:.0e}", l.tolerance) : "", selftest::name_of(l.outcome)});
    for (std::size_t i = 0; i < l.failures.size() && i < max_shown_failures; ++i) {
      below += report::wrapped("FAILED " + l.check + ": " + report::one_line(l.failures[i]), 118, 2);
    }
    if (l.failures.size() > max_shown_failures) {
      below += fmt::format("FAILED {}: and {} more\n", l.check, l.failures.size() - max_shown_failures);
    }
    for (const std::string& note : l.notes) {
      const auto it = std::ranges::find(notes, note, &Note::text);
      if (it == notes.end()) {
        notes.push_back({note, l.check, 0});
      } else {
        ++it->others;
      }
    }
  }
  for (const Note& n : notes) {
    const std::string others = n.others > 0 ? fmt::format(" and {} more", n.others) : "";
    below += report::wrapped(fmt::format("note: {} ({}{})", report::one_line(n.text), n.check, others), 118, 2);
  }
  return table.text() + (below.empty() ? "" : "\n" + below);
}

std::string check_sentence(const selftest::CheckLine& l) {
  std::string text = fmt::format("{}: {}", l.check, selftest::name_of(l.outcome));
  if (l.outcome != selftest::Outcome::not_run && l.tolerance > 0) {
    text += fmt::format(" ({} cases, worst error {:.1e} of {:.0e})", l.cases, l.error, l.tolerance);
  }
  if (!l.failures.empty()) text += ": " + report::one_line(l.failures.front());
  return text + "\n";
}

std::string timing_text(const selftest::Performance& p) {
  const selftest::PerformanceOptions& o = p.options;
  std::string text = fmt::format("{}, {}, micro-batch {}: {}\n", o.model.name, config::name_of(o.precision),
                                 o.micro_batch, config::in_words(o.model));
  text +=
      fmt::format("step: median {} of {} after {} (fastest {}, slowest {}), {:.0f} tokens/s, loss {:.4f} to {:.4f}\n",
                  show_seconds(p.median_s), p.seconds.size(), o.warmup_steps, show_seconds(p.fastest_s),
                  show_seconds(p.slowest_s), p.tokens_per_s, p.first_loss, p.last_loss);
  const double sum = std::accumulate(p.seconds.begin(), p.seconds.end(), 0.0);
  text += fmt::format("      first steps {}, last steps {} (medians); all {}, by the host's clock {}\n",
                      show_seconds(p.first_median_s), show_seconds(p.last_median_s), show_seconds(sum),
                      show_seconds(p.wall_s));
  text += fmt::format("rate: {} causal, {} non-causal", show_flops(p.model_flop / p.median_s),
                      show_flops(p.noncausal_flop / p.median_s));
  text += o.peak_flops > 0
              ? fmt::format("; MFU {:.1f} % and {:.1f} % of {} dense\n", 100 * p.mfu, 100 * p.mfu_noncausal,
                            show_flops(o.peak_flops))
              : std::string("; MFU unknown: no hardware file names this device; set its peak with --peak-flops\n");
  return text + device_text(p.gpu);
}

std::string split_text(const selftest::Performance& p) {
  if (p.split.kinds.empty()) return {};
  std::string text =
      fmt::format("roofs: matrix products {}, copies {}\n", show_flops(p.roofs.matmul_flops),
                  p.roofs.copy_bytes_per_s > 0 ? show_bytes(p.roofs.copy_bytes_per_s) + "/s" : "unknown");
  if (!p.roofs.alone.empty()) {
    text += fmt::format("       {} products and attentions of the step, each alone: {}\n", p.roofs.alone.size(),
                        show_seconds(p.roofs.alone_seconds()));
  }
  report::Table table;
  table.columns = {{"operation", true}, {"number"}, {"time"}, {"share"}, {"rate"}, {"roof"}, {"of roof"}};
  for (const selftest::KindShare& k : p.split.kinds) {
    table.rows.push_back({k.kind, std::to_string(k.operations), show_seconds(k.seconds),
                          fmt::format("{:.2f} %", 100 * k.share), rate(k, k.rate), rate(k, k.roof),
                          share_or_unknown(k.ratio)});
  }
  table.rows.push_back({"idle", "", show_seconds(p.split.idle_seconds),
                        fmt::format("{:.2f} %", 100 * p.split.idle_seconds / p.split.step_seconds), "", "", ""});
  if (p.split.overlap_seconds > 0) {
    table.rows.push_back({"counted twice where two overlap", "", "-" + show_seconds(p.split.overlap_seconds),
                          fmt::format("-{:.2f} %", 100 * p.split.overlap_seconds / p.split.step_seconds), "", "", ""});
  }
  table.rows.push_back({"profiled step", "", show_seconds(p.split.step_seconds), "100.00 %", "", "", ""});
  text += table.text();
  text += fmt::format("the median timed step is {:.2f} % {} than the sum of the profiled step's operations\n",
                      100 * std::abs(p.median_s / p.split.busy_seconds - 1),
                      p.median_s < p.split.busy_seconds ? "shorter" : "longer");
  return text + "\n" + lines_table(p.split) + kernels_text(p.split);
}

std::string performance_json(const selftest::Performance& p) {
  return dump(json_of(p), 1);
}

std::string check_json_lines(const std::vector<selftest::CheckLine>& lines,
                             const std::vector<selftest::Performance>& performances) {
  std::string text;
  for (const selftest::CheckLine& l : lines) {
    text += dump({{"check", l.check},
                  {"cases", l.cases},
                  {"error", number(l.error)},
                  {"tolerance", l.tolerance},
                  {"verdict", selftest::name_of(l.outcome)},
                  {"failures", l.failures},
                  {"notes", l.notes}},
                 -1);
  }
  for (const selftest::Performance& p : performances) text += dump(json_of(p), -1);
  return text;
}

}  // namespace harness::cli
