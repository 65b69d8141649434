#pragma once

#include <gtest/gtest.h>

#include <string>

#include "said.h"
#include "support/sample_results.h"
#include "support/temporary_folder.h"
#include "written_result.h"

namespace harness::cli {

class Readers : public ::testing::Test {
 protected:
  std::string write(const std::string& name, store::Result result, double factor = 1) {
    result.run_uuid = name;
    test::samples::write_result(folder_ / name, test::samples::scaled(std::move(result), factor));
    return folder_ / name;
  }
  test::TemporaryFolder folder_;
};

}  // namespace harness::cli
