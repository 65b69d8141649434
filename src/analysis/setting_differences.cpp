#include "analysis/setting_differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace harness::analysis {

std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case) {
  std::vector<SettingDifference> differences;
  for (const std::string& variable : first.variables) {
    if (std::ranges::find(second.variables, variable) == second.variables.end()) continue;
    const std::string here(first.setting(first_case, variable)), there(second.setting(second_case, variable));
    if (here != there) differences.push_back({variable, here, there});
  }
  return differences;
}

std::string settings_in_words(const std::vector<SettingDifference>& differences) {
  std::vector<std::string> words;
  for (const SettingDifference& difference : differences) {
    words.push_back(fmt::format("{} is {} and {}", difference.variable, difference.first, difference.second));
  }
  return join(words, ", ");
}

}  // namespace harness::analysis
