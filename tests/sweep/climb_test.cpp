// How a climb ends.
#include "sweep/climb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/sample_results.h"
#include "support/temporary_folder.h"

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;

std::string end_of(const store::Result& result) {
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("a.yaml",
                   "backend: cpu\nmodel: {layers: 1, hidden: 64, heads: 2, vocab: 128, sequence: 32}\n"
                   "baseline: {global_batch_size: 16}\nsweep: {micro_batch_size: [2, 4]}\n");
  Climb climb(config::load_experiment(path), {}, 2);
  return climb.take(result, analysis::summarise(result), "a.h5");
}

store::Result measured(double first, double second, int rounds = 12) {
  return test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, first, second}, rounds);
}

TEST(ClimbEnd, GoesOnFromAProvenChange) {
  EXPECT_EQ(end_of(measured(0.8, 1)), "");
}

TEST(ClimbEnd, NothingHelpsIsAnAnswer) {
  EXPECT_EQ(end_of(measured(1, 1.2)), "no single change is proven to help");
}

TEST(ClimbEnd, WhatIsUnresolvedIsNone) {
  EXPECT_THAT(end_of(measured(1, 1.0102)),
              HasSubstr("but 1 of 2 changes is unresolved after 12 rounds, so this is no answer: "));
  EXPECT_THAT(end_of(measured(0.5, 0.5, 3)),
              HasSubstr("but 2 of 2 changes are unresolved after 3 rounds, so this is no answer: about 12 would settle "
                        "them (--rounds 12)"));
}

}  // namespace
}  // namespace harness::sweep
