#pragma once

#include <optional>
#include <string>

#include "analysis/cost.h"
#include "analysis/summary.h"
#include "store/result.h"

namespace harness {

enum class Format { text, md, csv, json };

/// The table of a result: one row per case with median step time, tokens/s, TFLOP/s per rank, MFU, peak memory, change
/// against the baseline with its interval, verdict; what is common to all cases stands above, warnings as footnotes
/// below. First line: what moved and how sure we are.
/// `cost`: what a training run takes and costs, a section of its own (not in csv).
std::string show(const Result& result, const Summary& summary, Format format,
                 const std::optional<CostEstimate>& cost = {});

}  // namespace harness
