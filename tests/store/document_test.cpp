// docs/file-format.md names every object, column and attribute of a result file, and the README's example reads a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "sample.h"
#include "store/columns.h"
#include "store/hdf5_file.h"
#include "support/command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::store {
namespace {

using ::testing::HasSubstr;

std::string document(const std::string& name) {
  return test::text_of(test::source_dir() + "/" + name);
}

class Document : public ::testing::Test {
 protected:
  Document() {
    const auto file = ResultFile::create(path_, plan_, false);
    for (int index = 0; index < 11; ++index) write_sample(*file, plan_, index);
    file->finish(RunState::partial);
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
  Result plan_ = sample_plan();
};

// Runs the first Python block of the README on the sample.
TEST_F(Document, TheReadmesExampleRunsAndPrintsTheMedians) {
  const std::string text = document("README.md");
  const std::string fence = "```python\n";
  const auto begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::string script = text.substr(begin + fence.size(), text.find("```", begin + 3) - begin - fence.size());
  EXPECT_LE(std::count(script.begin(), script.end(), '\n'), 6);
  const char* named = std::getenv("HARNESS_TEST_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (test::run(python + " -c 'import h5py, numpy'").exit_code != 0)
    GTEST_SKIP() << "no h5py in " << python << " (HARNESS_TEST_PYTHON names another)";
  // Block b of case c has timed steps b + 1.25 and b + 1.5: its median is b + 1.375. Block 11 is missing.
  // By (round + position) mod 3 the baseline has blocks 0, 5, 7, 9; its copy 1, 3, 8, 10; the change 2, 4, 6.
  EXPECT_EQ(test::run(python + " " + folder_.write("script.py", script) + " " + path_ + " 2>&1").out,
            "baseline 7.375 s\nbaseline_again 6.875 s\nmicro_batch_size=2 5.375 s\n");
}

TEST_F(Document, ItNamesEveryObjectColumnAndAttribute) {
  const std::string text = document("docs/file-format.md");
  const hdf5::File file = hdf5::File::open(path_, false);
  int named = 0;
  const auto expect_named = [&](const std::string& name) {
    EXPECT_THAT(text, HasSubstr("`" + name + "`")) << name << " is not in docs/file-format.md";
    ++named;
  };
  each_table(plan_, [&](const Table& table, const auto&, const auto& columns) {
    const std::string path = table.path;
    EXPECT_THAT(text, HasSubstr(path.starts_with("/run/") ? "`" + path.substr(5) + "`" : path));
    EXPECT_TRUE(file.contains(path)) << path;
    for (const Column& column : columns) {
      const bool variable = std::count(plan_.variables.begin(), plan_.variables.end(), column.name) > 0;
      if (!variable) expect_named(column.name);
    }
  });
  for (const Column& attribute : columns_of<Result>()) expect_named(attribute.name);
  for (const char* name :
       {"schema", "schema_version", "tool_version", "created", "run_uuid", "state", "sessions", "config_yaml", "argv",
        "overrides", "variables", "warnings", "/node_facts", "/step_seconds", "/losses", "/rank_seconds", "units"}) {
    expect_named(name);
  }
  EXPECT_GT(named, 80);
}

}  // namespace
}  // namespace harness::store
