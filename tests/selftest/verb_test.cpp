#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "backends/backends.h"
#include "cli/verbs.h"
#include "selftest/checks.h"
#include "support/paths.h"
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

TEST(CheckVerb, SaysEachCheckAndHowManyPassed) {
  const Answer r = run(options({"operations"}, {"gelu: "}), backends::get(config::BackendKind::cpu));
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_THAT(r.out, HasSubstr("\noperations: gelu fp32: passed ("));
  EXPECT_THAT(r.out, HasSubstr("3 checks passed, 0 failed, 0 not run"));
  EXPECT_THAT(r.out, HasSubstr("seed 7"));
}

// Each result is printed as soon as it is known, so that an interrupted run keeps its output.
TEST(CheckVerb, SaysEachCheckWhenItEnds) {
  class Watching : public test::FinerBackend {
   public:
    explicit Watching(const std::ostringstream& out) : out_(out) {}
    std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& r) const override {
      last_ = out_.str();
      return test::FinerBackend::create(r);
    }
    mutable std::string last_;

   private:
    const std::ostringstream& out_;
  };
  std::ostringstream out, err;
  const Watching subject(out);
  cli::selftest(options({"operations"}, {"gelu: "}), subject, backends::get(config::BackendKind::cpu), out, err);
  EXPECT_THAT(subject.last_, HasSubstr("operations: gelu fp32: passed ("));
  EXPECT_THAT(subject.last_, Not(HasSubstr("checks passed")));
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
  // The first view that AdamW writes holds the master weights: the losses of later steps reveal the fault.
  EXPECT_EQ(run(o, WrongBackend("adamw", Wrong::scaled)).code, 1);
  EXPECT_EQ(run(o, WrongBackend("embedding_backward", Wrong::scaled)).code, 1);
}

}  // namespace
}  // namespace harness::selftest
