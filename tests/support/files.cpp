#include "support/files.h"

#include <fstream>
#include <sstream>
#include <utility>

namespace harness::test {

std::string text_of(const std::filesystem::path& file) {
  const std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();  // catches the error of a process whose /proc vanishes, which an istreambuf_iterator throws
  return std::move(text).str();
}

}  // namespace harness::test
