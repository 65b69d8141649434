#include "support/paths.h"

namespace harness::test {

std::string source_dir() {
  return HARNESS_SOURCE_DIR;
}

std::string program_path() {
  return HARNESS_BINARY;
}

std::string product_path() {
  return HARNESS_PRODUCT;
}

std::string emulated_program_path() {
  return HARNESS_EMULATED_BINARY;
}

}  // namespace harness::test
