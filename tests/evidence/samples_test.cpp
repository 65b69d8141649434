#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> samples_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path().string() + ".expect")) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

void expect_answers(const fs::path& folder) {
  const std::vector<fs::path> samples = samples_in(folder);
  ASSERT_FALSE(samples.empty()) << folder;
  for (const fs::path& sample : samples) {
    const std::string expected = text_of(sample.string() + ".expect");
    std::vector<evidence::Answer> answers;
    const std::string error = error_of([&] { answers = evidence::read_files({sample.string()}, {}); });
    if (error.find("built without zlib") != std::string::npos) continue;
    EXPECT_EQ(error.substr(0, 200), "") << sample.filename();
    if (answers.empty()) continue;
    EXPECT_EQ(join(missing(expected, answers.front()), "\n"), "") << sample.filename();
    EXPECT_FALSE(answers.front().headline.empty());
    EXPECT_LE(answers.front().evidence.size(), 12u) << sample.filename();
  }
}

TEST(Samples, EachGivesItsExpectedAnswer) {
  expect_answers(fs::path(source_dir()) / "tests/evidence/samples");
}

// Another folder of samples in the same format: HARNESS_EVIDENCE_SAMPLES=FOLDER.
TEST(Samples, AnotherFolderToo) {
  const char* folder = std::getenv("HARNESS_EVIDENCE_SAMPLES");
  if (folder == nullptr) GTEST_SKIP() << "HARNESS_EVIDENCE_SAMPLES is not set";
  expect_answers(folder);
}

}  // namespace
}  // namespace harness::test
