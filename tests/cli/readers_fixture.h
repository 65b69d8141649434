#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "support/sample_results.h"
#include "support/temporary_folder.h"
#include "written_result.h"

namespace harness::cli {

struct Said {
  int code = -1;
  std::string out, err;
};

class Readers : public ::testing::Test {
 protected:
  std::string write(const std::string& name, store::Result result, double factor = 1) {
    result.run_uuid = name;
    test::samples::write_result(folder_ / name, test::samples::scaled(std::move(result), factor));
    return folder_ / name;
  }
  static Said say(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const int code = run_cli(arguments, out, err);
    return {code, out.str(), err.str()};
  }
  test::TemporaryFolder folder_;
};

}  // namespace harness::cli
