#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli.h"
#include "cli/verbs.h"
#include "paths.h"
#include "wrong_backend.h"

namespace harness {
namespace {

using testing::Wrong;
using testing::WrongBackend;

struct Answer {
  int code = -1;
  std::string out, err;
};

SelftestOptions options(std::vector<std::string> suites, std::vector<std::string> only = {}) {
  SelftestOptions o;
  o.suites = std::move(suites);
  o.only = std::move(only);
  o.fast = true;
  o.threads = 1;
  o.seed = 7;
  return o;
}

Answer run(const SelftestOptions& o, const Backend& subject) {
  std::ostringstream out, err;
  const int code = selftest(o, subject, backend(BackendKind::cpu), out, err);
  return {code, out.str(), err.str()};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class TemporaryFile {
 public:
  TemporaryFile() {
    path_ = (std::filesystem::temp_directory_path() / "harness_check_XXXXXX").string();
    close(mkstemp(path_.data()));
  }
  ~TemporaryFile() {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".jsonl");
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CheckVerb, PassesWithATableAndAFile) {
  const TemporaryFile file;
  SelftestOptions o = options({"operations"}, {"gelu: "});
  o.output = file.path();
  const Answer r = run(o, backend(BackendKind::cpu));
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_TRUE(contains(r.out, "operations: gelu fp32")) << r.out;
  EXPECT_TRUE(contains(r.out, "2 checks passed, 0 failed, 0 not run")) << r.out;
  EXPECT_TRUE(contains(r.out, "seed 7"));
  std::ifstream text(o.output);
  std::stringstream written;
  written << text.rdbuf();
  EXPECT_EQ(written.str(), r.out);
  std::ifstream lines(o.output + ".jsonl");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(nlohmann::json::parse(line).at("verdict"), "passed");
  }
  EXPECT_EQ(count, 2);
}

TEST(CheckVerb, FailsAndNamesOperationAndCase) {
  const Answer r = run(options({"operations"}, {"gelu"}), WrongBackend("gelu", Wrong::scaled));
  EXPECT_EQ(r.code, 1);
  EXPECT_TRUE(contains(r.out, "FAILED")) << r.out;
  EXPECT_TRUE(contains(r.out, "gelu: 37 x 257, bf16")) << r.out;
  EXPECT_TRUE(contains(r.out, "2 checks passed, 4 failed")) << r.out;
}

TEST(CheckVerb, WithoutADeviceSaysSoInOneLine) {
  const Answer r = run(options({}), testing::AbsentBackend());
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(r.out.empty()) << r.out;
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_TRUE(contains(r.err, "no device is here")) << r.err;
}

TEST(CheckVerb, NothingSelectedIsNothingRun) {
  const Answer r = run(options({"operations"}, {"no such operation"}), backend(BackendKind::cpu));
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(contains(r.out, "not run")) << r.out;
}

TEST(CheckVerb, ReferenceAndEqualityOnTheCpu) {
  SelftestOptions o = options({"reference", "equality"});
  o.reference = paths::source_dir() + "/tests/reference";
  const Answer r = run(o, backend(BackendKind::cpu));
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_TRUE(contains(r.out, "reference: gradients bf16")) << r.out;
  EXPECT_TRUE(contains(r.out, "equality: the loss falls on a repeated batch, bf16")) << r.out;
}

TEST(CheckVerb, ReferenceFindsAWrongStep) {
  SelftestOptions o = options({"reference"});
  o.reference = paths::source_dir() + "/tests/reference";
  // The first written view of AdamW is the master; the losses of the steps after it tell.
  EXPECT_EQ(run(o, WrongBackend("adamw", Wrong::scaled)).code, 1);
  EXPECT_EQ(run(o, WrongBackend("embedding_backward", Wrong::scaled)).code, 1);
}

TEST(CheckVerb, TheCommandLineKnowsIt) {
  std::ostringstream out, err;
  EXPECT_EQ(run_cli({"selftest", "--help"}, out, err), 0);
  EXPECT_TRUE(contains(out.str(), "--micro-batch")) << out.str();
  EXPECT_EQ(run_cli({"selftest", "everything"}, out, err), 1);
  std::ostringstream table;
  EXPECT_EQ(run_cli({"selftest", "operations", "--backend", "cpu", "--fast", "--only", "fill"}, table, err), 0)
      << table.str() << err.str();
  EXPECT_TRUE(contains(table.str(), "operations: fill fp32")) << table.str();
}

}  // namespace
}  // namespace harness
