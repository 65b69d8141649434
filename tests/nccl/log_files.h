#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/files.h"
#include "support/paths.h"

namespace harness::nccl {

/// Returns a log of tests/nccl/logs, written with the formats in NCCL's source, of the version in its name.
inline std::string nccl_log(const std::string& name) {
  const std::string text = test::text_of(test::source_dir() + "/tests/nccl/logs/" + name + ".log");
  EXPECT_NE(text, "") << name;
  return text;
}

}  // namespace harness::nccl
