#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/verbs.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::HasSubstr;

const std::string config = test::source_dir() + "/configs/16node.yaml";

TEST(Plan, SaysWhereThePeakComesFrom) {
  const auto head = [](const std::string& override_text) {
    std::ostringstream out;
    plan({.config = config,
          .overrides = {override_text},
          .only = {"baseline"},
          .ranks = 128,
          .like = "",
          .budget = "",
          .efficiencies = {}},
         out);
    return out.str();
  };
  EXPECT_THAT(head("hardware=h100-sxm"), HasSubstr("peak: 989 TFLOP/s per rank"));
  EXPECT_THAT(head("hardware=none"), HasSubstr("peak: none (hardware: none)"));
}

}  // namespace
}  // namespace harness::cli
