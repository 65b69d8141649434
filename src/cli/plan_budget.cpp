#include "cli/plan_budget.h"

#include "base/error.h"
#include "base/percent.h"
#include "base/units.h"
#include "report/table.h"

namespace harness::cli {
namespace {

constexpr double min_shown_s = 1e-6;  // a single number filled or copied

std::string operation_text(const plan::BudgetLine& line) {
  const std::string name = line.what.empty() ? line.kind : fmt::format("{} {}", line.kind, line.what);
  return fmt::format("{}, {}", name, program::name_of(line.phase));
}

}  // namespace

std::string budget_text(const plan::Budget& budget, const std::string& hardware, bool rates_are_stated) {
  std::string text = fmt::format("budget of one step of one rank{}, computation only, on {} ({}, {:.3g} TB/s)\n",
                                 budget.roles > 1 ? fmt::format(" of pipeline stage {}", budget.role) : "", hardware,
                                 show_flops(budget.rates.flops), budget.rates.memory_bytes_per_s / 1e12);
  report::Table table;
  table.columns = {{"operation", true}, {"number"}, {"TFLOP"}, {"GB"}, {"limit", true}, {"least time"}};
  if (rates_are_stated) table.columns.insert(table.columns.end(), {{"expected"}, {"share"}});
  for (const plan::BudgetLine& line : budget.lines) {
    if (line.least_s < min_shown_s) continue;
    std::vector<report::Cell> cells = {operation_text(line),
                                       std::to_string(line.operations),
                                       line.flop > 0 ? fmt::format("{:.1f}", line.flop / 1e12) : "",
                                       fmt::format("{:.2f}", line.bytes / 1e9),
                                       program::name_of(line.bound),
                                       show_seconds(line.least_s)};
    if (rates_are_stated) {
      cells.push_back(show_seconds(line.expected_s));
      cells.push_back(percent(line.expected_s / budget.expected_s));
    }
    table.rows.push_back(std::move(cells));
  }
  text += table.text();
  text += fmt::format("least time: {}, which is an MFU of {}\n", show_seconds(budget.least_s),
                      percent(budget.mfu(budget.least_s)));
  if (rates_are_stated) {
    return text + fmt::format("at the stated efficiencies: {}, which is an MFU of {}\n",
                              show_seconds(budget.expected_s), percent(budget.mfu(budget.expected_s)));
  }
  return text +
         "State what is expected of the hardware for the MFU that follows, such as\n"
         "  --efficiency products=70%,attention=55%,attention_backward=45%,memory=80%\n";
}

}  // namespace harness::cli
