#pragma once

#include <string>
#include <vector>

#include "selftest/check_line.h"
#include "selftest/performance.h"

namespace harness::cli {

/// The table of `harness selftest`, then one sentence for each failure and note.
std::string check_table(const std::vector<selftest::CheckLine>& lines);
/// One check as it ends: "operations: gelu fp32: passed (6 cases, worst error 1.2e-05 of 1e-04)".
std::string check_sentence(const selftest::CheckLine& line);
/// Step time, MFU, clocks and power, as text: what is known before a step is profiled.
std::string timing_text(const selftest::Performance& performance);
/// The roofs and the parts of the profiled step, by operation and by line; "" if no step was profiled.
std::string split_text(const selftest::Performance& performance);
/// All of a Performance as one JSON object: what `--json` writes and `--compare` reads.
std::string performance_json(const selftest::Performance& performance);
/// One JSON object per line, for other programs.
std::string check_json_lines(const std::vector<selftest::CheckLine>& lines,
                             const std::vector<selftest::Performance>& performances);

}  // namespace harness::cli
