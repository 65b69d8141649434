#pragma once

#include "config/settings.h"
#include "store/result.h"

namespace harness::analysis {

/// What a case was measured with, typed again. A variable or value that only another version knows is at its default.
config::Settings settings_of(const store::Result& result, const store::ResultCase& of);

}  // namespace harness::analysis
