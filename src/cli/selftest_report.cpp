#include "cli/selftest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/table.h"

namespace harness::cli {
namespace {

constexpr std::size_t max_shown_failures = 8;  // of one line; the rest is counted

using Json = nlohmann::ordered_json;

const char* word(config::Precision precision) {
  if (precision == config::Precision::bf16) return "bf16";
  if (precision == config::Precision::tf32) return "tf32";
  return "fp32";
}

std::string rate(const selftest::KindShare& k, double value) {
  if (!(value > 0)) return "unknown";
  return k.by_flop ? show_flops(value) : show_bytes(value) + "/s";
}

std::string percent(double share) {
  return share > 0 ? fmt::format("{:.1f} %", 100 * share) : "unknown";
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

std::string performance_text(const selftest::Performance& p) {
  const selftest::PerformanceOptions& o = p.options;
  std::string text = fmt::format("{}, {}, micro-batch {}: {} layers, hidden {}, {} heads, sequence {}, vocabulary {}\n",
                                 o.model.name, word(o.precision), o.micro_batch, o.model.layers, o.model.hidden,
                                 o.model.heads, o.model.sequence, o.model.vocab);
  text +=
      fmt::format("step: median {} of {} after {} (fastest {}, slowest {}), {:.0f} tokens/s, loss {:.4f} to {:.4f}\n",
                  show_seconds(p.median_s), p.seconds.size(), o.warmup_steps, show_seconds(p.fastest_s),
                  show_seconds(p.slowest_s), p.tokens_per_s, p.first_loss, p.last_loss);
  text += fmt::format("rate: {} causal, {} non-causal", show_flops(p.model_flop / p.median_s),
                      show_flops(p.noncausal_flop / p.median_s));
  text += o.peak_flops > 0
              ? fmt::format("; MFU {:.1f} % and {:.1f} % of {} dense\n", 100 * p.mfu, 100 * p.mfu_noncausal,
                            show_flops(o.peak_flops))
              : std::string("; MFU unknown: no hardware file names this device; set its peak with --peak-flops\n");
  text += fmt::format("roofs: matrix products {}, copies {}\n", show_flops(p.roofs.matmul_flops),
                      p.roofs.copy_bytes_per_s > 0 ? show_bytes(p.roofs.copy_bytes_per_s) + "/s" : "unknown");
  if (p.roofs.product_seconds > 0) {
    text += fmt::format("       the step's own products, each alone: {}\n", show_seconds(p.roofs.product_seconds));
  }
  report::Table table;
  table.columns = {{"operation", true}, {"number"}, {"time"}, {"share"}, {"rate"}, {"roof"}, {"of roof"}};
  for (const selftest::KindShare& k : p.split.kinds) {
    table.rows.push_back({k.kind, std::to_string(k.operations), show_seconds(k.seconds),
                          fmt::format("{:.2f} %", 100 * k.share), rate(k, k.rate), rate(k, k.roof), percent(k.ratio)});
  }
  table.rows.push_back({"idle", "", show_seconds(p.split.idle_seconds),
                        fmt::format("{:.2f} %", 100 * p.split.idle_seconds / p.split.step_seconds), "", "", ""});
  table.rows.push_back({"profiled step", "", show_seconds(p.split.step_seconds), "100.00 %", "", "", ""});
  text += table.text();
  text += fmt::format("the median timed step is {:.2f} % {} than the sum of the profiled step's operations\n",
                      100 * std::abs(p.median_s / p.split.busy_seconds - 1),
                      p.median_s < p.split.busy_seconds ? "shorter" : "longer");
  return text;
}

std::string check_json_lines(const std::vector<selftest::CheckLine>& lines,
                             const std::vector<selftest::Performance>& performances) {
  std::string text;
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  const auto add = [&](const Json& j) { text += j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; };
  for (const selftest::CheckLine& l : lines) {
    add({{"check", l.check},
         {"cases", l.cases},
         {"error", number(l.error)},
         {"tolerance", l.tolerance},
         {"verdict", selftest::name_of(l.outcome)},
         {"failures", l.failures},
         {"notes", l.notes}});
  }
  for (const selftest::Performance& p : performances) {
    Json kinds = Json::array();
    for (const selftest::KindShare& k : p.split.kinds) {
      kinds.push_back({{"kind", k.kind},
                       {"operations", k.operations},
                       {"seconds", k.seconds},
                       {"share", k.share},
                       {"flop", k.flop},
                       {"bytes", k.bytes},
                       {"rate", k.rate},
                       {"roof", k.roof > 0 ? Json(k.roof) : Json(nullptr)},
                       {"of_roof", k.ratio > 0 ? Json(k.ratio) : Json(nullptr)}});
    }
    add({{"performance", p.options.model.name},
         {"precision", word(p.options.precision)},
         {"micro_batch", p.options.micro_batch},
         {"median_seconds", p.median_s},
         {"fastest_seconds", p.fastest_s},
         {"slowest_seconds", p.slowest_s},
         {"tokens_per_second", p.tokens_per_s},
         {"mfu", p.mfu > 0 ? Json(p.mfu) : Json(nullptr)},
         {"mfu_noncausal", p.mfu_noncausal > 0 ? Json(p.mfu_noncausal) : Json(nullptr)},
         {"last_loss", number(p.last_loss)},
         {"profiled_step_seconds", p.split.step_seconds},
         {"idle_seconds", p.split.idle_seconds},
         {"kinds", std::move(kinds)}});
  }
  return text;
}

}  // namespace harness::cli
