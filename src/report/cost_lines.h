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
std::string cost_text(const CostEstimate& estimate);
std::string cost_markdown(const CostEstimate& estimate);

}  // namespace harness
