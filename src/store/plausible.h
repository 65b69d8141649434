#pragma once

#include "store/result.h"

namespace harness::store {

/// Throws Error for numbers of the attributes and tables that no run can have had, among themselves too: those that
/// index or count others, and amounts.
void require_plausible(const Result& result);
/// The same of the matrices of seconds.
void require_plausible_times(const Result& result);

}  // namespace harness::store
