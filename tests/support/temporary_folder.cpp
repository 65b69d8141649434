#include "support/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace harness::test {

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  path_ = (parent.empty() ? std::filesystem::temp_directory_path().string() : parent) + "/harness_test_XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what a test left unreadable must not end the program
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = *this / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

}  // namespace harness::test
