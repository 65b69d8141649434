#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/backends.h"
#include "cli/verbs.h"
#include "selftest/checks.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "wrong_backend.h"

namespace harness::selftest {
namespace {

using test::Wrong;
using test::WrongBackend;
using ::testing::HasSubstr;
using ::testing::Not;

struct Answer {
  int code = -1;
  std::string out, err;
};

cli::SelftestOptions options(std::vector<std::string> suites, std::vector<std::string> only = {}) {
  cli::SelftestOptions o;
  o.suites = std::move(suites);
  o.only = std::move(only);
  o.fast = true;
  o.threads = 1;
  o.seed = 7;
  return o;
}

Answer run(const cli::SelftestOptions& o, const backend::Backend& subject) {
  std::ostringstream out, err;
  const int code = cli::selftest(o, subject, backends::get(config::BackendKind::cpu), out, err);
  return {code, out.str(), err.str()};
}

TEST(CheckVerb, PassesWithATableAndAFile) {
  const test::TemporaryFolder folder;
  cli::SelftestOptions o = options({"operations"}, {"gelu: "});
  o.output = folder / "check";
  const Answer r = run(o, backends::get(config::BackendKind::cpu));
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("operations: gelu fp32"));
  EXPECT_THAT(r.out, HasSubstr("3 checks passed, 0 failed, 0 not run"));
  EXPECT_THAT(r.out, HasSubstr("seed 7"));
  EXPECT_EQ(test::text_of(o.output), r.out);
  std::ifstream lines(o.output + ".jsonl");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(nlohmann::json::parse(line).at("verdict"), "passed");
  }
  EXPECT_EQ(count, 3);
}

// Ended at any moment, it has said what it found until then.
TEST(CheckVerb, SaysEachCheckWhenItEnds) {
  class Watching : public test::FinerBackend {
   public:
    explicit Watching(std::string file) : file_(std::move(file)) {}
    std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& r) const override {
      last_ = test::text_of(file_);
      last_json_ = test::text_of(file_ + ".jsonl");
      return test::FinerBackend::create(r);
    }
    mutable std::string last_, last_json_;

   private:
    std::string file_;
  };
  const test::TemporaryFolder folder;
  cli::SelftestOptions o = options({"operations"}, {"gelu: "});
  o.output = folder / "check";
  const Watching subject(o.output);
  const Answer r = run(o, subject);
  EXPECT_THAT(subject.last_, HasSubstr("operations: gelu fp32: passed ("));
  EXPECT_THAT(subject.last_, Not(HasSubstr("verdict")));
  EXPECT_EQ(std::count(subject.last_json_.begin(), subject.last_json_.end(), '\n'), 2);
  EXPECT_EQ(r.out.find(subject.last_), 0u);
  EXPECT_THAT(r.out, HasSubstr("verdict"));
}

TEST(CheckVerb, AnOutputThatCannotBeWrittenIsSaidFirst) {
  cli::SelftestOptions o = options({"operations"}, {"gelu: "});
  o.output = "/no/such/folder/check";
  EXPECT_THAT(test::error_of([&] { run(o, backends::get(config::BackendKind::cpu)); }), HasSubstr("cannot write"));
}

TEST(CheckVerb, FailsAndNamesOperationAndCase) {
  const Answer r = run(options({"operations"}, {"gelu"}), WrongBackend("gelu", Wrong::scaled));
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.out, HasSubstr("FAILED"));
  EXPECT_THAT(r.out, HasSubstr("gelu: 37 x 257, bf16"));
  EXPECT_THAT(r.out, HasSubstr("3 checks passed, 8 failed"));
}

TEST(CheckVerb, WithoutADeviceSaysSoInOneLine) {
  const Answer r = run(options({}), test::AbsentBackend());
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(r.out.empty()) << r.out;
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_THAT(r.err, HasSubstr("no device is here"));
}

TEST(CheckVerb, NothingSelectedIsNothingRun) {
  const Answer r = run(options({"operations"}, {"no such operation"}), backends::get(config::BackendKind::cpu));
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.out, HasSubstr("not run"));
}

TEST(CheckVerb, ReferenceOnTheCpu) {
  cli::SelftestOptions o = options({"reference"});
  o.reference = test::source_dir() + "/tests/reference";
  const Answer r = run(o, backends::get(config::BackendKind::cpu));
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("reference: gradients bf16"));
}

TEST(CheckVerb, ReferenceIsFoundBesideTheProgram) {
  EXPECT_EQ(find_reference(test::source_dir() + "/build/release/bin/harness"), test::source_dir() + "/tests/reference");
  EXPECT_EQ(find_reference("/nowhere/bin/harness"), "");
  EXPECT_THROW(load_reference("/nowhere", config::Precision::fp32), Error);
}

TEST(CheckVerb, ReferenceFindsAWrongStep) {
  cli::SelftestOptions o = options({"reference"});
  o.reference = test::source_dir() + "/tests/reference";
  // The first written view of AdamW is the master; the losses of the steps after it tell.
  EXPECT_EQ(run(o, WrongBackend("adamw", Wrong::scaled)).code, 1);
  EXPECT_EQ(run(o, WrongBackend("embedding_backward", Wrong::scaled)).code, 1);
}

TEST(CheckVerb, TheCommandLineKnowsIt) {
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_cli({"selftest", "--help"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("--fast"));
  EXPECT_EQ(cli::run_cli({"selftest", "everything"}, out, err), 1);
  std::ostringstream table;
  EXPECT_EQ(cli::run_cli({"selftest", "operations", "--backend", "cpu", "--fast", "--only", "fill"}, table, err), 0)
      << table.str() << err.str();
  EXPECT_THAT(table.str(), HasSubstr("operations: fill fp32"));
}

}  // namespace
}  // namespace harness::selftest
