#include "config/data_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/shipped.h"

namespace harness::config {

namespace fs = std::filesystem;

std::vector<std::string> data_file_names(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().extension() == ".yaml" && names.size() < 1000) names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_data_file(const std::string& folder, const std::string& text, const std::string& config_path) {
  const fs::path beside = fs::path(config_path).parent_path();
  std::error_code ignored;
  if (text.find('/') != std::string::npos || text.ends_with(".yaml")) {
    const fs::path relative = beside / text;
    return fs::exists(relative, ignored) || fs::path(text).is_absolute() ? relative : fs::path(text);
  }
  fs::path file = beside / folder / (text + ".yaml");
  if (fs::exists(file, ignored)) return file;
  // A configuration in a folder of one's own still finds the files that come with the program.
  const fs::path configs = shipped_configs();
  const fs::path shipped = configs.empty() ? fs::path() : configs / folder;
  if (fs::exists(shipped / (text + ".yaml"), ignored)) return shipped / (text + ".yaml");
  auto names = data_file_names(beside / folder);
  for (std::string& name : data_file_names(shipped)) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  if (names.empty()) fail("found {}, but {} does not exist; give a path to the file", quote(text), file.string());
  fail("found {}; allowed: {}, or a path{}", quote(text), join(names, ", "), did_you_mean(nearest(text, names)));
}

fs::path shipped_configs() {
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int level = 0; level < 4 && folder.has_relative_path(); ++level, folder = folder.parent_path()) {
    for (const char* place : {"share/harness/configs", "configs"}) {
      fs::path candidate = folder / place;
      if (fs::is_directory(candidate / "hardware", ignored)) return candidate;
    }
  }
  return {};
}

}  // namespace harness::config
