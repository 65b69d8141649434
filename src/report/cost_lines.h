#pragma once

#include <string>
#include <vector>

#include "analysis/cost.h"
#include "report/table.h"

namespace harness {

/// What a training run takes and costs, before and after each proven change.
struct CostSection {
  std::string heading;
  Table table;                     // the baseline and every case proven faster
  std::vector<std::string> notes;  // what it rests on and what it does not say
};
CostSection cost_section(const CostEstimate& estimate);
std::string show_money(double amount, const std::string& currency);  // "12,345,678 USD"; with cents below 100
std::string show_tokens(double tokens);                              // "300 billion tokens"
std::string show_duration(double seconds);                           // "51.3 days"
std::string cost_text(const CostEstimate& estimate);
std::string cost_markdown(const CostEstimate& estimate);

}  // namespace harness
