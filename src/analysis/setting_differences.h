#pragma once

#include <string>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

/// A variable that two files know and that two of their cases set differently, with the values as printed.
struct SettingDifference {
  std::string variable, first, second;
};

/// Between a case of one file and a case of another, in the order of the first file's variables. What only one of them
/// knows is no difference.
std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case);

/// "threads is 1 and 2, precision is fp32 and bf16"; "" if there are none.
std::string settings_in_words(const std::vector<SettingDifference>& differences);

}  // namespace harness::analysis
