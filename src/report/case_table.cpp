#include "report/case_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/words.h"

namespace harness {
namespace {

// Two or three rounds give intervals that say nothing; their digits should not pretend otherwise.
std::string bound(double share) {
  constexpr double most = 10, least = -0.9;
  if (share > most) return "over " + signed_percent(most, 0);
  if (share < least) return "under " + signed_percent(least, 0);
  return signed_percent(share);
}

std::string interval_of(const CaseSummary& one) {
  if (!one.effect || !std::isfinite(one.effect->low)) return "";
  return fmt::format("[{}, {}]", bound(one.effect->low - 1), bound(one.effect->high - 1));
}

std::vector<double> values_of(const Summary& summary, const std::function<double(const CaseSummary&)>& value) {
  std::vector<double> values;
  for (const auto& one : summary.cases) {
    if (one.blocks > 0) values.push_back(value(one));
  }
  return values;
}

// A column is there only if some row has something to say in it.
class Builder {
 public:
  explicit Builder(const Summary& summary) : summary_(summary) { table_.rows.resize(summary.cases.size()); }

  void add(const std::string& heading, bool words, const std::function<std::string(const CaseSummary&)>& cell) {
    std::vector<std::string> cells;
    for (const auto& one : summary_.cases) cells.push_back(cell(one));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& text) { return text.empty(); })) return;
    table_.columns.push_back({heading, words});
    for (std::size_t i = 0; i < cells.size(); ++i) table_.rows[i].push_back(cells[i]);
  }
  void add_number(const std::string& heading, const std::function<std::string(const CaseSummary&)>& cell) {
    add(heading, false, [&](const CaseSummary& one) { return one.blocks > 0 ? cell(one) : ""; });
  }
  Table take() { return std::move(table_); }

 private:
  const Summary& summary_;
  Table table_;
};

}  // namespace

CaseTable case_table(const Result& result, const Summary& summary) {
  CaseTable out;
  const auto seconds = scale_of_seconds(values_of(summary, [](const auto& c) { return c.step_seconds; }));
  const auto flops = scale_of_flops(values_of(summary, [](const auto& c) { return c.flops_per_rank; }));
  const auto bytes = scale_of_bytes(values_of(summary, [](const auto& c) { return c.peak_memory_bytes; }));
  const auto each =
      scale_of_seconds(values_of(summary, [](const auto& c) { return c.rates ? c.rates->operation_seconds : 0; }));
  const bool collective = std::any_of(result.points.begin(), result.points.end(),
                                      [](const ResultPoint& point) { return point.bus_factor > 0; });
  const auto row_of = [&](const CaseSummary& one) -> const ResultCase& { return result.at(one); };
  const bool ranks_differ = std::any_of(result.cases.begin(), result.cases.end(), [&](const ResultCase& one) {
    return one.status != CaseStatus::impossible && one.ranks != result.cases[0].ranks;
  });

  Builder build(summary);
  build.add("case", true, [](const auto& c) { return c.name; });
  if (ranks_differ) build.add_number("ranks", [&](const auto& c) { return std::to_string(row_of(c).ranks); });
  build.add_number("step " + seconds.unit, [&](const auto& c) { return seconds.print(c.step_seconds); });
  // As nccl-tests does, in units of 1000: GB/s whatever the size.
  const auto gigabytes = [](double rate) { return fmt::format("{:.4g}", rate / 1e9); };
  const auto rate_column = [&](const std::string& heading, auto&& value) {
    build.add_number(heading, [&](const auto& c) {
      const std::optional<double> rate = c.rates ? value(*c.rates) : std::optional<double>();
      return rate ? gigabytes(*rate) : "";
    });
  };
  build.add_number("time " + each.unit,
                   [&](const auto& c) { return c.rates ? each.print(c.rates->operation_seconds) : ""; });
  rate_column(collective ? "algbw GB/s" : "GB/s",
              [](const Rates& r) { return std::optional<double>(r.algorithm_bytes_per_s); });
  rate_column("busbw GB/s", [](const Rates& r) { return r.bus_bytes_per_s; });
  rate_column("limit GB/s", [](const Rates& r) { return r.limit_bytes_per_s; });
  build.add_number("of limit", [](const auto& c) {
    if (!c.rates || !c.rates->bus_bytes_per_s || !c.rates->limit_bytes_per_s) return std::string();
    return percent(*c.rates->bus_bytes_per_s / *c.rates->limit_bytes_per_s);
  });
  build.add_number("tokens/s", [&](const auto& c) {
    return row_of(c).tokens_per_step > 0 ? Scale{}.print(c.tokens_per_second) : "";
  });
  build.add_number(flops.unit + "/rank",
                   [&](const auto& c) { return collective ? "" : flops.print(c.flops_per_rank); });
  build.add_number(result.points.empty() ? "MFU" : "of peak",
                   [&](const auto& c) { return c.mfu && !collective ? percent(*c.mfu) : ""; });
  build.add_number("GPU busy",
                   [](const auto& c) { return std::isfinite(c.gpu_utilisation) ? percent(c.gpu_utilisation, 0) : ""; });
  build.add_number("SM MHz", [](const auto& c) {
    return std::isfinite(c.sm_clock_hz) ? fmt::format("{:.0f}", c.sm_clock_hz / 1e6) : "";
  });
  build.add_number("tokens/J", [&](const auto& c) {
    return std::isfinite(c.tokens_per_joule) && result.points.empty() ? Scale{}.print(c.tokens_per_joule) : "";
  });
  build.add_number("memory " + bytes.unit,
                   [&](const auto& c) { return c.peak_memory_bytes > 0 ? bytes.print(c.peak_memory_bytes) : ""; });
  build.add_number("change", [](const auto& c) {
    return c.effect && std::isfinite(c.effect->ratio) ? signed_percent(c.effect->ratio - 1) : "";
  });
  build.add_number("95 % interval", interval_of);
  build.add("verdict", true, [&](const CaseSummary& one) {
    std::string verdict = name_of(one.judgement);
    if (one.effect && one.effect->rounds < result.rounds) {
      verdict += fmt::format(" ({}/{})", one.effect->rounds, result.rounds);
    }
    if (one.reason.empty()) return verdict;
    const std::string note = fmt::format("{}: {}", one.name, one.reason);
    out.notes.push_back(note);
    return fmt::format("{} [{}]", verdict, out.notes.size());
  });
  out.table = build.take();
  return out;
}

}  // namespace harness
