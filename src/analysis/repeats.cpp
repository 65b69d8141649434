#include "analysis/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/setting_differences.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

std::vector<std::string> changes_of(const ComparedFile& file) {
  std::vector<std::string> names;
  for (const store::ResultCase& result_case : file.result->cases) {
    if (result_case.role() == store::CaseRole::change) names.push_back(result_case.name);
  }
  return names;
}

// Each case is held against the first file that has it: all that have it are one case, or somebody is named.
void compare_cases(std::span<const ComparedFile> files, std::vector<std::string>& reasons) {
  std::map<std::string, std::pair<const ComparedFile*, const store::ResultCase*>> known;
  for (const ComparedFile& file : files) {
    for (const store::ResultCase& result_case : file.result->cases) {
      const auto [at, fresh] = known.try_emplace(result_case.name, &file, &result_case);
      if (fresh) continue;
      const auto& [first, first_case] = at->second;
      const auto differences = setting_differences(*first->result, *first_case, *file.result, result_case);
      if (differences.empty()) continue;
      reasons.push_back(fmt::format("{} has other settings: {} in {} and {}", result_case.name,
                                    settings_in_words(differences), first->label, file.label));
      return;  // what the baselines differ in, every case does
    }
  }
}

void compare_changes(std::span<const ComparedFile> files, std::vector<std::string>& reasons) {
  std::map<std::string, int> in_files;
  for (const ComparedFile& file : files) {
    for (const std::string& name : changes_of(file)) ++in_files[name];
  }
  for (const ComparedFile& file : files) {
    const std::vector<std::string> changes = changes_of(file);
    const bool none_shared = std::ranges::all_of(changes, [&](const std::string& name) { return in_files[name] == 1; });
    if (!none_shared || in_files.empty()) continue;
    reasons.push_back(changes.empty() ? fmt::format("{} has no change, but other files have", file.label)
                                      : fmt::format("no other file has a change of {}, which are {}", file.label,
                                                    join(changes, ", ")));
  }
}

}  // namespace

std::vector<std::string> why_no_repeats(std::span<const ComparedFile> files) {
  std::vector<std::string> reasons = why_incomparable(files);
  for (const ComparedFile& file : files) {
    if (file.result->baseline() == nullptr) reasons.push_back(fmt::format("{} has no baseline", file.label));
  }
  if (!reasons.empty()) return reasons;  // the rest would only repeat it
  compare_cases(files, reasons);
  if (reasons.empty()) compare_changes(files, reasons);
  return reasons;
}

}  // namespace harness::analysis
