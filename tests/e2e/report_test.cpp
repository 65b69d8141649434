// A sweep, its report, and the page in a browser where there is one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "command.h"
#include "paths.h"

namespace harness {
namespace {

using testing::harness_job;
using testing::run;
using testing::TemporaryFolder;
using testing::write_small_config;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (run(std::string(name) + " --version", 30).exit_code == 0) return name;
  }
  return "";
}

// One sweep for all: ranks are swept too, so that every chart has something to show.
class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const auto config = write_small_config(*folder_, 3, "  micro_batch_size: [2]\n  ranks: [1]\n");
    const auto swept = run(harness_job(2, "sweep " + config));
    ASSERT_TRUE(swept.exit_code == 0 || swept.exit_code == 4) << swept.out << swept.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file(const std::string& name) { return *folder_ / name; }
  static testing::Outcome report(const std::string& arguments) {
    return run(paths::program() + " report " + file("small.h5") + " " + arguments);
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* Report::folder_ = nullptr;

TEST_F(Report, IsWrittenBesideTheResultAndNeverOverSomething) {
  const auto first = report("");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(contains(first.out, "small.html"));
  const std::string page = text_of(file("small.html"));
  for (const char* id : {"tornado", "ladder", "scaling", "waterfall-baseline", "timeline-baseline", "heat-map"}) {
    EXPECT_TRUE(contains(page, "<figure id=\"" + std::string(id) + "\">")) << id;
  }
  const auto second = report("");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(contains(second.err, "--force")) << second.err;
  EXPECT_EQ(report("--force").exit_code, 0);

  EXPECT_EQ(report("--format md -o " + file("other.md")).exit_code, 0);
  EXPECT_TRUE(contains(text_of(file("other.md")), "## What each change does"));
  EXPECT_TRUE(contains(report("--format md -o -").out, "## What each change does"));

  const auto onto_itself = report("--force -o " + file("small.h5"));
  EXPECT_EQ(onto_itself.exit_code, 1);
  EXPECT_EQ(run(paths::program() + " show " + file("small.h5")).exit_code & ~4, 0) << "the result file was harmed";
  const auto missing = run(paths::program() + " report " + file("none.h5"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(file("none.html")));
  EXPECT_EQ(run(paths::program() + " report " + file("small.html") + " -o " + file("x.html")).exit_code, 1);
}

TEST_F(Report, IsXml) {
  if (run("python3 --version", 10).exit_code != 0) GTEST_SKIP() << "no python3";
  ASSERT_EQ(report("--force -o " + file("xml.html")).exit_code, 0);
  const auto parsed =
      run("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' " + file("xml.html"));
  EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
}

// The network is a proxy that nobody answers, so a request would show as an error; the browser's log has what the
// page's policy refuses and what goes wrong in it.
TEST_F(Report, OpensInABrowserInLightAndDark) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no Chromium";
  ASSERT_EQ(report("--force -o " + file("page.html")).exit_code, 0);
  const std::string common = program +
                             " --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
                             "--proxy-server=127.0.0.1:1 --enable-logging=stderr --log-level=0 --window-size=900,1400 "
                             "--user-data-dir=" +
                             file("profile") + " ";
  const auto shot = [&](const std::string& name, int scheme) {
    const auto o = run(common + "--blink-settings=preferredColorScheme=" + std::to_string(scheme) +
                           " --screenshot=" + file(name) + " file://" + file("page.html"),
                       60);
    std::istringstream lines(o.err);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(contains(line, "CONSOLE")) << line;
      EXPECT_FALSE(contains(line, "Refused to")) << line;
    }
    return text_of(file(name));
  };
  const std::string dark = shot("dark.png", 0), light = shot("light.png", 1);
  ASSERT_GT(light.size(), 10000u) << "no screenshot";
  ASSERT_GT(dark.size(), 10000u) << "no screenshot";
  EXPECT_NE(light, dark);
  const auto dom = run(common + "--dump-dom file://" + file("page.html"), 60);
  for (const char* id : {"tornado", "ladder", "scaling", "waterfall-baseline", "timeline-baseline", "heat-map"}) {
    EXPECT_TRUE(contains(dom.out, "aria-labelledby=\"" + std::string(id) + "-drawing-title")) << id;
  }
}

}  // namespace
}  // namespace harness
