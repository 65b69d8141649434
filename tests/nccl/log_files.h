#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "paths.h"

namespace harness {

/// A text of tests/nccl/logs: written by the formats of NCCL's source, of the version in its name.
inline std::string nccl_log(const std::string& name) {
  std::ifstream file(paths::source_dir() + "/tests/nccl/logs/" + name + ".log");
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace harness
