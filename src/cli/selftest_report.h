#pragma once

#include <string>
#include <vector>

#include "selftest/check_line.h"
#include "selftest/performance.h"

namespace harness {

/// The table of `harness selftest`, then every failure and note in a sentence each.
std::string check_table(const std::vector<CheckLine>& lines);
/// Times, MFU and the split of the step, for a person.
std::string performance_text(const Performance& performance);
/// One JSON object a line, for other programs.
std::string check_json_lines(const std::vector<CheckLine>& lines, const std::vector<Performance>& performances);

}  // namespace harness
