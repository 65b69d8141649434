// Configurations that cannot be read at all, or hardly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "base/statistics.h"
#include "config_files.h"
#include "support/temporary_folder.h"

namespace harness::config {
namespace {

using test::TemporaryFolder;

TEST(BrokenFile, NotThere) {
  const TemporaryFolder folder;
  folder.write("laptop.yaml", test::issue_example());
  const std::string message = test::complaint(folder / "latpop.yaml");
  EXPECT_EQ(message, folder / "latpop.yaml" + ":1:1: cannot be read: No such file or directory; did you mean " +
                         folder / "laptop.yaml" + "?");
}

// Files that nobody would think of: the example with a few pieces cut, doubled or replaced. Whatever comes of it, it is
// read, or refused with Error in lines that each say where; nothing else is thrown and nothing crashes.
TEST(Mutations, OfTheExampleAreReadOrRefusedWithAPlace) {
  const std::array<std::string, 28> pieces{"{",        "}",    "[",    "]",       ":", ": ",    "\n",
                                           "\n  ",     "- ",   "'",    "\"",      "#", "&a ",   "*a",
                                           "|",        ">\n",  "!!x ", "? key\n", "%", "---\n", "\t",
                                           "\xc3\xa4", "\xff", ",",    "\r",      "~", "<<: ",  "99999999999999999999"};
  const test::TemporaryFolder folder;
  const std::string path = folder / "m.yaml";
  int refused = 0, read = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::string text = test::issue_example();
    const int edits = 1 + static_cast<int>(seed % 3);
    for (int i = 0; i < edits; ++i) {
      const auto draw = philox(seed, static_cast<std::uint64_t>(i));
      const std::size_t at = draw[0] % text.size(), length = draw[1] % 8;
      switch (draw[2] % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, pieces[draw[3] % pieces.size()]);
          break;
        case 2:
          text.replace(at, length, pieces[draw[3] % pieces.size()]);
          break;
        default:
          text.insert(at, text.substr(draw[3] % text.size(), length * 8));
      }
    }
    folder.write("m.yaml", text);
    const std::string message = test::complaint(path);
    (message.empty() ? read : refused)++;
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with(path + ":") || line.starts_with("…")) << line << "\nof\n" << text;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 5);
}

}  // namespace
}  // namespace harness::config
