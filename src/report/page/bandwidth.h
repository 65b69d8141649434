#pragma once

#include <optional>

#include "analysis/summary.h"
#include "report/document.h"

namespace harness::page {

/// Bus bandwidth of collectives against the size of the message, a line per collective, with what the links allow.
/// Nothing where no collective was measured on its own.
std::optional<report::Figure> bandwidth_chart(const analysis::Summary& summary);

}  // namespace harness::page
