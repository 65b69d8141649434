// Outputs in README.md equal those of the binary (HARNESS_UPDATE_GOLDEN=1 writes them into README.md), and commands in
// README.md and docs/ use only existing options and links.
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "user.h"

namespace harness {
namespace {

const std::string readme = test::source_dir() + "/README.md";

std::string output_of(const std::string& command) {
  const Outcome outcome = test::run("HARNESS_BINARY='" + test::program_path() + "' " + command);
  EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  return outcome.out;
}

// Returns the page with what the binary prints now. A comment "<!-- output of: COMMAND -->" stands before a fenced
// block, whose first lines may be commands ("$ ..."); the output follows them.
std::string with_outputs(std::string page) {
  const std::string marker = "<!-- output of:";
  int outputs = 0;
  for (std::size_t at = page.find(marker); at != std::string::npos; at = page.find(marker, at + 1), ++outputs) {
    const std::size_t command = at + marker.size(), command_end = page.find("-->", command);
    std::size_t begin = page.find('\n', page.find("```", command_end)) + 1;
    while (page.compare(begin, 2, "$ ") == 0) begin = page.find('\n', begin) + 1;
    page.replace(begin, page.find("```", begin) - begin,
                 output_of(replaced_all(page.substr(command, command_end - command), "\n", " ")));
  }
  EXPECT_EQ(outputs, 2);
  return page;
}

TEST(Readme, ShowsWhatTheBinaryPrints) {
  const std::string page = with_outputs(test::text_of(readme));
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) std::ofstream(readme) << page;
  EXPECT_EQ(test::text_of(readme), page);
}

// Returns the text of a page, with lines that end in a backslash joined to the next.
std::string commands_of(const std::filesystem::path& page) {
  return replaced_all(test::text_of(page), "\\\n", "");
}

std::vector<std::filesystem::path> all_pages() {
  std::vector<std::filesystem::path> pages{readme, test::source_dir() + "/bench/README.md"};
  for (const auto& file : std::filesystem::directory_iterator(test::source_dir() + "/docs"))
    pages.push_back(file.path());
  return pages;
}

// Returns the anchors that GitHub generates for a page's headings.
std::set<std::string> anchors_of(const std::filesystem::path& page) {
  std::set<std::string> anchors;
  std::istringstream lines(test::text_of(page));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char c : lower(line.substr(line.find_first_not_of("# ")))) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') anchor += c;
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Readme, LinksAndSourcesThatPagesNameAreThere) {
  const std::filesystem::path root = test::source_dir();
  const std::regex link("\\]\\(([^)#:\\s]*)(#([^)\\s]*))?\\)"),
      source("`((src|scripts|bench|configs|tests|workloads|cmake)/[A-Za-z0-9_./-]+\\.[a-z]+)`");
  int checked = 0;
  for (const std::filesystem::path& page : all_pages()) {
    const std::string text = test::text_of(page);
    for (std::sregex_iterator l(text.begin(), text.end(), link), end; l != end; ++l, ++checked) {
      const std::filesystem::path target = (*l)[1].length() == 0 ? page : page.parent_path() / (*l)[1].str();
      EXPECT_TRUE(std::filesystem::exists(target)) << page << ": " << (*l)[0];
      const bool is_there = !(*l)[3].matched || anchors_of(target).contains((*l)[3]);
      EXPECT_TRUE(is_there) << page << ": " << (*l)[0];
    }
    for (std::sregex_iterator s(text.begin(), text.end(), source), end; s != end; ++s, ++checked)
      EXPECT_TRUE(std::filesystem::exists(root / (*s)[1].str())) << page << ": " << (*s)[0];
  }
  EXPECT_GT(checked, 60);
}

TEST(Readme, CommandsOfAllPagesHaveTheirOptions) {
  const std::regex command(
      "harness (sweep|plan|show|report|compare|export|trace|doctor|calibrate|init|selftest|variables)"
      "([^`|#;\n]*)"),
      option("\\s(--[a-z-]+)");
  std::map<std::string, std::string> help;
  int checked = 0;
  for (const std::filesystem::path& page : all_pages()) {
    const std::string text = commands_of(page);
    for (std::sregex_iterator c(text.begin(), text.end(), command), end; c != end; ++c) {
      const std::string verb = (*c)[1], arguments = (*c)[2];
      if (!help.contains(verb)) help[verb] = output_of(test::program_path() + " " + verb + " --help");
      for (std::sregex_iterator o(arguments.begin(), arguments.end(), option); o != end; ++o, ++checked) {
        EXPECT_NE(help[verb].find((*o)[1]), std::string::npos) << page << ": " << (*c)[0];
      }
    }
  }
  EXPECT_GT(checked, 40);
}

}  // namespace
}  // namespace harness
