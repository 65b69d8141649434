#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "config_files.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

struct Block {
  std::string info;  // the text after the opening fence: "cpp src/config/registry.cpp"
  std::string text;
};

// Resolves a path within the repository.
std::filesystem::path in_repository(const std::string& path) {
  return std::filesystem::path(test::source_dir()) / path;
}

// Returns the fenced blocks of a Markdown page.
std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  bool inside = false;
  for (const std::string& line : split_text(test::text_of(in_repository(page)), "\n")) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

// Compares each "LANGUAGE FILE" block of the page with the file it names. Returns the number of such blocks.
int expect_verbatim(const std::string& page, const std::string& language) {
  int checked = 0;
  for (const Block& block : blocks_of(page)) {
    if (!block.info.starts_with(language + " ")) continue;
    const std::string file = block.info.substr(language.size() + 1);
    EXPECT_THAT(test::text_of(in_repository(file)), HasSubstr(block.text))
        << file << " no longer contains this block of " << page << ":\n"
        << block.text;
    ++checked;
  }
  return checked;
}

TEST(Docs, CodeInArchitectureIsTheCode) {
  EXPECT_GE(expect_verbatim("docs/architecture.md", "cpp"), 1);
}

TEST(Docs, ConfigurationsInTheReadmeAreFilesOfTheRepository) {
  EXPECT_GE(expect_verbatim("README.md", "yaml"), 1);
  for (const Block& block : blocks_of("README.md")) {
    EXPECT_NE(block.info, "yaml") << "a sample configuration that names no file:\n" << block.text;
  }
}

TEST(Docs, ConfigurationsInArchitectureLoad) {
  int checked = 0;
  for (const Block& block : blocks_of("docs/architecture.md")) {
    if (block.info != "yaml") continue;
    EXPECT_EQ(test::complaint_about(block.text), "");
    ++checked;
  }
  EXPECT_GE(checked, 1);
}

}  // namespace
}  // namespace harness::config
