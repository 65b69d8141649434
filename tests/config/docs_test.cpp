#include <gtest/gtest.h>

#include <sstream>

#include "paths.h"
#include "tests/config/config_files.h"

namespace harness {
namespace {

struct Block {
  std::string info;  // what stands after the fence: "cpp src/config/registry.cpp"
  std::string text;
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::istringstream in(content_of(std::filesystem::path(paths::source_dir()) / "docs" / page));
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

// Code that docs/adding.md shows is in the file it names, letter by letter.
TEST(Docs, CodeInAddingIsTheCode) {
  int checked = 0;
  for (const Block& block : blocks_of("adding.md")) {
    if (!block.info.starts_with("cpp ")) continue;
    const std::string file = block.info.substr(4);
    const std::string code = content_of(std::filesystem::path(paths::source_dir()) / file);
    EXPECT_NE(code.find(block.text), std::string::npos) << file << " no longer has\n" << block.text;
    ++checked;
  }
  EXPECT_GE(checked, 2);
}

TEST(Docs, ConfigurationsInAddingLoad) {
  const test::Folder folder;
  int checked = 0;
  for (const Block& block : blocks_of("adding.md")) {
    if (block.info != "yaml") continue;
    EXPECT_EQ(test::complaint(folder.write("example.yaml", block.text)), "");
    ++checked;
  }
  EXPECT_GE(checked, 1);
}

}  // namespace
}  // namespace harness
