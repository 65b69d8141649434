#pragma once

#include <string>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness {

/// What moved and how sure that is, in one sentence.
std::string headline(const Result& result, const Summary& summary);

}  // namespace harness
