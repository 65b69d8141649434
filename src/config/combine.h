#pragma once

#include <string>
#include <string_view>

#include "config/experiment.h"

namespace harness::config {

/// What stands for the variable of a Change that changes several together; its value names them all.
inline constexpr std::string_view combination = "combine";
/// The same for the cases of a ladder; its value names the fixes.
inline constexpr std::string_view ladder_fixes = "ladder";

/// Whether this, which stands as the variable of a case, is one of the two.
bool is_joint(std::string_view variable);

/// "micro_batch_size=4", of a combination "micro_batch_size=4 + overlap_grad_reduce=false", of a ladder "fix + fix".
std::string case_name(const Change& change);

/// Whether a change sets this variable to something else than the baseline does.
bool changes(const Change& change, const Variable& variable, const Settings& baseline);

}  // namespace harness::config
