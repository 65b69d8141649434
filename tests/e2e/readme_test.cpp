// Outputs in README.md equal those of the binary (HARNESS_UPDATE_GOLDEN=1 writes them into README.md), and commands in
// README.md and docs/ use only existing options and links.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "user.h"

namespace harness {
namespace {

const std::string readme = test::source_dir() + "/README.md";
const std::string marker = "<!-- output of:";

// A fenced block after a comment "<!-- output of: COMMAND -->". Its first lines may be commands ("$ ..."); the output
// follows them. Positions are offsets into the page.
struct Sample {
  std::string command;
  std::size_t output_begin = 0, output_end = 0;
};

std::vector<Sample> samples_of(const std::string& page) {
  std::vector<Sample> samples;
  for (std::size_t at = page.find(marker); at != std::string::npos; at = page.find(marker, at + 1)) {
    const std::size_t command_begin = at + marker.size();
    const std::size_t command_end = page.find("-->", command_begin);
    Sample sample;
    sample.command = page.substr(command_begin, command_end - command_begin);
    std::replace(sample.command.begin(), sample.command.end(), '\n', ' ');
    sample.output_begin = page.find('\n', page.find("```", command_end)) + 1;
    while (page.compare(sample.output_begin, 2, "$ ") == 0) {
      sample.output_begin = page.find('\n', sample.output_begin) + 1;
    }
    sample.output_end = page.find("```", sample.output_begin);
    samples.push_back(sample);
  }
  return samples;
}

std::string output_of(const std::string& command) {
  const Outcome outcome = test::run("HARNESS_BINARY='" + test::program_path() + "' " + command);
  EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  return outcome.out;
}

TEST(Readme, ShowsWhatTheBinaryPrints) {
  std::string page = test::text_of(readme);
  std::vector<Sample> samples = samples_of(page);
  ASSERT_EQ(samples.size(), 2u);
  const bool update = std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr;
  std::reverse(samples.begin(), samples.end());  // replacing a later sample does not move earlier ones
  for (const Sample& sample : samples) {
    const std::string output = output_of(sample.command);
    const std::size_t size = sample.output_end - sample.output_begin;
    if (update) {
      page.replace(sample.output_begin, size, output);
    } else {
      EXPECT_EQ(page.substr(sample.output_begin, size), output) << sample.command;
    }
  }
  if (update) std::ofstream(readme) << page;
}

// Returns the text of a page, with lines that end in a backslash joined to the next.
std::string commands_of(const std::filesystem::path& page) {
  std::string text = test::text_of(page);
  for (std::size_t at = text.find("\\\n"); at != std::string::npos; at = text.find("\\\n", at)) text.erase(at, 2);
  return text;
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
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
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
