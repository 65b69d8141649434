#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analysis/comparison.h"

namespace harness::analysis {

/// What `compare --fail-on` asks of every case that both sides have.
struct Gate {
  enum class FailsOn : std::uint8_t {
    slower,             // the whole interval lies above the share: what is not proven passes
    not_proven_within,  // the interval reaches above the share, or there is none: what is not proven fails
  };
  FailsOn fails_on = FailsOn::slower;
  std::optional<double> share;  // 0.02 is 2 %; without one, the smallest effect of the comparison
};

/// Reads "slower", "slower:5", "slower:5%" or "not-proven-within:2%". Throws Error that says what is allowed.
Gate parse_gate(const std::string& text);

bool fails(const Gate& gate, const Comparison& comparison, const CaseComparison& row);
bool any_fails(const Gate& gate, std::span<const Comparison> comparisons);

}  // namespace harness::analysis
