// A sweep, its report, and the page in a browser where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "command.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (test::run(std::string(name) + " --version", 30).exit_code == 0) return name;
  }
  return "";
}

// One sweep for all: ranks are swept too, so that every chart has something to show.
class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const auto config = test::write_small_config(*folder_, 3, "  micro_batch_size: [2]\n  ranks: [1]\n");
    const auto swept = test::run(test::harness_job(2, "sweep " + config));
    ASSERT_TRUE(swept.exit_code == 0 || swept.exit_code == 4) << swept.out << swept.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file(const std::string& name) { return *folder_ / name; }
  static test::Outcome report(const std::string& arguments) {
    return test::run(test::program_path() + " report " + file("small.h5") + " " + arguments);
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* Report::folder_ = nullptr;

TEST_F(Report, IsWrittenBesideTheResultAndNeverOverSomething) {
  const auto first = report("");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("small.html"));
  const std::string page = test::text_of(file("small.html"));
  for (const char* id : {"tornado", "scaling", "waterfall-baseline", "timeline-baseline", "late-ranks"}) {
    EXPECT_THAT(page, HasSubstr("<figure id=\"" + std::string(id) + "\">")) << id;
  }
  const auto second = report("");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("--force"));
  EXPECT_EQ(report("--force").exit_code, 0);

  EXPECT_EQ(report("--format md -o " + file("other.md")).exit_code, 0);
  EXPECT_THAT(test::text_of(file("other.md")), HasSubstr("## What each change does"));
  EXPECT_THAT(report("--format md -o -").out, HasSubstr("## What each change does"));

  const auto onto_itself = report("--force -o " + file("small.h5"));
  EXPECT_EQ(onto_itself.exit_code, 1);
  EXPECT_EQ(test::run(test::program_path() + " show " + file("small.h5")).exit_code & ~4, 0)
      << "the result file was harmed";
  const auto missing = test::run(test::program_path() + " report " + file("none.h5"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(file("none.html")));
  EXPECT_EQ(test::run(test::program_path() + " report " + file("small.html") + " -o " + file("x.html")).exit_code, 1);
}

// A limit on the size of files (ulimit -f) is a full disk: a message, and nothing is left.
TEST_F(Report, BeyondTheLimitOfASizeSaysSoAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string small = test::program_path() + " report " + file("small.h5") + " -o " + (folder / "x.html");
  const auto page = test::run("sh -c 'ulimit -f 8; exec " + small + "'");
  EXPECT_EQ(page.exit_code, 1) << page.err;
  EXPECT_THAT(page.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string sweep =
      test::program_path() + " sweep configs/laptop.yaml --only precision --time-budget 3600s -o " + (folder / "x.h5");
  const auto swept = test::run(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np 1 sh -c 'ulimit -f 8; exec " + sweep + "'");
  EXPECT_EQ(swept.exit_code, 1) << swept.err;
  EXPECT_THAT(swept.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(Report, IsXml) {
  if (test::run("python3 --version", 10).exit_code != 0) GTEST_SKIP() << "no python3";
  ASSERT_EQ(report("--force -o " + file("xml.html")).exit_code, 0);
  const auto parsed =
      test::run("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' " + file("xml.html"));
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
    const auto o = test::run(common + "--blink-settings=preferredColorScheme=" + std::to_string(scheme) +
                                 " --screenshot=" + file(name) + " file://" + file("page.html"),
                             60);
    std::istringstream lines(o.err);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, Not(HasSubstr("CONSOLE")));
      EXPECT_THAT(line, Not(HasSubstr("Refused to")));
    }
    return test::text_of(file(name));
  };
  const std::string dark = shot("dark.png", 0), light = shot("light.png", 1);
  ASSERT_GT(light.size(), 10000u) << "no screenshot";
  ASSERT_GT(dark.size(), 10000u) << "no screenshot";
  EXPECT_NE(light, dark);
  const auto dom = test::run(common + "--dump-dom file://" + file("page.html"), 60);
  for (const char* id : {"tornado", "scaling", "waterfall-baseline", "timeline-baseline", "late-ranks"}) {
    EXPECT_THAT(dom.out, HasSubstr("aria-labelledby=\"" + std::string(id) + "-drawing-title")) << id;
  }
}

// The verbs that read result files, as a user starts them, on the example that is in the repository.

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
