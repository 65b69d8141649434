#include <gtest/gtest.h>

#include <sstream>

#include "cli/verbs.h"
#include "paths.h"

namespace harness {
namespace {

const std::string config = paths::source_dir() + "/configs/16node.yaml";

TEST(Plan, SaysWhereThePeakComesFrom) {
  const auto head = [](const std::string& override_text) {
    std::ostringstream out;
    plan({config, {override_text}, {"baseline"}, 128, ""}, out);
    return out.str();
  };
  EXPECT_NE(head("hardware=h100-sxm").find("peak: 989 TFLOP/s per rank"), std::string::npos);
  EXPECT_NE(head("hardware=none").find("peak: none (hardware: none)"), std::string::npos);
}

}  // namespace
}  // namespace harness
