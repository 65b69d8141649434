// The verbs that read result files, as a user starts them, on the example that is in the repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::run;
using test::TemporaryFolder;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string program = test::program_path() + " ";
const std::string example = test::source_dir() + "/results/example.h5";

TEST(ReadersAsAUser, TheExampleAgainstItselfIsTheSame) {
  const auto o = test::run(program + "compare " + example + " " + example + " --fail-on slower");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("Nothing else differs"));
  EXPECT_THAT(o.out, HasSubstr("Variation between runs is not estimated"));
  EXPECT_THAT(o.out, Not(AnyOf(HasSubstr(" 1 slower"), HasSubstr("%  slower"))));
}

TEST(ReadersAsAUser, TheExampleIsExportedAndTraced) {
  const TemporaryFolder folder;
  for (const char* format : {"env", "megatron", "deepspeed", "torchtitan", "pytorch"}) {
    const auto o = test::run(program + "export " + example + " --format " + format);
    EXPECT_EQ(o.exit_code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr("Measured on backend cpu"));
  }
  const auto next = test::run(program + "export " + example + " --format harness > " + (folder / "next.yaml"));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  const auto planned = test::run(program + "plan " + (folder / "next.yaml") + " --ranks 2");
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("micro_batch_size=4"));
  const auto o = test::run(program + "trace " + example + " -o " + (folder / "trace.json"));
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_GT(std::filesystem::file_size(folder / "trace.json"), 10000u);
}

TEST(ReadersAsAUser, AFileCutShortIsOneErrorAndExitCodeOne) {
  const TemporaryFolder folder;
  const std::string cut = folder / "cut.h5";
  std::filesystem::copy_file(example, cut);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  for (const std::string& arguments : {"compare " + example + " " + cut, "export " + cut + " --format env",
                                       "trace " + cut + " -o " + (folder / "t.json")}) {
    const auto o = test::run(program + arguments);
    EXPECT_EQ(o.exit_code, 1) << arguments;
    EXPECT_TRUE(o.out.empty()) << o.out;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
}

}  // namespace
}  // namespace harness
