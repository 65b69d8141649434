#include "analysis/levers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/registry.h"

namespace harness::analysis {
namespace {

TEST(Levers, EveryVariableIsOneOrListedAsNone) {
  std::vector<std::string> listed = levers();
  for (const std::string& name : variables_without_lever()) listed.push_back(name);
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(config::variable_names()));
}

}  // namespace
}  // namespace harness::analysis
