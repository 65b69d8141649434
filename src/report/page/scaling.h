#pragma once

#include <optional>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// Tokens per second and efficiency per rank against the number of ranks, and what grew. Nothing unless `ranks` was
/// swept and two sizes were measured.
struct Scaling {
  report::Figure curve;
  std::optional<report::Numbers> what_grew;
};
std::optional<Scaling> scaling(const store::Result& result, const analysis::Findings& findings);

}  // namespace harness::page
