#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/files.h"
#include "support/paths.h"

namespace harness::test {

/// Compares with tests/report/golden/NAME; HARNESS_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/report/golden/" + name;
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing: run with HARNESS_UPDATE_GOLDEN=1";
  EXPECT_EQ(text, text_of(path)) << "differs from " << path;
}

}  // namespace harness::test
