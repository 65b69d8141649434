#include "sweep/blocks.h"

#include <gtest/gtest.h>

namespace harness::sweep {
namespace {

double start_deadline(config::BackendKind backend, int ranks, const config::Measure& measure = {}) {
  config::Experiment experiment;
  experiment.backend = backend;
  experiment.measure = measure;
  plan::PlannedCase planned;
  planned.layout = {{program::Axis::data, ranks}};
  return block_request(experiment, planned, job::TimeSteps{}, {}).deadlines.start_s;
}

TEST(BlockRequest, OnGpusTheUsualDeadlineOfAStartGrowsWithTheRanks) {
  using config::BackendKind;
  EXPECT_EQ(start_deadline(BackendKind::cpu, 1), 60);
  EXPECT_EQ(start_deadline(BackendKind::cpu, 1024), 60);
  double before = 60;
  for (const int ranks : {1, 2, 8, 128, 512}) {
    const double now = start_deadline(BackendKind::cuda, ranks);
    EXPECT_GT(now, before) << ranks;
    before = now;
  }
  EXPECT_GE(start_deadline(BackendKind::cuda, 128), 180);
  EXPECT_LE(start_deadline(BackendKind::cuda, 16384), 600);
  config::Measure given;
  given.deadlines.start_s = 45;
  given.usual_start = false;
  EXPECT_EQ(start_deadline(BackendKind::cuda, 128, given), 45);
}

}  // namespace
}  // namespace harness::sweep
