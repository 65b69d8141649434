#pragma once

#include <string>
#include <string_view>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

// Short names for cases whose name is too long.

/// "TP2" for a case of `layout` that cuts the model in two (program::label_of); "" for a case of another variable.
std::string short_layout(std::string_view case_name);

/// The name with short words for its long parts: "TP2 PP2" for a layout, "NCCL_ALGO=Ring" for env={NCCL_ALGO: Ring},
/// "overlap_grad_reduce off" for overlap_grad_reduce=false, each also where several changes are joined by " + ".
std::string short_name(const std::string& case_name);

/// The case that has this name or this short name. Throws Error where there is none.
std::int32_t find_case(const store::Result& result, const std::string& name);

/// Whether the case changes the size of the one operation that is measured. What the model's step has of that size can
/// then stand for its name.
bool is_of_a_size(std::string_view case_name);

/// The setting that a case changes, at whatever size: "nccl_algo=tree", of a combination all of it.
std::string setting_of(const store::Result& result, const analysis::CaseSummary& row);

/// For a drawing: "qkv, forward" where that stands for the case's name, else the name.
std::string label_of(const store::Result& result, const analysis::CaseSummary& row);

}  // namespace harness::report
