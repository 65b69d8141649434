#include "base/private_folder.h"

#include <cstdlib>
#include <filesystem>

namespace harness {

PrivateFolder::PrivateFolder(const std::string& name) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  if (folder.empty()) folder = "/tmp";
  std::string path = (folder / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) path_ = path;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace harness
