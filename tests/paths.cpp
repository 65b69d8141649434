#include "paths.h"

namespace harness::paths {

std::string source_dir() {
  return HARNESS_SOURCE_DIR;
}

std::string program() {
  return HARNESS_BINARY;
}

std::string emulated_program() {
  return HARNESS_EMULATED_BINARY;
}

}  // namespace harness::paths
