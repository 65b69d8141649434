// The verbs that read result files, as a user starts them, on the example that is in the repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "command.h"
#include "paths.h"

namespace harness {
namespace {

using testing::run;
using testing::TemporaryFolder;

const std::string program = paths::program() + " ";
const std::string example = paths::source_dir() + "/results/example.h5";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReadersAsAUser, TheExampleAgainstItselfIsTheSame) {
  const auto o = run(program + "compare " + example + " " + example + " --fail-on slower");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "No hidden differences")) << o.out;
  EXPECT_TRUE(contains(o.out, "Variation between runs is not estimated")) << o.out;
  EXPECT_FALSE(contains(o.out, " 1 slower") || contains(o.out, "%  slower")) << o.out;
}

TEST(ReadersAsAUser, TheExampleIsExportedAndTraced) {
  const TemporaryFolder folder;
  for (const char* format : {"env", "megatron", "deepspeed", "pytorch"}) {
    const auto o = run(program + "export " + example + " --format " + format);
    EXPECT_EQ(o.exit_code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "Measured on backend cpu")) << o.out;
  }
  const auto o = run(program + "trace " + example + " -o " + (folder / "trace.json"));
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
    const auto o = run(program + arguments);
    EXPECT_EQ(o.exit_code, 1) << arguments;
    EXPECT_TRUE(o.out.empty()) << o.out;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  }
}

}  // namespace
}  // namespace harness
