#pragma once

#include <string>
#include <vector>

#include "selftest/check_line.h"
#include "selftest/performance.h"

namespace harness::cli {

/// The table of `harness selftest`, then one sentence for each failure and note.
std::string check_table(const std::vector<selftest::CheckLine>& lines);
/// Times, MFU and the split of the step, as text.
std::string performance_text(const selftest::Performance& performance);
/// One JSON object per line, for other programs.
std::string check_json_lines(const std::vector<selftest::CheckLine>& lines,
                             const std::vector<selftest::Performance>& performances);

}  // namespace harness::cli
