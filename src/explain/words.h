#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/hypothesis.h"
#include "store/result.h"

namespace harness::explain {

/// For a person: "node 5 has 50 % of its network".
std::string in_words(const Hypothesis& hypothesis, const store::Result& result);

/// The checks of `harness doctor` that see a fault, the surest first.
const std::vector<std::string_view>& checks_of(config::Fault fault);

}  // namespace harness::explain
