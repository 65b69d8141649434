#include "report/cost_lines.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "report/words.h"

namespace harness {
namespace {

std::string range(double low, double high, int decimals) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format(" [{:.{}f}, {:.{}f}]", low, decimals, high, decimals)
                                                   : "";
}

std::string saved(const CaseSaving& one) {
  return fmt::format("{:.1f} %{}", 100 * one.saved_share,
                     range(100 * one.saved_share_low, 100 * one.saved_share_high, 1));
}

}  // namespace

std::string show_money(double amount, const std::string& currency) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(amount), std::abs(amount) < 100 ? 2 : 0);
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return fmt::format("{}{} {}", amount < 0 ? "-" : "", grouped, currency);
}

std::string show_tokens(double tokens) {
  constexpr std::pair<double, const char*> scales[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}};
  for (const auto& [scale, name] : scales) {
    if (tokens >= scale) return fmt::format("{:.4g}{} tokens", tokens / scale, name);
  }
  return fmt::format("{:.0f} tokens", tokens);
}

std::string show_duration(double seconds) {
  constexpr double day = 86400;
  return seconds >= 2 * day ? fmt::format("{:.1f} days", seconds / day) : show_seconds(seconds);
}

CostSection cost_section(const CostEstimate& e) {
  CostSection out;
  const std::string& currency = e.cost.currency;
  out.heading = fmt::format("A training run of {} at {:.2f} {} per GPU and hour:", show_tokens(e.cost.run_tokens),
                            e.cost.per_gpu_hour, currency);
  out.table.columns = {{"case", true},       {"GPUs"},  {"tokens/s"},       {"duration"},
                       {"price of the run"}, {"saved"}, {"GPUs recovered"}, {"saved in a year"}};
  const auto row = [&](const CaseCost& one) {
    return std::vector<std::string>{one.name, std::to_string(one.ranks), Scale{}.print(one.tokens_per_second),
                                    show_duration(one.duration_s), show_money(one.price, currency)};
  };
  auto before = row(e.before);
  if (e.after.empty()) out.table.columns.resize(before.size());
  before.resize(out.table.columns.size());
  out.table.rows.push_back(std::move(before));
  for (const CaseSaving& one : e.after) {
    auto cells = row(one.after);
    cells.push_back(saved(one));
    cells.push_back(fmt::format("{:.1f}{}", one.gpus_recovered, range(one.gpus_low, one.gpus_high, 1)));
    cells.push_back(show_money(one.saved_yearly, currency));
    out.table.rows.push_back(std::move(cells));
  }
  out.notes.push_back(fmt::format(
      "By measured tokens/s of {} steps of the baseline and the proven changes' effects on it, with their 95 % "
      "intervals; it says nothing about convergence, restarts, checkpoints or the loading of real data.",
      e.steps));
  if (e.after.empty()) {
    out.notes.emplace_back("No change is proven faster, so there is nothing to save yet.");
  } else {
    out.notes.emplace_back(
        "GPUs recovered: how many more the baseline would need for the same rate. Saved in a year: the baseline's GPUs "
        "in use all year, doing the same work. Each change stands alone: together they were not measured.");
  }
  if (!e.backend_has_gpus) {
    out.notes.emplace_back("Measured on CPU cores, a rank counted as a GPU: the form of an answer, not one.");
  }
  return out;
}

std::string cost_text(const CostEstimate& estimate) {
  constexpr std::size_t width = 120;
  const CostSection section = cost_section(estimate);
  std::string out = "\n" + wrapped(section.heading, width, 2) + "\n" + section.table.text() + "\n";
  for (const auto& note : section.notes) out += wrapped(note, width, 2);
  return out;
}

std::string cost_markdown(const CostEstimate& estimate) {
  const CostSection section = cost_section(estimate);
  std::string out = "\n" + markdown_line(section.heading) + "\n\n" + section.table.markdown() + "\n";
  for (const auto& note : section.notes) out += "- " + markdown_line(note) + "\n";
  return out;
}

}  // namespace harness
