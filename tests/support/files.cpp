#include "support/files.h"

#include <fstream>
#include <iterator>

namespace harness::test {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace harness::test
