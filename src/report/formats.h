#pragma once

#include <optional>
#include <string>

#include "analysis/cost.h"
#include "analysis/summary.h"
#include "store/result.h"

namespace harness {

std::string show_text(const Result& result, const Summary& summary);
std::string show_markdown(const Result& result, const Summary& summary);
/// One line per case, full precision, empty where there is no value.
std::string show_csv(const Result& result, const Summary& summary);
/// The same and all that the text says besides; null where there is no value.
std::string show_json(const Result& result, const Summary& summary, const std::optional<CostEstimate>& cost = {});

}  // namespace harness
