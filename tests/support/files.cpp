#include "support/files.h"

#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <utility>

namespace harness::test {

namespace fs = std::filesystem;

std::string text_of(const std::filesystem::path& file) {
  const std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();  // catches the error of a process whose /proc vanishes, which an istreambuf_iterator throws
  return std::move(text).str();
}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  // Messages contain file names, and tests search messages for words: these letters spell no word.
  std::random_device random;
  const std::string before = (parent.empty() ? fs::temp_directory_path().string() : parent) + "/harness_test_";
  do {
    path_ = before;
    for (int k = 0; k < 8; ++k) path_ += "jqxz"[random() % 4];
  } while (!fs::create_directory(path_));
  fs::permissions(path_, fs::perms::owner_all);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // files left unreadable by a test must not end the program
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const fs::path file = *this / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

}  // namespace harness::test
