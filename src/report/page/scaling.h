#pragma once

#include <optional>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::html {

/// Tokens per second and efficiency per rank against the number of ranks, and what grew. Nothing unless `ranks` was
/// swept and two sizes were measured.
struct Scaling {
  Figure curve;
  std::optional<Numbers> what_grew;
};
std::optional<Scaling> scaling(const Result& result, const Findings& findings);

}  // namespace harness::html
