#pragma once

#include <string>
#include <vector>

#include "selftest/check_line.h"

namespace harness::cli {

/// The table of `harness selftest`, then one sentence for each failure and note.
std::string check_table(const std::vector<selftest::CheckLine>& lines);
/// One check as it ends: "operations: gelu fp32: passed (6 cases, worst error 1.2e-05 of 1e-04)".
std::string check_sentence(const selftest::CheckLine& line);
/// One JSON object per line, for other programs.
std::string check_json_lines(const std::vector<selftest::CheckLine>& lines);

}  // namespace harness::cli
