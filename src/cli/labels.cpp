#include "cli/labels.h"

#include <filesystem>
#include <set>

namespace harness::cli {

std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(std::filesystem::path(path).filename().string());
  const std::set<std::string> unique(names.begin(), names.end()), unique_paths(paths.begin(), paths.end());
  return unique.size() == unique_paths.size() ? names : paths;
}

}  // namespace harness::cli
