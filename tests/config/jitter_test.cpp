#include "config/jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_files.h"
#include "support/temporary_folder.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

std::string with_jitter(const std::string& jitter, const std::string& backend = "sim") {
  return "backend: " + backend + "\nhardware: h100-sxm\nmodel: gpt3-125m\njitter: " + jitter +
         "\nbaseline: {precision: bf16}\n";
}

class JitterOfAConfiguration : public ::testing::Test {
 protected:
  Jitter loaded(const std::string& text) { return load_experiment(folder.write("a.yaml", text)).jitter; }
  std::string refused(const std::string& text) { return test::complaint(folder.write("a.yaml", text)); }
  test::TemporaryFolder folder;
};

TEST_F(JitterOfAConfiguration, IsReadAndOffWhereNothingIsSaid) {
  const Jitter jitter = loaded(with_jitter("{per_operation: 3 %, seed: 5}"));
  EXPECT_DOUBLE_EQ(jitter.per_operation, 0.03);
  EXPECT_EQ(jitter.seed, 5U);
  EXPECT_TRUE(jitter.on());
  EXPECT_FALSE(loaded(with_jitter("{seed: 5}")).on());
  EXPECT_EQ(loaded(with_jitter("{per_operation: 3 %}")).seed, 1U);
}

TEST_F(JitterOfAConfiguration, IsRefusedWhereItStands) {
  EXPECT_THAT(refused(with_jitter("{per_operation: 300 %}")),
              HasSubstr("a.yaml:4:25: jitter.per_operation: found '300 %'; allowed: a share from 0 % to 100 %"));
  EXPECT_THAT(refused(with_jitter("{seed: -1}")), HasSubstr("jitter.seed: found -1"));
  EXPECT_THAT(refused(with_jitter("{per_op: 3 %}")), HasSubstr("did you mean per_operation?"));
  EXPECT_THAT(refused(with_jitter("{per_operation: 3 %}", "cuda")), HasSubstr("backend cuda measures what varies"));
}

}  // namespace
}  // namespace harness::config
