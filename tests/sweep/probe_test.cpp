// The first workers of a job: a passing fault costs one more start, a lasting one the sweep.
#include "sweep/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/prepare.h"
#include "support/errors.h"
#include "support/played_job.h"
#include "sweep/blocks.h"

namespace harness::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each start fails in the way that is next on the list; "": it succeeds, as do all after the last.
class FailingJob : public test::PlayedJob {
 public:
  explicit FailingJob(std::vector<std::string> ways) : ways_(std::move(ways)) {}
  std::vector<job::BlockOutcome> run(const std::vector<job::BlockOnSet>& /*blocks*/) override {
    const std::string way = starts < ways_.size() ? ways_[starts] : "";
    ++starts;
    job::BlockOutcome outcome;
    outcome.ok = way.empty();
    outcome.reason = outcome.signature = way;
    outcome.stopped = way == "stopped";
    if (outcome.ok) outcome.samples.resize(1);
    if (outcome.ok) outcome.samples[0].task = job::ProbeSamples{};
    return {outcome};
  }
  std::size_t starts = 0;

 private:
  std::vector<std::string> ways_;
};

plan::Plan planned() {
  config::Experiment e;
  e.path = "sweep.yaml";
  e.model = {"custom", 1, 64, 4, 128, 16};
  return plan::prepare(e, 1, {});
}

TEST(Probe, AWorkerThatIsKilledOnceIsStartedAgain) {
  FailingJob job({"killed"});
  EXPECT_THAT(probe(job, planned()).warnings,
              ElementsAre("the first workers of the job failed and were started again: killed"));
  FailingJob twice({"killed", "hung"});
  EXPECT_EQ(probe(twice, planned()).warnings.size(), 2u);
  EXPECT_EQ(twice.starts, 3u);
  FailingJob never({});
  EXPECT_TRUE(probe(never, planned()).warnings.empty());
}

TEST(Probe, WhatFailsAgainInTheSameWayOrInEverNewOnesIsSaid) {
  FailingJob alike({"killed", "killed"});
  EXPECT_THAT(test::error_of([&] { probe(alike, planned()); }), HasSubstr("each time that they were started"));
  EXPECT_EQ(alike.starts, 2u);
  FailingJob other({"killed", "hung", "burnt"});
  EXPECT_THAT(test::error_of([&] { probe(other, planned()); }), HasSubstr("burnt"));
  EXPECT_EQ(other.starts, 3u);
  FailingJob stopped({"stopped"});
  test::error_of([&] { probe(stopped, planned()); });
  EXPECT_EQ(stopped.starts, 1u) << "who stops the job does not want another try";
}

}  // namespace
}  // namespace harness::sweep
