#pragma once

#include <string>

namespace harness::cli {

/// What changed from one file of `selftest performance --json` to another: step time, rates, clocks, then every line of
/// the profiled step, the largest change first. Files of `-o` (FILE.jsonl) are read too. Throws Error naming the file
/// that is missing or wrong.
std::string compare_performance(const std::string& before, const std::string& after);

}  // namespace harness::cli
